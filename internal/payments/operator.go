package payments

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
)

// What operators do. Each verb takes a reason, which is kept, and functions that
// run in the transaction that does it: the caller writes the audit log there.

// checkReason refuses an act that nobody explains or signs.
func checkReason(bad *problem.Fields, reason, actor string) {
	if reason == "" {
		bad.Add("reason", "is required")
	}
	if actor == "" {
		bad.Add("actor", "is required")
	}
}

// MaxStuck bounds a list of stuck payments.
const MaxStuck = 1000

const stuckPayments = `SELECT ` + paymentColumns + ` FROM payments WHERE escalated_at IS NOT NULL ORDER BY escalated_at, id LIMIT $1`

// Stuck lists the open payments that need an operator, longest first: their
// outcome is unknown, or they have been open for too long.
func (p *Payments) Stuck(ctx context.Context) ([]Payment, error) {
	return p.list(ctx, stuckPayments, MaxStuck)
}

func (p *Payments) list(ctx context.Context, sql string, args ...any) (rows []Payment, err error) {
	err = p.db.Read(ctx, func(tx *db.Tx) error {
		rows = nil
		return tx.Query(sql, args, appendPayment(&rows))
	})
	return rows, err
}

// Those gives the payments among ids by their ids, whoever's they are.
func (p *Payments) Those(ctx context.Context, ids []string) (map[string]Payment, error) {
	list, err := p.list(ctx, paymentsByID, ids)
	all := make(map[string]Payment, len(list))
	for _, pay := range list {
		all[pay.ID] = pay
	}
	return all, err
}

const findAny = `SELECT ` + paymentColumns + ` FROM payments WHERE id = $1 UNION ALL ` + paymentByProviderReference

// Find finds any tenant's payment by our id or the ProviderReference of any of
// its attempts, with hyphens or without.
func (p *Payments) Find(ctx context.Context, id string) (Payment, error) {
	if parsed, err := uuid.Parse(id); err == nil {
		id = parsed.String()
	}
	found, err := p.list(ctx, findAny, id)
	if err != nil {
		return Payment{}, err
	}
	if len(found) == 0 {
		return Payment{}, problem.New(problem.NotFound, "payment_not_found", "Payment not found")
	}
	return found[0], nil
}

// Resolve ends an open payment on an operator's word: paid says that the
// provider's statement has it as done. It posts, refunds and tells the customer
// exactly as the provider's own word would, once. It is refused with InProgress
// and RetryAfter while the payment may be on its way to the provider. What the
// provider took for itself is booked when it can be asked (see lookAgain).
func (p *Payments) Resolve(ctx context.Context, id string, paid bool, reason, actor string, also ...func(*db.Tx) error) (Payment, error) {
	o := provider.Outcome{Class: provider.Accepted, State: provider.Failed}
	if paid {
		o.State = provider.Success
	}
	return p.resolveAs(ctx, id, o, reason, actor, also)
}

// ResolvePaid is Resolve for a payment whose statement also tells what the
// provider took for it and gave us.
func (p *Payments) ResolvePaid(ctx context.Context, id string, fee, commission money.Pesewas, reason, actor string, also ...func(*db.Tx) error) (Payment, error) {
	if fee < 0 || commission < 0 {
		return Payment{}, problem.Field("provider_fee", "and commission must not be below zero")
	}
	o := provider.Outcome{Class: provider.Accepted, State: provider.Success, Fee: fee, Commission: commission, FeeKnown: true}
	return p.resolveAs(ctx, id, o, reason, actor, also)
}

func (p *Payments) resolveAs(ctx context.Context, id string, o provider.Outcome, reason, actor string, also []func(*db.Tx) error) (Payment, error) {
	var bad problem.Fields
	checkReason(&bad, reason, actor)
	if err := bad.Err(); err != nil {
		return Payment{}, err
	}
	pay, err := p.Find(ctx, id)
	if err != nil {
		return Payment{}, err
	}
	s := settlement{payment: pay, event: EventSucceeded, reason: provider.ReasonResolved, note: reason, judge: func(row Payment) error { return p.resolvable(row, o) }, also: all(also), outcome: o}
	if o.State == provider.Failed {
		s.event = EventFailed
	}
	done, err := p.settle(ctx, s)
	if err != nil {
		return Payment{}, err
	}
	if !done.changed {
		return Payment{}, problem.New(problem.InProgress, "payment_changed", "The payment changed meanwhile, it is "+done.payment.Word()+": look again")
	}
	p.log.Warn("an operator resolved a payment", "payment", pay.ID, "paid", o.State == provider.Success, "actor", actor, "reason", reason)
	return done.payment, nil
}

