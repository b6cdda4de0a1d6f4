package payments

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// A provider's final word is not always its last. Every final payment is asked
// about once more when it is a day old, and whenever a callback speaks of it.
// What contradicts the stored word never changes it silently: money that comes
// late to a collection is credited, and everything else goes through suspense to
// an operator.

const (
	lookAfter = 24 * time.Hour
	lookSlack = time.Hour // after acceptance; what is final later has a look of its own
	lookEvery = 10 * time.Minute
	lookGiven = 2 * lookAfter // after which a payment that cannot be asked about is passed over
	lookBatch = 100
	lookers   = 8 // questions at once
)

// lookAgain asks about a final payment and acts on a contradiction. asked is
// false when the provider could not be asked.
func (p *Payments) lookAgain(ctx context.Context, pay Payment) (asked bool, err error) {
	if pay.Status.Open() || pay.Rail == "" {
		return true, nil
	}
	rail, ok := p.routes.Rail(pay.Rail, pay.Mode)
	if !ok {
		return true, nil
	}
	o := p.ask(ctx, rail, pay)
	s, found := contradiction(pay, o)
	if !found {
		if pay.Status == StatusSuccess && pay.TurnedAt.IsZero() && o.Final() && o.State == provider.Success && o.FeeKnown {
			err = p.bookCosts(ctx, pay, o.Fee, o.Commission)
		}
		return o.Class == provider.Accepted || o.NotFound || o.Reason == provider.ReasonMismatch, err
	}
	if s.event == EventReversed {
		// The provider takes its own part back, too.
		if s.outcome.Fee, s.outcome.Commission, err = p.costs(ctx, pay); err != nil {
			return true, err
		}
		s.outcome.FeeKnown = true
	}
	done, err := p.settle(ctx, s)
	if err != nil || !done.changed {
		return true, err
	}
	p.log.Error("a provider contradicts its own final word", "payment", pay.ID, "tenant", pay.Tenant, "kind", string(pay.Kind),
		"provider", pay.Rail, "provider_reference", pay.AttemptReference, "was", string(pay.Status), "event", string(s.event))
	p.metrics.contradicted(pay, s.event)
	return true, nil
}

// contradiction turns a provider's answer about a final payment into the arrow
// that it asks for, if it says the opposite of what is stored.
func contradiction(pay Payment, o provider.Outcome) (settlement, bool) {
	if !o.Final() || !pay.TurnedAt.IsZero() {
		return settlement{}, false
	}
	s := settlement{payment: pay, outcome: o}
	switch {
	case pay.Status == StatusSuccess && o.State == provider.Failed:
		s.event = EventReversed
	case pay.Status != StatusSuccess && o.State == provider.Success && pay.Kind == KindCollection:
		s.event = EventPaidLate
	case pay.Status != StatusSuccess && o.State == provider.Success:
		s.event = EventFoundPaid
	default:
		return settlement{}, false
	}
	return s, true
}

// The legs by which a reversal takes back what the provider took or gave.
const (
	LegTurnedProviderFee = "turned_provider_fee"
	LegTurnedCommission  = "turned_commission"
)

// turnedCosts posts the provider's own part of a contradiction, so that the
// float agrees with the provider's book: taken back with a reversal, booked with
// what is found paid.
func (b *batch) turnedCosts(p Payment, s *settlement) error {
	if s.event != EventReversed {
		return b.providerCosts(p, s)
	}
	var transfers []ledger.Transfer
	add := func(leg string, from, to ledger.AccountID, amount money.Pesewas) {
		if amount > 0 {
			transfers = append(transfers, transfer(p, s.event, leg, from, to, int64(amount), s.at))
		}
	}
	add(LegTurnedProviderFee, ledger.Float(p.Rail), ledger.ProviderFees(p.Rail), s.outcome.Fee)
	add(LegTurnedCommission, ledger.Commission(p.Rail), ledger.Float(p.Rail), s.outcome.Commission)
	return b.add(p, transfers...)
}

// costs reads what a provider took and gave for a payment, as it is booked.
func (p *Payments) costs(ctx context.Context, pay Payment) (fee, commission money.Pesewas, err error) {
	transfers, err := p.ledger.OfSubject(ctx, pay.ID)
	for _, t := range transfers {
		switch t.Leg {
		case LegProviderFee:
			fee = money.Pesewas(t.Amount)
		case LegCommission:
			commission = money.Pesewas(t.Amount)
		}
	}
	return fee, commission, err
}

const paymentLocked = `SELECT ` + paymentColumns + ` FROM payments WHERE id = $1 FOR UPDATE`

// bookCosts books a provider's fee and commission of a success where that is
// not done yet: an operator who resolves a payment may not know them.
func (p *Payments) bookCosts(ctx context.Context, pay Payment, fee, commission money.Pesewas) error {
	if fee <= 0 && commission <= 0 {
		return nil
	}
	there, gave, err := p.costs(ctx, pay)
	if err != nil || there > 0 || gave > 0 {
		return err
	}
	at := p.clock.Now()
	err = p.db.Write(ctx, func(tx *db.Tx) error {
		var rows []Payment
		if err := tx.Query(paymentLocked, []any{pay.ID}, appendPayment(&rows)); err != nil {
			return err
		}
		if len(rows) == 0 || rows[0].Status != StatusSuccess || !rows[0].TurnedAt.IsZero() {
			return nil
		}
		page, err := p.ledger.Open(tx)
		if err != nil {
			return err
		}
		b := &batch{p: p, page: page}
		s := settlement{event: EventSucceeded, at: at, outcome: provider.Outcome{Fee: fee, Commission: commission, FeeKnown: true}}
		if err := b.providerCosts(rows[0], &s); err != nil {
			return err
		}
		page.Post()
		return nil
	})
	if errors.Is(err, db.ErrUnique) || errors.Is(err, db.ErrAmbiguous) {
		return nil // booked before, or the next look books it
	}
	return err
}

