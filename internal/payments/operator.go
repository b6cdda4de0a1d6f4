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

// Each operator's function takes a reason, which is stored. The functions in also run in its transaction, such as to
// write the audit log.

// Resolve makes an open payment final by an operator's decision. paid means that the provider's statement shows the
// payment as done. Resolve posts, refunds and sends the webhook once, like a provider's status. It returns InProgress
// with RetryAfter while a submission may be running. The provider's fee is posted when a later query reports it (see
// recheck).
func (p *Payments) Resolve(ctx context.Context, id string, paid bool, reason, actor string, also ...func(*db.Tx) error) (book.Payment, error) {
	o := provider.Outcome{Class: provider.Accepted, State: provider.Failed}
	if paid {
		o.State = provider.Success
	}
	return p.resolveAs(ctx, id, o, reason, actor, also)
}

// ResolvePaid is Resolve as paid, with the provider's fee and commission from its statement.
func (p *Payments) ResolvePaid(ctx context.Context, id string, fee, commission money.Pesewas, reason, actor string, also ...func(*db.Tx) error) (book.Payment, error) {
	o, err := paidWith(fee, commission)
	if err != nil {
		return book.Payment{}, err
	}
	return p.resolveAs(ctx, id, o, reason, actor, also)
}

func paidWith(fee, commission money.Pesewas) (provider.Outcome, error) {
	if fee < 0 || commission < 0 {
		return provider.Outcome{}, problem.Field("provider_fee", "and commission must not be below zero")
	}
	return provider.Outcome{Class: provider.Accepted, State: provider.Success, Fee: fee, Commission: commission, FeeKnown: true}, nil
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
	s := book.Settlement{Payment: pay, Event: book.EventSucceeded, Reason: provider.ReasonResolved, Note: reason, Guard: func(row book.Payment) error { return p.resolvable(row, o) }, InTx: all(also), Outcome: o}
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

// takeoverWait is the RetryAfter for an operator if a server must first take over the payment.
const takeoverWait = 30 * time.Second

// resolvable refuses an operator's decision about a final payment, or about a payment with a submission that may be
// running. The provider's statement cannot show such a submission yet. row must be locked. After the decision, later
// submissions find the row final and are not sent.
func (p *Payments) resolvable(row book.Payment, o provider.Outcome) error {
	if row.Status != book.StatusPending {
		return problem.New(problem.Duplicate, "payment_final", "The payment is "+row.PublicStatus()+" already")
	}
	if row.AwaitsApproval() {
		return errWaits()
	}
	if _, v, _ := judge(evidenceOf(row, provider.Rail{}, 0), report{from: fromOperator, outcome: o}); v != verdictTooSoon {
		return nil
	}
	// The server that follows the payment decides by its monotonic clock. The wall clock of this process
	// gives only an estimate.
	wait := (onItsWay - p.clock.Since(row.SubmittableSince())).Truncate(time.Second) + time.Second
	first := ""
	if wait <= 0 || wait > onItsWay {
		wait, first = takeoverWait, "A running server follows the payment for two minutes first. "
	}
	e := problem.New(problem.InProgress, "payment_in_progress",
		"The payment may be on its way to the provider at this moment. "+first+"Look at the provider's statement again in "+wait.String()+", then resolve it")
	e.RetryAfter = wait
	return e
}

// Resolvable returns the refusal that Resolve would return for this row.
func (p *Payments) Resolvable(pay book.Payment, paid bool) error {
	o := provider.Outcome{Class: provider.Accepted, State: provider.Failed}
	if paid {
		o.State = provider.Success
	}
	return p.resolvable(pay, o)
}

// Transfer moves money between the wallets of two tenants of one mode, without charges. The sender's side is a final
// payout with channel WALLET. The receiver's list shows it under the same Reference.
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
		Details: book.Details{To: taker.ID, Generated: true},
	}
	got := pay
	got.Tenant, got.FeeBearer, got.Account, got.AccountName, got.Details.To = taker.ID, string(taker.FeeBearer), giver.ID, giver.Name, ""
	done, err := p.accept(ctx, &request{Acceptance: book.Acceptance{Payment: pay, Child: &got, InTx: all(also)}})
	return done.Payment, err
}

// LegDecided is the ledger leg of an operator's decision about money in suspense.
const LegDecided = "decided"

// Contradict reverses an operator's resolution of a payout, top-up or bundle. paid is the true result. The provider
// must never have reported a final state of the payment. As after a provider's contradiction, the status stays. The
// amount moves to or from suspense, and Decide clears it. A second contradiction of a payment is refused.
func (p *Payments) Contradict(ctx context.Context, id string, paid bool, reason, actor string, also ...func(*db.Tx) error) (book.Payment, error) {
	o := provider.Outcome{Class: provider.Accepted, State: provider.Failed}
	if paid {
		o.State = provider.Success
	}
	return p.contradictAs(ctx, id, o, reason, actor, also)
}

// ContradictPaid is Contradict as paid, with the provider's fee and commission from its statement.
func (p *Payments) ContradictPaid(ctx context.Context, id string, fee, commission money.Pesewas, reason, actor string, also ...func(*db.Tx) error) (book.Payment, error) {
	o, err := paidWith(fee, commission)
	if err != nil {
		return book.Payment{}, err
	}
	return p.contradictAs(ctx, id, o, reason, actor, also)
}

