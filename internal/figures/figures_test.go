package figures

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/test/dbtest"
)

var morning = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// fixture has payments without a ledger, which a test changes as package payments does.
type fixture struct {
	*Figures
	t     testing.TB
	clock *clock.Clock
	rows  []payment
	made  map[list]int64
}

func open(t testing.TB, d *db.DB) *fixture {
	c := clock.NewManual(morning)
	return &fixture{Figures: New(d, c), t: t, clock: c, made: map[list]int64{}}
}

type row struct {
	payment
	id string
}

var rowColumns = []db.Column[row]{
	{Name: "id", Text: func(r row) string { return r.id }},
	{Name: "tenant", Text: func(r row) string { return r.tenant }},
	{Name: "kind", Text: func(r row) string { return string(r.kind) }},
	{Name: "seq", Int: func(r row) int64 { return r.seq }},
	{Name: "mode", Text: func(r row) string { return r.mode }},
	{Name: "status", Text: func(r row) string { return string(r.status) }},
	{Name: "rail", Text: func(r row) string { return r.rail }},
	{Name: "amount", Int: func(r row) int64 { return r.amount }},
	{Name: "charges", Int: func(r row) int64 { return r.charges }},
	{Name: "created_at", Time: func(r row) time.Time { return r.at }},
	{Name: "settled_at", Int: func(r row) int64 {
		if r.open() {
			return 0
		}
		return db.Micros(r.at)
	}},
	{Name: "parent", Text: func(r row) string {
		if r.status == book.StatusWaiting {
			return "parent"
		}
		return ""
	}},
}

const (
	insertPayments = `INSERT INTO payments (id, tenant, kind, seq, mode, status, rail, amount, charges, created_at, settled_at, parent,
channel, reference, provider_reference, fee_bearer, plan, account, account_name, bank_id, label, callback_url, access_key, idempotency_hash, child, details)
SELECT r.id, r.tenant, r.kind, r.seq, r.mode, r.status, r.rail, r.amount, r.charges, r.created_at, r.settled_at, r.parent,
'MTN', r.id, r.id, 'merchant', 1, '', '', '', '', '', '', '', '', '' FROM rows($1) AS r`
	upsertEnds = `INSERT INTO payment_ends (tenant, kind, total, last_at) VALUES ($1, $2, $3, 0) ON CONFLICT (tenant, kind) DO UPDATE SET total = excluded.total`
	setStatus  = `UPDATE payments SET status = $2, rail = $3, settled_at = $4 WHERE id = $1`
	paidLater  = `INSERT INTO payment_contradictions (id, payment, tenant, kind, event, said, code, message, at) VALUES ($1, $1, $2, $3, 'paid_late', 'success', '', '', $4)`
	// The figures as a plain sum over the payments.
	oracle = `SELECT tenant, mode, kind, status, rail, created_at, amount, charges FROM payments`
	kept   = `SELECT tenant, at, mode, kind, status, rail, n, amount, charges FROM %s WHERE n > 0`
)

func (p payment) id() string { return fmt.Sprintf("%s-%s-%06d", p.tenant, p.kind, p.seq) }

func (f *fixture) write(fn func(tx *db.Tx) error) {
	f.t.Helper()
	if err := f.db.Write(f.t.Context(), fn); err != nil {
		f.t.Fatal(err)
	}
}

// add accepts payments.
func (f *fixture) add(list ...payment) {
	f.t.Helper()
	var rows []row
	for i := range list {
		f.made[list[i].list]++
		list[i].seq = f.made[list[i].list]
		rows = append(rows, row{list[i], list[i].id()})
	}
	f.rows = append(f.rows, list...)
	f.write(func(tx *db.Tx) error {
		for l, n := range f.made {
			tx.Defer(upsertEnds, 1, l.tenant, l.kind, n)
		}
		tx.Defer(insertPayments, int64(len(rows)), db.RowsOf(rowColumns, rows))
		return nil
	})
}

// set returns a payment another status and rail.
func (f *fixture) set(i int, status book.Status, rail string) {
	f.t.Helper()
	p := &f.rows[i]
	late := p.unpaid() && status == book.StatusSuccess
	p.status, p.rail = status, rail
	settled := f.clock.Now()
	if p.open() {
		settled = time.Time{}
	}
	f.write(func(tx *db.Tx) error {
		tx.Defer(setStatus, 1, p.id(), status, rail, db.Micros(settled))
		if late {
			tx.Defer(paidLater, 1, p.id(), p.tenant, p.kind, db.Micros(f.clock.Now()))
		}
		return nil
	})
}