// A look is a second look at a payment that became final long after it was
// accepted.
type look struct {
	id  string
	due time.Time
}

var lookColumns = []db.Column[look]{
	{Name: "due_at", Time: func(l look) time.Time { return l.due }},
	{Name: "payment", Text: func(l look) string { return l.id }},
}

// late says that a payment became final long after its acceptance.
func (p Payment) late() bool { return !p.Status.Open() && p.SettledAt.Sub(p.CreatedAt) > lookSlack }

// lookLater plans the second look at a payment that the sweep will have passed.
func (b *batch) lookLater(p Payment, at time.Time) {
	if p.Rail != "" && p.late() {
		b.looks = append(b.looks, look{id: p.ID, due: at.Add(lookAfter)})
	}
}

const (
	// The lists that have grown since they were swept.
	sweepLists = `SELECT e.tenant, e.kind, COALESCE(s.done_until, 0) FROM payment_ends AS e
LEFT JOIN payment_sweeps AS s ON s.name = e.tenant || '/' || e.kind
WHERE e.total > COALESCE(s.done_until, 0) ORDER BY e.tenant, e.kind`

	sweepNext = `SELECT ` + paymentColumns + ` FROM payments WHERE tenant = $1 AND kind = $2 AND seq > $3 ORDER BY seq LIMIT $4`

	sweepDone = `INSERT INTO payment_sweeps (name, done_until) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET done_until = excluded.done_until`

	looksDue = `SELECT ` + paymentColumns + ` FROM payment_looks JOIN payments ON payments.id = payment_looks.payment
WHERE payment_looks.due_at <= $1 ORDER BY payment_looks.due_at, payment_looks.payment LIMIT $2`

	looksDone = `DELETE FROM payment_looks WHERE payment IN (SELECT value FROM texts($1))`
)

// sweep takes the second look at all that is due. It runs every ten minutes on
// one node.
func (p *Payments) sweep(ctx context.Context) error {
	var lists []listKey
	var done []int64
	err := p.db.Read(ctx, func(tx *db.Tx) error {
		lists, done = nil, nil
		return tx.Query(sweepLists, nil, func(r *db.Row) error {
			var k listKey
			var n int64
			err := r.Scan(&k.tenant, &k.kind, &n)
			lists, done = append(lists, k), append(done, n)
			return err
		})
	})
	for i := 0; err == nil && i < len(lists); i++ {
		err = p.sweepList(ctx, lists[i], done[i])
	}
	if err == nil {
		err = p.sweepLooks(ctx)
	}
	if err == nil {
		err = p.pruneOffers(ctx)
	}
	return err
}

// sweepList looks at the next payments of a list that are old enough. It stops
// at one that cannot be asked about now.
func (p *Payments) sweepList(ctx context.Context, k listKey, done int64) error {
	for {
		now := p.clock.Now()
		rows, err := p.list(ctx, sweepNext, k.tenant, k.kind, done, lookBatch)
		if err != nil {
			return err
		}
		var ripe []Payment
		for _, pay := range rows {
			if now.Sub(pay.CreatedAt) < lookAfter+lookSlack {
				break
			}
			ripe = append(ripe, pay)
		}
		// One that is open is followed by its job, and will be late.
		answered := p.lookAtAll(ctx, ripe, func(pay Payment) bool { return pay.Status.Open() || pay.late() })
		passed := 0
		for passed < len(ripe) && answered[passed] {
			passed++
		}
		if passed > 0 {
			done = ripe[passed-1].Seq
			err := p.db.Write(ctx, func(tx *db.Tx) error {
				_, err := tx.Exec(sweepDone, k.tenant+"/"+string(k.kind), done)
				return err
			})
			if err != nil {
				return err
			}
		}
		if passed < lookBatch {
			return ctx.Err()
		}
	}
}

// sweepLooks looks at the payments that became final late.
func (p *Payments) sweepLooks(ctx context.Context) error {
	for {
		rows, err := p.list(ctx, looksDue, p.clock.Now(), lookBatch)
		if err != nil {
			return err
		}
		var ids []string
		for i, ok := range p.lookAtAll(ctx, rows, func(Payment) bool { return false }) {
			if ok {
				ids = append(ids, rows[i].ID)
			}
		}
		if len(ids) > 0 {
			err := p.db.Write(ctx, func(tx *db.Tx) error {
				_, err := tx.Exec(looksDone, ids)
				return err
			})
			if err != nil {
				return err
			}
		}
		if len(ids) < lookBatch {
			return ctx.Err()
		}
	}
}

// lookAtAll looks at payments, a few at once, and says of which that is done.
// One that cannot be asked about comes again, but not for ever.
func (p *Payments) lookAtAll(ctx context.Context, rows []Payment, skip func(Payment) bool) []bool {
	done := make([]bool, len(rows))
	slots := make(chan struct{}, lookers)
	var group sync.WaitGroup
	for i, pay := range rows {
		if skip(pay) {
			done[i] = true
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			asked, err := p.lookAgain(ctx, pay)
			if err != nil {
				p.log.Error("a final payment could not be looked at again", "payment", pay.ID, "error", err)
			}
			done[i] = err == nil && (asked || p.clock.Since(pay.CreatedAt) > lookGiven && p.clock.Since(pay.SettledAt) > lookGiven)
		})
	}
	group.Wait()
	return done
}