// onItsWay is how long after the row said that a POST may begin it may be under way,
// by the clock of any node.
const onItsWay = leaveTime + submitTime + clock.Skew

// mayLeaveSince is when the row last said that a POST may begin: at the acceptance,
// or at the mark that comes before every other POST and before a first one that is
// late.
func (p Payment) mayLeaveSince() time.Time {
	if p.SendingAt.IsZero() {
		return p.CreatedAt
	}
	return p.SendingAt
}

// resolvable refuses an operator's word that the judge does not take: about what is
// final, and about what may be on its way at this moment, which the statement that
// the word goes by cannot have yet. It is asked under the row's lock. A POST that
// comes after the word finds the row final when it is marked, and does not leave.
func (p *Payments) resolvable(row Payment, o provider.Outcome) error {
	if row.Status != StatusPending {
		return problem.New(problem.Duplicate, "payment_final", "The payment is "+row.Word()+" already")
	}
	now := p.clock.Now()
	if _, v, _ := judge(standingOf(row, provider.Rail{}), word{fromOperator, o, now}); v != verdictTooSoon {
		return nil
	}
	wait := (onItsWay - now.Sub(row.mayLeaveSince())).Truncate(time.Second) + time.Second
	e := problem.New(problem.InProgress, "payment_in_progress",
		"The payment may be on its way to the provider at this moment. Look at the provider's statement again in "+wait.String()+", then resolve it")
	e.RetryAfter = wait
	return e
}

// all joins functions into one; nil when there are none.
func all(functions []func(*db.Tx) error) func(*db.Tx) error {
	if len(functions) == 0 {
		return nil
	}
	return func(tx *db.Tx) error {
		for _, fn := range functions {
			if err := fn(tx); err != nil {
				return err
			}
		}
		return nil
	}
}

// Transfer moves money between the wallets of two tenants of one mode. It is a
// payout of the first with channel WALLET, final at once, and free of charge, and
// by the same Reference in the list of the second.
func (p *Payments) Transfer(ctx context.Context, from, to string, amount money.Pesewas, reason, actor string, also ...func(*db.Tx) error) (Payment, error) {
	var bad problem.Fields
	checkReason(&bad, reason, actor)
	if amount <= 0 {
		bad.Add("amount", "must be above zero")
	}
	if from == to {
		bad.Add("to", "must be another account")
	}
	if err := bad.Err(); err != nil {
		return Payment{}, err
	}
	giver, err := p.tenants.Get(ctx, from)
	if err != nil {
		return Payment{}, err
	}
	taker, err := p.tenants.Get(ctx, to)
	if err != nil {
		return Payment{}, err
	}
	if giver.Mode != taker.Mode {
		return Payment{}, problem.Field("to", "must be an account of the same mode")
	}
	pay := Payment{
		Tenant: giver.ID, Kind: KindPayout, Mode: string(giver.Mode), Channel: ChannelWallet, FeeBearer: string(giver.FeeBearer),
		Reference: uuid.NewString(), Amount: amount, Account: taker.ID, AccountName: taker.Name, Note: reason,
		Details: Details{To: taker.ID, Minted: true},
	}
	got := pay
	got.Tenant, got.FeeBearer, got.Account, got.AccountName, got.Details.To = taker.ID, string(taker.FeeBearer), giver.ID, giver.Name, ""
	done, err := p.accept(ctx, &acceptance{payment: pay, child: &got, also: all(also)})
	return done.payment, err
}