// wanted computes the sums of the payments.
func (f *fixture) wanted() (hours, days cells) {
	f.t.Helper()
	d := newDifference(f.clock.Now())
	err := f.db.Read(f.t.Context(), func(tx *db.Tx) error {
		return tx.Query(oracle, nil, func(r *db.Row) error {
			var p payment
			err := r.Scan(&p.tenant, &p.mode, &p.kind, &p.status, &p.rail, &p.at, &p.amount, &p.charges)
			p.seq = 1
			d.count(p, 1)
			return err
		})
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return d.hours, d.days
}

// has reads a table of sums.
func (f *fixture) has(table string) cells {
	f.t.Helper()
	found := cells{}
	err := f.db.Read(f.t.Context(), func(tx *db.Tx) error {
		return tx.Query(fmt.Sprintf(kept, table), nil, func(r *db.Row) error {
			var k cell
			var s sum
			err := r.Scan(&k.tenant, &k.at, &k.mode, &k.kind, &k.status, &k.rail, &s.n, &s.amount, &s.charges)
			found[k] = s
			return err
		})
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return found
}

// right fails the test unless the figures equal the sums over the payments.
func (f *fixture) right(when string) {
	f.t.Helper()
	hours, days := f.wanted()
	if has := f.has("figures_hours"); !maps.Equal(has, hours) {
		f.t.Fatalf("%s: the hours have\n%v\nwant\n%v", when, has, hours)
	}
	if has := f.has("figures_days"); !maps.Equal(has, days) {
		f.t.Fatalf("%s: the days have\n%v\nwant\n%v", when, has, days)
	}
}

func (f *fixture) sum() {
	f.t.Helper()
	if err := f.Sum(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) payout() payment {
	return payment{list: list{"adom", book.KindPayout}, mode: "test", status: book.StatusPending, rail: "mtn", amount: 1000, charges: 10, at: f.clock.Now()}
}

// A payment counts in the hour of its acceptance, with its current status.
func TestSum_laterStatusCountsInFirstHour(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.clock.Advance(59 * time.Minute)
		f.add(f.payout())
		f.sum()
		f.clock.Advance(63 * time.Minute)
		f.set(0, book.StatusSuccess, "hubtel")
		f.sum()
		list, err := f.Hours(t.Context(), Span{Tenant: "adom", Mode: "test", From: morning, To: morning.Add(24 * time.Hour)})
		if want := []Figure{{morning, book.KindPayout, book.StatusSuccess, "hubtel", 1, 1000, 10}}; err != nil || !slices.Equal(list, want) {
			t.Errorf("the figures are %+v (%v), want %+v", list, err, want)
		}
		to, err := f.CountedTo(t.Context())
		if err != nil || !to.Equal(f.clock.Now()) {
			t.Errorf("complete to %s (%v), want %s", to, err, f.clock.Now())
		}
	})
}

// A collection that is paid late changes the figures once, in any number of passes.
func TestSum_paidLateMovesOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		for _, s := range []book.Status{book.StatusFailed, book.StatusDeclined, book.StatusInvalid, book.StatusPending} {
			p := f.payout()
			p.kind, p.status = book.KindCollection, s
			f.add(p)
		}
		f.sum()
		f.clock.Advance(30 * time.Hour)
		f.set(1, book.StatusSuccess, "mtn")
		f.set(3, book.StatusFailed, "mtn") // it fails and is paid late before any pass has read it
		f.set(3, book.StatusSuccess, "mtn")
		for range 3 {
			f.sum()
			f.right("after a late payment")
		}
	})
}

// Open payments are counted by their age.
func TestOpen_byAge(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.add(f.payout())
		f.clock.Advance(time.Hour - time.Second)
		f.add(f.payout(), f.payout())
		f.sum()
		groups, err := f.Open(t.Context(), "test")
		if want := []Age{{2, 2000}, {}, {1, 1000}, {}, {}}; err != nil || !slices.Equal(groups, want) {
			t.Errorf("open are %v (%v), want %v", groups, err, want)
		}
	})
}

