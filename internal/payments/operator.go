package payments

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

// The verbs of operators. Each takes a reason, which is kept, and functions that
// run in the transaction that does it: the caller writes the audit log there.

// Resolve ends an open payment on an operator's word: paid says that the
// provider's statement has it as done. It posts, refunds and tells the customer
// exactly as the provider's own word would, once. It is refused with InProgress
// and RetryAfter while the payment may be on its way to the provider. The provider's own charge is
// booked when the provider can be asked (see recheck).
func (p *Payments) Resolve(ctx context.Context, id string, paid bool, reason, actor string, also ...func(*db.Tx) error) (book.Payment, error) {
	o := provider.Outcome{Class: provider.Accepted, State: provider.Failed}
	if paid {
		o.State = provider.Success
	}
	return p.resolveAs(ctx, id, o, reason, actor, also)
}

// ResolvePaid is Resolve for a payment whose statement also tells what the
// provider took for it and gave us.
func (p *Payments) ResolvePaid(ctx context.Context, id string, fee, commission money.Pesewas, reason, actor string, also ...func(*db.Tx) error) (book.Payment, error) {
	if fee < 0 || commission < 0 {
		return book.Payment{}, problem.Field("provider_fee", "and commission must not be below zero")
	}
	o := provider.Outcome{Class: provider.Accepted, State: provider.Success, Fee: fee, Commission: commission, FeeKnown: true}
	return p.resolveAs(ctx, id, o, reason, actor, also)
}

func (p *Payments) resolveAs(ctx context.Context, id string, o provider.Outcome, reason, actor string, also []func(*db.Tx) error) (book.Payment, error) {
	var bad problem.Fields
	treasury.CheckSigned(&bad, reason, actor)
	if err := bad.Err(); err != nil {
		return book.Payment{}, err
	}
	pay, err := p.Find(ctx, id)
	if err != nil {
		return book.Payment{}, err
	}
	s := book.Settlement{Payment: pay, Event: book.EventSucceeded, Reason: provider.ReasonResolved, Note: reason, Judge: func(row book.Payment) error { return p.resolvable(row, o) }, Also: all(also), Outcome: o}
	if o.State == provider.Failed {
		s.Event = book.EventFailed
	}
	done, err := p.book.Settle(ctx, s)
	if err := changed(done, err); err != nil {
		return book.Payment{}, err
	}
	p.log.Warn("operator resolved payment", "payment", pay.ID, "paid", o.State == provider.Success, "actor", actor, "reason", reason)
	return done.Payment, nil
}

// takeoverWait is how long an operator waits before another try where a server has to follow the payment anew.
const takeoverWait = 30 * time.Second

// resolvable refuses an operator's word that the judge does not take: about what is
// final, and about what may be on its way at this moment, which the statement that
// the word goes by cannot have yet. It is asked under the row's lock. A submission that
// comes after the word finds the row final when it is marked, and does not leave.
func (p *Payments) resolvable(row book.Payment, o provider.Outcome) error {
	if row.Status != book.StatusPending {
		return problem.New(problem.Duplicate, "payment_final", "The payment is "+row.Word()+" already")
	}
	if row.Waits() {
		return errWaits()
	}
	if _, v, _ := judge(standingOf(row, provider.Rail{}, 0), report{from: fromOperator, outcome: o}); v != verdictTooSoon {
		return nil
	}
	// The server that follows the payment decides by its own reckoning; the clock only gives a likely time.
	wait := (onItsWay - p.clock.Since(row.MayLeaveSince())).Truncate(time.Second) + time.Second
	first := ""
	if wait <= 0 || wait > onItsWay {
		wait, first = takeoverWait, "A running server follows the payment for two minutes first. "
	}
	e := problem.New(problem.InProgress, "payment_in_progress",
		"The payment may be on its way to the provider at this moment. "+first+"Look at the provider's statement again in "+wait.String()+", then resolve it")
	e.RetryAfter = wait
	return e
}

// Resolvable refuses what Resolve would refuse of a payment as it was read.
func (p *Payments) Resolvable(pay book.Payment, paid bool) error {
	o := provider.Outcome{Class: provider.Accepted, State: provider.Failed}
	if paid {
		o.State = provider.Success
	}
	return p.resolvable(pay, o)
}

