package payments

import (
	"context"
	"slices"
	"time"

	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// Payout sends money from the wallet to a mobile money wallet, or to a bank
// account when BankID is set.
type Payout struct {
	Amount      money.Pesewas
	Reference   string // the client's
	Name        string // of the recipient, as the client says
	CallbackURL string // empty: none

	MSISDN      msisdn.MSISDN
	Network     msisdn.Network
	AccountType string // AccountSubscriber, AccountAgent or empty, which is agent

	BankID        string
	AccountNumber string

	// Asker is who asks, for a payout that must be approved.
	Asker Asker

	// Gone is closed when the client hangs up: a refusal is then told by webhook
	// like any other failure. nil: they stay.
	Gone <-chan struct{}
}

// MinPayout is the least amount of a payout.
const MinPayout = 50 * money.Cedi / 100

// toldTime is how long a request waits beyond its time for a refusal that is
// being written down.
const toldTime = 1500 * time.Millisecond

// Payout accepts a payout, has it submitted, and answers when the provider has,
// or after 8 s, whichever is first. A provider's outright no is a Refused
// problem with the payment, failed and refunded, as its Data. Everything else is
// told by webhook. One that waits for the approval of the account's own people is
// answered at once, as pending.
func (p *Payments) Payout(ctx context.Context, c idempotency.Caller, r Payout) (pay book.Payment, replayed bool, err error) {
	begun, began := p.clock.Now(), momentOf(p.clock)
	t, err := p.customer(ctx, c)
	if err != nil {
		return book.Payment{}, false, err
	}
	var refused error
	if t.PayoutsStopped {
		refused = tenant.NoPayouts()
	} else {
		refused = p.checkPayout(ctx, t, r)
	}
	if refused != nil {
		// A request that came before is still answered: a replay moves no money. Its bank may have gone since, or its limit fallen.
		if old, again, err := p.book.Earlier(ctx, &book.Acceptance{Payment: asked(c, t, book.KindPayout)}); err != nil || again {
			return p.replayed(old, again, err)
		}
		return book.Payment{}, false, refused
	}
	pay = asked(c, t, book.KindPayout)
	field := r.fill(&pay)
	if pay.Charges, pay.Plan, err = p.tenants.Fee(ctx, t.ID, tenant.Payout, pay.Channel, pay.Amount, begun); err != nil {
		return book.Payment{}, false, err
	}
	a := &request{Acceptance: book.Acceptance{Payment: pay, Repeats: t.Duplicates == tenant.RepeatDuplicates, Daily: c.Daily}, field: field, waits: true, asker: &r.Asker}
	if r.BankID != "" {
		if old, again, err := p.book.Earlier(ctx, &a.Acceptance); err != nil || again {
			return p.replayed(old, again, err)
		}
		// The verified name is used. Nothing is debited before it is known.
		if a.Payment.AccountName, err = p.lookups.BankName(ctx, t.ID, r.BankID, r.AccountNumber); err != nil {
			return book.Payment{}, false, err
		}
	}
	done, err := p.accept(ctx, a)
	if err != nil || done.Replayed {
		return p.replayed(done.Payment, done.Replayed, err)
	}
	if done.Payment.Waits() {
		return done.Payment, false, nil
	}
	no, err := p.await(ctx, r.Gone, a.reply, answerTime-momentOf(p.clock).Sub(began))
	if no != nil {
		err = book.Refused(*no)
	}
	if err != nil {
		return book.Payment{}, false, err
	}
	return done.Payment, false, nil
}

// fill gives a payment what the payout asks for. It returns the request's field that a channel without a provider is blamed on.
func (r Payout) fill(pay *book.Payment) (field string) {
	pay.Reference, pay.Amount, pay.CallbackURL = r.Reference, r.Amount, r.CallbackURL
	pay.AccountName = cut(r.Name, nameLength)
	if r.BankID != "" {
		pay.Channel, pay.BankID, pay.Account = book.ChannelBank, r.BankID, r.AccountNumber
		return "bank_id"
	}
	pay.Channel, pay.Account = string(r.Network), string(r.MSISDN)
	pay.Details.AccountType = r.AccountType
	return "channel"
}

func (p *Payments) checkPayout(ctx context.Context, t tenant.Tenant, r Payout) error {
	var bad problem.Fields
	limit := t.PayoutLimitWallet
	if r.BankID != "" || r.AccountNumber != "" {
		limit = t.PayoutLimitBank
		if err := p.lookups.CheckBankAccount(ctx, r.BankID, r.AccountNumber); err != nil && !bad.Merge(err) {
			return err
		}
	} else {
		checkParty(&bad, "account_number", r.MSISDN, "channel", r.Network)
		if !slices.Contains([]string{"", book.AccountSubscriber, book.AccountAgent}, r.AccountType) {
			bad.Add("carriermomo_account_type", "must be subscriber or agent")
		}
	}
	switch {
	case r.Amount < MinPayout:
		bad.Add("amount", "must be at least "+MinPayout.String())
	case r.Amount > limit:
		bad.Add("amount", "must not be above the transfer limit of "+limit.String())
	}
	checkReference(&bad, "client_reference", r.Reference)
	p.checkCallback(&bad, r.CallbackURL)
	return bad.Err()
}

// await waits for the submission's answer, at most for d. It answers the
// payment if the provider refused it outright, and nil otherwise: the payment is
// accepted, whatever becomes of it.
func (p *Payments) await(ctx context.Context, gone <-chan struct{}, r *reply, d time.Duration) (*book.Payment, error) {
	timer := p.clock.Timer(d)
	defer timer.Stop()
	select {
	case <-r.given:
		return r.refusal, nil
	case <-timer.C:
	case <-gone:
	case <-ctx.Done():
	}
	if r.waiter.CompareAndSwap(waiterThere, waiterGone) {
		return nil, nil
	}
	// A refusal is being written down this moment: it is the answer.
	late := p.clock.Timer(toldTime)
	defer late.Stop()
	select {
	case <-r.given:
		return r.refusal, nil
	case <-late.C:
	}
	if r.waiter.CompareAndSwap(waiterThere, waiterGone) { // it could not be written
		return nil, nil
	}
	return nil, problem.New(problem.Unavailable, "outcome_unknown",
		"The service was interrupted and does not know yet what became of the payout. Ask for its status.")
}