// The statuses that follow pending. A payment that stays pending is given to another rail.
var settled = map[book.Kind][]book.Status{
	book.KindCollection: {book.StatusPending, book.StatusSuccess, book.StatusFailed, book.StatusDeclined, book.StatusInvalid},
	book.KindPayout:     {book.StatusPending, book.StatusSuccess, book.StatusFailed},
	book.KindTopUp:      {book.StatusPending, book.StatusSuccess, book.StatusFailed},
}

// step makes one random change of the payments.
func (f *fixture) step(r *rand.Rand) {
	if len(f.rows) > 0 && r.IntN(3) > 0 {
		i := r.IntN(len(f.rows))
		p, rail := f.rows[i], []string{"mtn", "hubtel"}[r.IntN(2)]
		switch {
		case p.status == book.StatusWaiting:
			f.set(i, []book.Status{book.StatusPending, book.StatusFailed}[r.IntN(2)], p.rail)
		case p.open():
			f.set(i, settled[p.kind][r.IntN(len(settled[p.kind]))], rail)
		case p.unpaid() && r.IntN(3) == 0:
			f.set(i, book.StatusSuccess, p.rail)
		}
		return
	}
	kind := []book.Kind{book.KindCollection, book.KindPayout, book.KindTopUp}[r.IntN(3)]
	p := payment{list: list{[]string{"adom", "kofi"}[r.IntN(2)], kind}, mode: "test", rail: "mtn", amount: int64(1 + r.IntN(500)), charges: int64(r.IntN(9)), at: f.clock.Now()}
	p.status = settled[kind][r.IntN(len(settled[kind]))]
	if kind == book.KindTopUp && r.IntN(2) == 0 {
		p.status = book.StatusWaiting
	}
	if p.tenant == "kofi" {
		p.mode = "live"
	}
	f.add(p)
	f.clock.Advance(time.Duration(r.IntN(200)) * time.Minute)
}

// Payments change at random between passes. Any exchange of a pass with the database may fail, before or after it took effect. The
// figures always equal the sums over the payments, also after a rebuild.
func TestSum_randomHistoryKilledAnywhere(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, faults *db.Faults) {
				r := rand.New(rand.NewPCG(seed, 3))
				f := open(t, d)
				f.most = 7
				killed := 0
				for range 400 {
					f.step(r)
					if r.IntN(4) > 0 {
						continue
					}
					left, fault := 1+r.IntN(6), []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict}[r.IntN(3)]
					faults.Decide(func(db.Boundary) db.Fault {
						if left--; left != 0 {
							return db.FaultNone
						}
						return fault
					})
					if err := f.Sum(t.Context()); err != nil {
						killed++
					}
					faults.Decide(nil)
				}
				if killed == 0 {
					t.Error("no pass failed")
				}
				f.sum()
				f.right("after the random history")
				if err := f.Rebuild(t.Context()); err != nil {
					t.Fatal(err)
				}
				f.right("after a rebuild")
			})
		})
	}
}

// If two passes begin together, one of them changes nothing.
func TestPass_twoAtOnceCountOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		for range 30 {
			f.add(f.payout())
		}
		other := New(d, f.clock)
		failed := make(chan error, 2)
		for _, one := range []*Figures{f.Figures, other} {
			go func() {
				_, err := one.pass(t.Context())
				failed <- err
			}()
		}
		for range 2 {
			if err := <-failed; err != nil && !errors.Is(err, db.ErrGuard) {
				t.Fatal(err)
			}
		}
		f.sum()
		f.right("after two passes at once")
	})
}

const hold = `UPDATE payments SET escalated_at = $2 WHERE id = $1`

// The amount on hold is listed by kind, with unknown payments as a separate figure. Payments that ended since the last pass are
// left out.
func TestHeld_byKindAndOutcome(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		waiting := f.payout()
		waiting.kind, waiting.status = book.KindTopUp, book.StatusWaiting
		f.add(f.payout(), f.payout(), f.payout(), waiting)
		f.sum()
		f.set(0, book.StatusSuccess, "mtn")
		f.write(func(tx *db.Tx) error { tx.Defer(hold, 1, f.rows[1].id(), db.Micros(morning)); return nil })
		list, err := f.Held(t.Context(), "adom")
		if want := []Held{{Kind: book.KindPayout, N: 1, Amount: 1010}, {Kind: book.KindPayout, Unknown: true, N: 1, Amount: 1010}}; err != nil || !slices.Equal(list, want) {
			t.Errorf("held are %+v (%v), want %+v", list, err, want)
		}
	})
}