// Fund puts money into a tenant's wallet: it has paid us outside of Makola.
func (p *Payments) Fund(ctx context.Context, tenantID string, amount money.Pesewas, reason, actor string, also ...func(*db.Tx) error) error {
	if amount <= 0 {
		return problem.Field("amount", "must be above zero")
	}
	return p.adjust(ctx, tenantID, amount, "fund", reason, actor, also)
}

// Adjust corrects a tenant's wallet by an amount of either sign. It never takes
// more than the wallet has: InsufficientFunds.
func (p *Payments) Adjust(ctx context.Context, tenantID string, amount money.Pesewas, reason, actor string, also ...func(*db.Tx) error) error {
	if amount == 0 {
		return problem.Field("amount", "must not be zero")
	}
	return p.adjust(ctx, tenantID, amount, "adjust", reason, actor, also)
}

// Recover takes back what a tenant owes since a reversal that its wallet did not
// cover: as much as the wallet has now, or all of it. also runs in the same
// transaction and is told how much that is. Payouts that the reversal stopped
// stay stopped.
func (p *Payments) Recover(ctx context.Context, tenantID, reason, actor string, also func(tx *db.Tx, taken money.Pesewas) error) (taken money.Pesewas, err error) {
	var bad problem.Fields
	checkReason(&bad, reason, actor)
	if err := bad.Err(); err != nil {
		return 0, err
	}
	t, err := p.tenants.Get(ctx, tenantID)
	if err != nil {
		return 0, err
	}
	wallet, debt := t.Wallet(), ledger.Key{Asset: t.Money(), ID: ledger.Receivable(t.ID)}
	m := movement{asset: wallet.Asset, from: wallet.ID, to: debt.ID, kind: "recover", subject: uuid.Must(uuid.NewV7()).String(), leg: "recover"}
	at := p.clock.Now()
	err = p.db.WriteRecognising(ctx, p.booked(m), func(tx *db.Tx) error {
		page, err := p.ledger.Open(tx, wallet)
		if err != nil {
			return err
		}
		// Under the wallet's lock nobody else takes it back.
		owed, err := p.ledger.BalanceIn(tx, debt)
		if err != nil {
			return err
		}
		if owed >= 0 {
			return problem.New(problem.Invalid, "nothing_owed", "The account owes nothing")
		}
		taken = money.Pesewas(min(-owed, page.Available(wallet)))
		if taken <= 0 {
			return problem.New(problem.InsufficientFunds, "insufficient_wallet_balance", "The wallet has nothing to take it from")
		}
		m.amount = taken
		if err := page.Add(m.transfer(at)); err != nil {
			return err
		}
		page.Post()
		if also == nil {
			return nil
		}
		return also(tx, taken)
	})
	if err != nil {
		return 0, err
	}
	p.log.Warn("an operator took back what was owed", "tenant", t.ID, "amount", taken.String(), "actor", actor, "reason", reason)
	return taken, nil
}

func (p *Payments) adjust(ctx context.Context, tenantID string, amount money.Pesewas, kind, reason, actor string, also []func(*db.Tx) error) error {
	t, err := p.tenants.Get(ctx, tenantID)
	if err != nil {
		return err
	}
	return p.book(ctx, movement{asset: t.Money(), from: ledger.Funding, to: t.Wallet().ID, amount: amount, kind: kind}, reason, actor, also)
}

// AddFloat books money that was paid in at a provider (or, with a negative
// amount, taken out there).
//
// What we have at a provider is the negative of the float's balance: a
// collection that succeeds goes from float to wallet, so that the provider's
// having taken 1.00 for us reads -1.00, and a payout's success brings it back to
// zero. Money paid in therefore leaves the float, too: float -> funding.
func (p *Payments) AddFloat(ctx context.Context, rail string, mode tenant.Mode, amount money.Pesewas, reason, actor string, also ...func(*db.Tx) error) error {
	var bad problem.Fields
	if amount == 0 {
		bad.Add("amount", "must not be zero")
	}
	p.routes.CheckProvider(&bad, rail)
	if err := bad.Err(); err != nil {
		return err
	}
	return p.book(ctx, addedFloat(rail, mode, amount), reason, actor, also)
}

