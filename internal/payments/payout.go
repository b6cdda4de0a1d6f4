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

// Payout requests a transfer of money from the wallet to a mobile money wallet, or to a bank account if BankID is
// set.
type Payout struct {
	Amount      money.Pesewas
	Reference   string // the client's
	Name        string // of the recipient, from the client
	Label       string // purpose of the payout, which the payee may see; cut when too long
	CallbackURL string // empty: none

	MSISDN      msisdn.MSISDN
	Network     msisdn.Network
	AccountType string // AccountSubscriber or AccountAgent; empty means agent

	BankID        string
	AccountNumber string

	// Requester is used only if the payout needs approval.
	Requester Requester

	// Gone is closed when the client disconnects. The client then gets a refusal by webhook. If it is nil, the client
	// stays connected.
	Gone <-chan struct{}
}

// MinPayout is the minimum amount of a payout.
const MinPayout = 50 * money.Cedi / 100

// Payout accepts a payout, submits it and returns the provider's answer, or pending after 8 s. A refusal is a Refused
// problem; its Data is the failed and refunded payment. All later results are sent by webhook. A payout that needs
// approval is returned at once as pending. If another node still handles the first request, a repeated request waits
// for it.
func (p *Payments) Payout(ctx context.Context, c idempotency.Caller, r Payout) (pay book.Payment, replayed bool, err error) {
	began := momentOf(p.clock)
	for {
		pay, replayed, err = p.payout(ctx, c, r, began)
		if err == nil || !p.repeats.wait(ctx, r.Gone, err, began) {
			return pay, replayed, err
		}
	}
}

// payout is Payout, except that a repeated request does not wait. began is when the request began.
func (p *Payments) payout(ctx context.Context, c idempotency.Caller, r Payout, began moment) (pay book.Payment, replayed bool, err error) {
	begun := p.clock.Now()
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
		// A repeated request moves no money, so it is answered even if its bank is gone or its limit fell.
		if old, again, err := p.book.Earlier(ctx, &book.Acceptance{Payment: newPayment(c, t, book.KindPayout)}); err != nil || again {
			return p.replayed(old, again, err)
		}
		return book.Payment{}, false, refused
	}
	pay = newPayment(c, t, book.KindPayout)
	field := r.fill(&pay)
	if pay.Charges, pay.Plan, err = p.tenants.Fee(ctx, t.ID, tenant.Payout, pay.Channel, pay.Amount, begun); err != nil {
		return book.Payment{}, false, err
	}
	a := &request{Acceptance: book.Acceptance{Payment: pay, Repeats: t.Duplicates == tenant.RepeatDuplicates, Daily: c.Daily}, field: field, awaitsSubmission: true, requester: &r.Requester}
	if r.BankID != "" {
		if old, again, err := p.book.Earlier(ctx, &a.Acceptance); err != nil || again {
			return p.replayed(old, again, err)
		}
		// The payee's name comes from the bank, and the rail that returned it makes the payment. Without a name the
		// wallet is not debited.
		if a.Payment.AccountName, a.Payment.Rail, err = p.lookups.PayeeName(ctx, t.ID, r.BankID, r.AccountNumber, r.Amount); err != nil {
			return book.Payment{}, false, err
		}
	}
	done, err := p.accept(ctx, a)
	if err != nil || done.Replayed {
		return p.replayed(done.Payment, done.Replayed, err)
	}
	if done.Payment.AwaitsApproval() {
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

// fill copies the payout's fields to a payment. It returns the field that an error about a channel without a provider
// names.
func (r Payout) fill(pay *book.Payment) (field string) {
	pay.Reference, pay.Amount, pay.CallbackURL = r.Reference, r.Amount, r.CallbackURL
	pay.AccountName, pay.Label = cut(r.Name, nameLength), cut(r.Label, labelLength)
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

// await waits up to d for the result of a submission. It returns the payment if the provider refused it, and nil for
// every other result.
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
	if r.waiter.CompareAndSwap(requestWaits, requestGone) {
		return nil, nil
	}
	// The follower is storing a refusal, which is the result of this request.
	late := p.clock.Timer(refusalWait)
	defer late.Stop()
	select {
	case <-r.given:
		return r.refusal, nil
	case <-late.C:
	}
	if r.waiter.CompareAndSwap(requestWaits, requestGone) { // the refusal could not be stored
		return nil, nil
	}
	return nil, problem.New(problem.Unavailable, "outcome_unknown",
		"The service was interrupted and does not know yet what became of the payout. Ask for its status.")
}