// Transfer moves money between the wallets of two tenants of one mode. It is a
// payout of the first with channel WALLET, final at once, and free of charge, and
// by the same Reference in the list of the second.
func (p *Payments) Transfer(ctx context.Context, from, to string, amount money.Pesewas, reason, actor string, also ...func(*db.Tx) error) (book.Payment, error) {
	var bad problem.Fields
	treasury.CheckSigned(&bad, reason, actor)
	if amount <= 0 {
		bad.Add("amount", "must be above zero")
	}
	if from == to {
		bad.Add("to", "must be another account")
	}
	if err := bad.Err(); err != nil {
		return book.Payment{}, err
	}
	giver, err := p.tenants.Get(ctx, from)
	if err != nil {
		return book.Payment{}, err
	}
	taker, err := p.tenants.Get(ctx, to)
	if err != nil {
		return book.Payment{}, err
	}
	if giver.Mode != taker.Mode {
		return book.Payment{}, problem.Field("to", "must be an account of the same mode")
	}
	pay := book.Payment{
		Tenant: giver.ID, Kind: book.KindPayout, Mode: string(giver.Mode), Channel: book.ChannelWallet, FeeBearer: string(giver.FeeBearer),
		Reference: uuid.NewString(), Amount: amount, Account: taker.ID, AccountName: taker.Name, Note: reason,
		Details: book.Details{To: taker.ID, Minted: true},
	}
	got := pay
	got.Tenant, got.FeeBearer, got.Account, got.AccountName, got.Details.To = taker.ID, string(taker.FeeBearer), giver.ID, giver.Name, ""
	done, err := p.accept(ctx, &request{Acceptance: book.Acceptance{Payment: pay, Child: &got, Also: all(also)}})
	return done.Payment, err
}

// LegDecided is the leg by which an operator empties suspense.
const LegDecided = "decided"

// Contradict takes back an operator's word by which a payout, top-up or bundle was
// ended, where the provider never spoke: paid says what it really was, the opposite
// of what it was resolved as. As after a provider's contradiction the amount is then
// in suspense, or missing there, and the status stays; Decide empties suspense. One
// that is contradicted already is left as it is.
func (p *Payments) Contradict(ctx context.Context, id string, paid bool, reason, actor string, also ...func(*db.Tx) error) (book.Payment, error) {
	var bad problem.Fields
	treasury.CheckSigned(&bad, reason, actor)
	if err := bad.Err(); err != nil {
		return book.Payment{}, err
	}
	pay, err := p.Find(ctx, id)
	if err != nil || !pay.ContradictedAt.IsZero() {
		return pay, err
	}
	o := provider.Outcome{Class: provider.Accepted, State: provider.Failed, Code: "operator", Message: reason}
	s := book.Settlement{Payment: pay, Event: book.EventReversed, Reason: provider.ReasonResolved, Note: reason, Judge: resolvedAs(!paid), Also: all(also)}
	if paid {
		o.State, s.Event = provider.Success, book.EventFoundPaid
	} else if o.Fee, o.Commission, err = p.book.Costs(ctx, pay); err != nil {
		return book.Payment{}, err
	} else {
		o.FeeKnown = true // the provider's own part goes back, too
	}
	s.Outcome = o
	done, err := p.book.Settle(ctx, s)
	if err != nil {
		return book.Payment{}, err
	}
	if done.Changed {
		p.log.Warn("operator reversed a manual resolution", "payment", pay.ID, "paid", paid, "actor", actor, "reason", reason)
	}
	return done.Payment, nil
}

// resolvedAs refuses what an operator did not end that way.
func resolvedAs(paid bool) func(book.Payment) error {
	return func(row book.Payment) error {
		want := map[bool]book.Status{true: book.StatusSuccess, false: book.StatusFailed}[paid]
		if row.Note == "" || row.Kind == book.KindCollection || row.Status != want {
			return problem.New(problem.Invalid, "not_resolved", "No operator resolved this payment as the opposite: the provider is asked about it, and its word counts")
		}
		return nil
	}
}

// Decide ends what hangs in suspense because a provider contradicted itself
// about a payout, top-up or bundle, once. One that was reversed left its amount
// there: it goes back to the tenant, or to the house. One that was refunded and
// then found paid is missing there: the tenant gives it back, or the house bears
// it.
func (p *Payments) Decide(ctx context.Context, id string, tenants bool, reason, actor string, also ...func(*db.Tx) error) error {
	pay, err := p.Find(ctx, id)
	if err != nil {
		return err
	}
	if pay.ContradictedAt.IsZero() || pay.Kind == book.KindCollection {
		return problem.New(problem.Invalid, "nothing_in_suspense", "Nothing of this payment is in suspense")
	}
	m := treasury.Movement{Asset: pay.Money(), From: ledger.Suspense, To: ledger.Fees, Amount: pay.Amount, Kind: "decide", Subject: pay.ID, Leg: LegDecided}
	if tenants {
		m.To = ledger.Wallet(pay.Tenant)
	}
	if pay.Status == book.StatusFailed {
		m.Amount = -m.Amount
	}
	// The provider may change its mind again: it is asked at the next sweep.
	again := func(tx *db.Tx) error {
		p.book.RecheckLater(tx, book.Recheck{ID: pay.ID, Due: p.clock.Now()})
		return nil
	}
	err = p.treasury.Move(ctx, m, reason, actor, append(slices.Clone(also), again)...)
	if errors.Is(err, db.ErrUnique) {
		err = problem.Wrap(err, problem.Duplicate, "decided_before", "This was decided before")
	}
	return err
}