// AddedFloat is the transfer of AddFloat, for who books it in a transaction of
// their own under a subject and a leg; amount is not zero.
func AddedFloat(rail string, mode tenant.Mode, amount money.Pesewas, subject, leg string, at time.Time) ledger.Transfer {
	m := addedFloat(rail, mode, amount).forward()
	m.subject, m.leg = subject, leg
	return m.transfer(at)
}

func addedFloat(rail string, mode tenant.Mode, amount money.Pesewas) movement {
	return movement{asset: asset(string(mode)), from: ledger.Float(rail), to: ledger.Funding, amount: amount, kind: "add float"}
}

// LegDecided is the leg by which an operator empties suspense.
const LegDecided = "decided"

// Contradict takes back an operator's word by which a payout, top-up or bundle was
// ended, where the provider never spoke: paid says what it really was, the opposite
// of what it was resolved as. As after a provider's contradiction the amount is then
// in suspense, or missing there, and the status stays; Decide empties suspense. One
// that is contradicted already is left as it is.
func (p *Payments) Contradict(ctx context.Context, id string, paid bool, reason, actor string, also ...func(*db.Tx) error) (Payment, error) {
	var bad problem.Fields
	checkReason(&bad, reason, actor)
	if err := bad.Err(); err != nil {
		return Payment{}, err
	}
	pay, err := p.Find(ctx, id)
	if err != nil || !pay.TurnedAt.IsZero() {
		return pay, err
	}
	o := provider.Outcome{Class: provider.Accepted, State: provider.Failed, Code: "operator", Message: reason}
	s := settlement{payment: pay, event: EventReversed, reason: provider.ReasonResolved, note: reason, judge: resolvedAs(!paid), also: all(also)}
	if paid {
		o.State, s.event = provider.Success, EventFoundPaid
	} else if o.Fee, o.Commission, err = p.costs(ctx, pay); err != nil {
		return Payment{}, err
	} else {
		o.FeeKnown = true // the provider's own part goes back, too
	}
	s.outcome = o
	done, err := p.settle(ctx, s)
	if err != nil {
		return Payment{}, err
	}
	if done.changed {
		p.log.Warn("an operator took a word back", "payment", pay.ID, "paid", paid, "actor", actor, "reason", reason)
	}
	return done.payment, nil
}