func (p *Payments) contradictAs(ctx context.Context, id string, o provider.Outcome, reason, actor string, also []func(*db.Tx) error) (book.Payment, error) {
	var bad problem.Fields
	treasury.CheckSigned(&bad, reason, actor)
	if err := bad.Err(); err != nil {
		return book.Payment{}, err
	}
	pay, err := p.Find(ctx, id)
	if err != nil {
		return pay, err
	}
	o.Code, o.Message = "operator", reason
	paid := o.State == provider.Success
	s := book.Settlement{Payment: pay, Event: book.EventReversed, Reason: provider.ReasonResolved, Note: reason, Guard: resolvedAs(!paid), InTx: all(also)}
	if paid {
		s.Event = book.EventFoundPaid
	} else if o.Fee, o.Commission, err = p.book.Costs(ctx, pay); err != nil {
		return book.Payment{}, err
	} else {
		o.FeeKnown = true // the settlement also undoes the provider's costs
	}
	s.Outcome = o
	done, err := p.book.Settle(ctx, s)
	if err := changed(done, err); err != nil {
		return book.Payment{}, err
	}
	p.log.Warn("operator reversed a manual resolution", "payment", pay.ID, "paid", paid, "actor", actor, "reason", reason)
	return done.Payment, nil
}

// CodeContradicted is the code of the refusal to contradict a payment a second time.
const CodeContradicted = "contradicted_before"

// ErrContradicted refuses a second contradiction of a payment.
func ErrContradicted() error {
	return problem.New(problem.Duplicate, CodeContradicted, "A contradiction of this payment is already recorded")
}

// resolvedAs returns a guard. The guard refuses a payment that no operator resolved with this result, and a payment
// that is contradicted already.
func resolvedAs(paid bool) func(book.Payment) error {
	return func(row book.Payment) error {
		want := map[bool]book.Status{true: book.StatusSuccess, false: book.StatusFailed}[paid]
		if row.Note == "" || row.Kind == book.KindCollection || row.Status != want {
			return problem.New(problem.Invalid, "not_resolved", "No operator set this outcome of the payment. Makola queries its provider for the status")
		}
		if !row.ContradictedAt.IsZero() {
			return ErrContradicted()
		}
		return nil
	}
}

// Decide moves the amount of a contradicted payout, top-up or bundle out of suspense, once. The amount of a reversed
// payment goes to the tenant or to the installation's own account. The missing amount of a payment found paid comes
// from the tenant or from the installation's own account.
func (p *Payments) Decide(ctx context.Context, id string, tenants bool, reason, actor string, also ...func(*db.Tx) error) error {
	pay, err := p.Find(ctx, id)
	if err != nil {
		return err
	}
	if pay.ContradictedAt.IsZero() || pay.Kind == book.KindCollection {
		return problem.New(problem.Invalid, "nothing_in_suspense", "This payment has no money in suspense")
	}
	m := treasury.Movement{Asset: pay.Money(), From: ledger.Suspense, To: ledger.Fees, Amount: pay.Amount, Kind: "decide", Subject: pay.ID, Leg: LegDecided}
	if tenants {
		m.To = ledger.Wallet(pay.Tenant)
	}
	if pay.Status == book.StatusFailed {
		m.Amount = -m.Amount
	}
	// The provider may contradict itself again, so the next sweep queries it.
	again := func(tx *db.Tx) error {
		p.book.RecheckLater(tx, book.Recheck{ID: pay.ID, Due: p.clock.Now()})
		return nil
	}
	err = p.treasury.Move(ctx, m, reason, actor, append(slices.Clone(also), again)...)
	if errors.Is(err, db.ErrUnique) {
		err = problem.Wrap(err, problem.Duplicate, "decided_before", "An operator has already decided about this payment")
	}
	return err
}

// Legs of Uphold: they post a provider's costs, and our charges of a collection, a second time.
const (
	LegUpheldProviderFee = "upheld_provider_fee"
	LegUpheldCommission  = "upheld_commission"
	LegUpheldFee         = "upheld_fee"
)

// Uphold ends a contradiction whose provider has returned to the stored status, such as success, failed, success. The
// amount of a payout, top-up or bundle moves between suspense and the float. A collection is credited once more;
// Recover collects a remaining debt of the tenant. Uphold posts the provider's costs again, so that no side gains or
// loses. Like Decide, it works once for a payment.
func (p *Payments) Uphold(ctx context.Context, id, reason, actor string, also ...func(*db.Tx) error) error {
	pay, err := p.Find(ctx, id)
	if err != nil {
		return err
	}
	if err := upholdable(pay); err != nil {
		return err
	}
	if posted, err := p.book.ContradictionPosted(ctx, pay); err != nil || !posted {
		return cmp.Or(err, errNotUpheld("The reversal of the refunded collection posted nothing, so nothing can be restored"))
	}
	m, err := p.upheld(ctx, pay)
	if err != nil {
		return err
	}
	err = p.treasury.Move(ctx, m, reason, actor, also...)
	if errors.Is(err, db.ErrUnique) {
		err = problem.Wrap(err, problem.Duplicate, "decided_before", "An operator has already decided about this payment")
	}
	return err
}

// upholdable returns an error unless the provider has returned to its first report.
func upholdable(pay book.Payment) error {
	if pay.ContradictedAt.IsZero() || (pay.ProviderState() == provider.Success) != (pay.Status == book.StatusSuccess) {
		return errNotUpheld("The provider's last report about this payment contradicts its status")
	}
	return nil
}

func errNotUpheld(text string) error { return problem.New(problem.Invalid, "not_upheld", text) }

// upheld returns the transfer that undoes the contradiction.
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

// References returns the ProviderReferences that a client's request can have, including those that earlier versions
// gave to further attempts. Operators use them to search a provider for a request that the database does not have.
func (p *Payments) References(t tenant.Tenant, k book.Kind, reference string) []string {
	return p.references.all(book.Payment{Mode: string(t.Mode), Tenant: t.ID, Kind: k, Reference: reference})
}
