package payments

import (
	"context"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/history"
)

const (
	lookAfter  = 24 * time.Hour
	lookSlack  = time.Hour // after acceptance; what is final later has a look of its own
	lookEvery  = 10 * time.Minute
	lookPause  = 2 * time.Hour // until a question that was not answered is asked again
	lookGiven  = 2 * lookAfter // after which a payment that cannot be asked about is passed over
	lookBatch  = 100
	lookSilent = 100 // questions without an answer, after which the provider is not asked again in this sweep
	lookers    = 8   // questions at once
)

// A recheckRow is a second recheckRow that has a time of its own: at a payment that became
// final long after it was accepted, or that could not be asked about in its turn.
// A payment that came back may have two.
type recheckRow struct {
	id  string
	due time.Time
}

var lookColumns = []db.Column[recheckRow]{
	{Name: "due_at", Time: func(l recheckRow) time.Time { return l.due }},
	{Name: "payment", Text: func(l recheckRow) string { return l.id }},
}

// late says that a payment became final long after its acceptance.
func (p Payment) late() bool { return !p.Status.Open() && p.SettledAt.Sub(p.CreatedAt) > lookSlack }

// recheckLater plans the second look at a payment that the sweep will have passed.
func (b *batch) recheckLater(p Payment, at time.Time) {
	if p.Rail != "" && p.late() {
		b.looks = append(b.looks, recheckRow{id: p.ID, due: at.Add(lookAfter)})
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

	looksDue = `SELECT due_at, payment FROM payment_looks WHERE due_at <= $1 ORDER BY due_at, payment LIMIT $2`

	// The range is what an index finds, whatever the plan makes of the rest.
	looksDone = `DELETE FROM payment_looks WHERE due_at BETWEEN $2 AND $3 AND (due_at, payment) IN (SELECT due_at, payment FROM rows($1) AS l)`

	paymentsByID = `SELECT ` + paymentColumns + ` FROM payments WHERE id IN (SELECT value FROM texts($1))`
)

// A round is one run of the sweep. A payment without an answer comes again later
// and holds up nothing behind it, and a provider that is silent is left alone
// until the next round.
type round struct {
	p          *Payments
	began      time.Time
	unanswered map[railKind]int // questions since the last answer
}

// sweep takes the second look at all that is due. It runs every ten minutes on
// one node.
func (p *Payments) sweep(ctx context.Context) error {
	if err := p.claims(ctx); err != nil {
		return err
	}
	r := &round{p: p, began: p.clock.Now(), unanswered: map[railKind]int{}}
	var lists []history.List
	var done []int64
	err := p.db.Read(ctx, func(tx *db.Tx) error {
		lists, done = nil, nil
		return tx.Query(sweepLists, nil, func(r *db.Row) error {
			var l history.List
			var n int64
			err := r.Scan(&l.Tenant, &l.Kind, &n)
			lists, done = append(lists, l), append(done, n)
			return err
		})
	})
	for i := 0; err == nil && i < len(lists); i++ {
		err = r.list(ctx, lists[i], done[i])
	}
	if err == nil {
		err = r.looks(ctx)
	}
	return err
}

// list looks at the next payments of a list that are old enough.
func (r *round) list(ctx context.Context, l history.List, done int64) error {
	for {
		now := r.p.clock.Now()
		rows, err := r.p.list(ctx, sweepNext, l.Tenant, l.Kind, done, lookBatch)
		if err != nil {
			return err
		}
		var ripe []Payment
		for _, pay := range rows {
			age := now.Sub(pay.CreatedAt)
			if age < lookAfter+lookSlack && age >= -clock.Skew {
				break
			}
			ripe = append(ripe, pay)
		}
		if len(ripe) == 0 {
			return ctx.Err()
		}
		// One that is open is followed by its job, and will be late.
		again := r.ask(ctx, ripe, func(pay Payment) bool { return pay.Status.Open() || pay.late() || pay.CreatedAt.After(now) })
		for _, pay := range ripe {
			if pay.CreatedAt.After(now) { // by a clock that ran ahead, at an unknown time
				again = append(again, recheckRow{id: pay.ID, due: now.Add(lookAfter + lookSlack)})
			}
		}
		done = ripe[len(ripe)-1].Seq
		err = r.p.db.Write(ctx, func(tx *db.Tx) error {
			db.Insert(tx, "payment_looks", lookColumns, again)
			_, err := tx.Exec(sweepDone, l.Tenant+"/"+l.Kind, done)
			return err
		})
		if err != nil || len(ripe) < lookBatch {
			return err
		}
	}
}

// looks takes the looks that have a time of their own, as far as they were due when
// the round began.
func (r *round) looks(ctx context.Context) error {
	for {
		var due []recheckRow
		var rows []Payment
		err := r.p.db.Read(ctx, func(tx *db.Tx) error {
			due, rows = nil, nil
			err := tx.Query(looksDue, []any{r.began, lookBatch}, func(row *db.Row) error {
				var l recheckRow
				err := row.Scan(&l.due, &l.id)
				due = append(due, l)
				return err
			})
			if err != nil || len(due) == 0 {
				return err
			}
			ids := map[string]bool{} // one that came back may be due twice
			for _, l := range due {
				ids[l.id] = true
			}
			return tx.Query(paymentsByID, []any{keysOf(ids)}, appendPayment(&rows))
		})
		if err != nil || len(due) == 0 {
			return err
		}
		again := r.ask(ctx, rows, func(Payment) bool { return false })
		err = r.p.db.Write(ctx, func(tx *db.Tx) error {
			if _, err := tx.Exec(looksDone, db.RowsOf(lookColumns, due), due[0].due, due[len(due)-1].due); err != nil {
				return err
			}
			db.Insert(tx, "payment_looks", lookColumns, again)
			return nil
		})
		if err != nil || len(due) < lookBatch {
			return err
		}
	}
}

// ask looks at payments, a few at once, and plans another look at what could not
// be asked about, but not for ever. What was not asked now comes before what was.
func (r *round) ask(ctx context.Context, rows []Payment, skip func(Payment) bool) (again []recheckRow) {
	answered := make([]bool, len(rows))
	asked := make([]bool, len(rows))
	slots := make(chan struct{}, lookers)
	var group sync.WaitGroup
	for i, pay := range rows {
		answered[i] = skip(pay)
		if answered[i] || r.unanswered[railKindOf(pay)] >= lookSilent {
			continue
		}
		asked[i] = true
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			var err error
			answered[i], err = r.p.recheck(ctx, pay)
			if err != nil {
				answered[i] = false
				r.p.log.Error("a final payment could not be looked at again", "payment", pay.ID, "error", err)
			}
		})
	}
	group.Wait()
	now := r.p.clock.Now()
	for i, pay := range rows {
		given := now.Sub(pay.CreatedAt) > lookGiven && now.Sub(pay.SettledAt) > lookGiven
		switch {
		case asked[i] && answered[i]:
			r.unanswered[railKindOf(pay)] = 0
		case answered[i]:
		case asked[i]:
			r.unanswered[railKindOf(pay)]++
			if !given {
				again = append(again, recheckRow{id: pay.ID, due: now.Add(lookPause)})
			}
		default:
			again = append(again, recheckRow{id: pay.ID, due: now.Add(lookEvery)})
		}
	}
	return again
}