// resolvedAs refuses what an operator did not end that way.
func resolvedAs(paid bool) func(Payment) error {
	return func(row Payment) error {
		want := map[bool]Status{true: StatusSuccess, false: StatusFailed}[paid]
		if row.Note == "" || row.Kind == KindCollection || row.Status != want {
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
	if pay.TurnedAt.IsZero() || pay.Kind == KindCollection {
		return problem.New(problem.Invalid, "nothing_in_suspense", "Nothing of this payment is in suspense")
	}
	m := movement{asset: asset(pay.Mode), from: ledger.Suspense, to: ledger.Fees, amount: pay.Amount, kind: "decide", subject: pay.ID, leg: LegDecided}
	if tenants {
		m.to = ledger.Wallet(pay.Tenant)
	}
	if pay.Status == StatusFailed {
		m.amount = -m.amount
	}
	// The provider may change its mind again: it is asked at the next sweep.
	again := func(tx *db.Tx) error {
		db.Insert(tx, "payment_looks", lookColumns, []look{{id: pay.ID, due: p.clock.Now()}})
		return nil
	}
	err = p.book(ctx, m, reason, actor, append(slices.Clone(also), again))
	if errors.Is(err, db.ErrUnique) {
		err = problem.Wrap(err, problem.Duplicate, "decided_before", "This was decided before")
	}
	return err
}

// The legs by which what a provider took and gave is booked again when its first
// word holds after all.
const (
	LegUpheldProviderFee = "upheld_provider_fee"
	LegUpheldCommission  = "upheld_commission"
)

// Uphold ends what hangs in suspense of a payout, top-up or bundle whose provider
// has come back to the word that the status is: success, failed and success again;
// or failed, paid and failed again. The amount goes back to the float, or out of
// it, with what the provider took and gave: nobody gains or loses. Like Decide it
// happens once.
func (p *Payments) Uphold(ctx context.Context, id, reason, actor string, also ...func(*db.Tx) error) error {
	pay, err := p.Find(ctx, id)
	if err != nil {
		return err
	}
	paid := pay.Status == StatusSuccess
	if pay.TurnedAt.IsZero() || pay.Kind == KindCollection || (pay.said() == provider.Success) != paid {
		return problem.New(problem.Invalid, "not_upheld", "The provider's last word about this payment is not its status")
	}
	fee, commission, err := p.costs(ctx, pay)
	if err != nil {
		return err
	}
	m := movement{asset: asset(pay.Mode), from: ledger.Suspense, to: ledger.Float(pay.Rail), amount: pay.Amount, kind: "uphold", subject: pay.ID, leg: LegDecided}
	costs := []movement{
		{asset: m.asset, from: ledger.ProviderFees(pay.Rail), to: ledger.Float(pay.Rail), amount: fee, kind: m.kind, subject: pay.ID, leg: LegUpheldProviderFee},
		{asset: m.asset, from: ledger.Float(pay.Rail), to: ledger.Commission(pay.Rail), amount: commission, kind: m.kind, subject: pay.ID, leg: LegUpheldCommission},
	}
	at := p.clock.Now()
	if !paid {
		m.amount = -m.amount
	}
	for _, c := range costs {
		if c.amount == 0 {
			continue
		}
		if !paid {
			c.amount = -c.amount
		}
		m.beside = append(m.beside, c.forward().transfer(at))
	}
	err = p.book(ctx, m, reason, actor, also)
	if errors.Is(err, db.ErrUnique) {
		err = problem.Wrap(err, problem.Duplicate, "decided_before", "This was decided before")
	}
	return err
}

// A movement is one transfer of an operator's; a negative amount goes the other
// way.
type movement struct {
	asset    ledger.Asset
	from, to ledger.AccountID
	amount   money.Pesewas
	kind     string
	subject  string // empty: one of its own
	leg      string
	beside   []ledger.Transfer // in the same transaction, between accounts that are sums
}

// forward turns a movement of a negative amount round.
func (m movement) forward() movement {
	if m.amount < 0 {
		m.from, m.to, m.amount = m.to, m.from, -m.amount
	}
	return m
}

// transfer is the movement in the ledger's words.
func (m movement) transfer(at time.Time) ledger.Transfer {
	return ledger.Transfer{Asset: m.asset, From: m.from, To: m.to, Amount: int64(m.amount), Subject: m.subject, Leg: m.leg, Kind: m.kind, At: at}
}

func (p *Payments) book(ctx context.Context, m movement, reason, actor string, also []func(*db.Tx) error) error {
	var bad problem.Fields
	checkReason(&bad, reason, actor)
	if err := bad.Err(); err != nil {
		return err
	}
	m = m.forward()
	if m.subject == "" {
		m.subject, m.leg = uuid.Must(uuid.NewV7()).String(), m.kind
	}
	at := p.clock.Now()
	err := p.db.WriteRecognising(ctx, p.booked(m), func(tx *db.Tx) error {
		page, err := p.ledger.Open(tx, ledger.Key{Asset: m.asset, ID: m.from}, ledger.Key{Asset: m.asset, ID: m.to})
		if err != nil {
			return err
		}
		err = page.Add(append([]ledger.Transfer{m.transfer(at)}, m.beside...)...)
		if err != nil {
			return err
		}
		page.Post()
		if then := all(also); then != nil {
			return then(tx)
		}
		return nil
	})
	switch {
	case errors.Is(err, ledger.ErrInsufficient):
		return problem.Wrap(err, problem.InsufficientFunds, "insufficient_wallet_balance", "The wallet does not cover it")
	case err == nil:
		p.log.Warn("an operator moved money", "kind", m.kind, "from", string(m.from), "to", string(m.to), "amount", m.amount.String(), "actor", actor, "reason", reason)
	}
	return err
}

const bookedAlready = `SELECT 1 FROM transfers WHERE subject = $1 AND leg = $2`

// booked looks for a movement's transfer.
func (p *Payments) booked(m movement) func(*db.Tx) (bool, error) {
	return func(tx *db.Tx) (bool, error) {
		var one int
		return tx.One(bookedAlready, []any{m.subject, m.leg}, &one)
	}
}