// The legs by which what a provider took and gave is booked again when its first
// word holds after all, and our charges of a collection.
const (
	LegUpheldProviderFee = "upheld_provider_fee"
	LegUpheldCommission  = "upheld_commission"
	LegUpheldFee         = "upheld_fee"
)

// Uphold ends what is left of a contradiction whose provider has come back to the
// word that the status is: success, failed and success again; or failed, paid and
// failed again. The suspense of a payout, top-up or bundle goes back to the float, or out of it. A
// collection's credit is made once more; a debt that the tenant still has of the reversal is for
// Recover. The provider's charge is booked again: no side gains or loses. Like Decide it happens
// once.
func (p *Payments) Uphold(ctx context.Context, id, reason, actor string, also ...func(*db.Tx) error) error {
	pay, err := p.Find(ctx, id)
	if err != nil {
		return err
	}
	if err := upholdable(pay); err != nil {
		return err
	}
	if posted, err := p.book.ContradictionPosted(ctx, pay); err != nil || !posted {
		return cmp.Or(err, errNotUpheld("The reversal of the refunded collection posted nothing: nothing is to be put back"))
	}
	m, err := p.upheld(ctx, pay)
	if err != nil {
		return err
	}
	err = p.treasury.Move(ctx, m, reason, actor, also...)
	if errors.Is(err, db.ErrUnique) {
		err = problem.Wrap(err, problem.Duplicate, "decided_before", "This was decided before")
	}
	return err
}

// upholdable refuses a payment whose provider has not come back to its first word.
func upholdable(pay book.Payment) error {
	if pay.ContradictedAt.IsZero() || (pay.ProviderState() == provider.Success) != (pay.Status == book.StatusSuccess) {
		return errNotUpheld("The provider's last word about this payment is not its status")
	}
	return nil
}

func errNotUpheld(text string) error { return problem.New(problem.Invalid, "not_upheld", text) }

// upheld is what puts the money back where it was before the contradiction.
func (p *Payments) upheld(ctx context.Context, pay book.Payment) (treasury.Movement, error) {
	fee, commission, err := p.book.Costs(ctx, pay)
	if err != nil {
		return treasury.Movement{}, err
	}
	float, err := p.book.FloatOf(ctx, pay)
	m := treasury.Movement{Asset: pay.Money(), From: ledger.Suspense, To: float, Amount: pay.Amount, Kind: "uphold", Subject: pay.ID, Leg: LegDecided}
	beside := []treasury.Movement{
		{From: ledger.ProviderFees(pay.Rail), To: float, Amount: fee, Leg: LegUpheldProviderFee},
		{From: float, To: ledger.Commission(pay.Rail), Amount: commission, Leg: LegUpheldCommission},
	}
	if pay.Kind == book.KindCollection {
		m.From, m.To, m.Amount = float, ledger.Wallet(pay.Tenant), pay.Net()
		beside = append(beside, treasury.Movement{From: float, To: ledger.Fees, Amount: pay.Charges, Leg: LegUpheldFee})
	}
	at, sign := p.clock.Now(), money.Pesewas(1)
	if pay.Status != book.StatusSuccess {
		sign = -1
	}
	m.Amount *= sign
	for _, b := range beside {
		if b.Amount == 0 {
			continue
		}
		b.Asset, b.Kind, b.Subject, b.Amount = m.Asset, m.Kind, m.Subject, b.Amount*sign
		m.Beside = append(m.Beside, b.Transfer(at))
	}
	return m, err
}

// References gives the ProviderReference of a client's request, whether the
// request is known here or not, and then those that further attempts had in
// earlier versions. An operator finds with them what a provider did for a request
// that the database does not know.
func (p *Payments) References(t tenant.Tenant, k book.Kind, reference string) []string {
	return p.references.all(book.Payment{Mode: string(t.Mode), Tenant: t.ID, Kind: k, Reference: reference})
}
