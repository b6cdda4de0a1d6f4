package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/test/dbtest"
)

// hourly is a ledger with transfers of some hours.
type hourly struct {
	*ledger.Ledger
	t     *testing.T
	db    *db.DB
	clock *clock.Clock
	n     int
}

func newHourly(t *testing.T, d *db.DB) *hourly {
	t.Helper()
	c := clock.NewManual(start)
	f := &hourly{Ledger: ledger.New(d, c, "node"), t: t, db: d, clock: c}
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		f.Create(tx, wallet("ama"), 0)
		f.Create(tx, wallet("kofi"), 0)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	pairs := [][2]ledger.AccountID{{ledger.Funding, ledger.Wallet("ama")}, {ledger.Clearing, ledger.Float("mtn")}, {ledger.Clearing, ledger.Fees},
		{ledger.Funding, ledger.Wallet("kofi")}, {ledger.Reserve("ama"), ledger.Clearing}}
	for range 400 {
		c.Advance(time.Duration(random.IntN(4)) * time.Minute) // several transfers have the same time
		pair := pairs[random.IntN(len(pairs))]
		f.add(pair[0], pair[1], c.Now())
		if random.IntN(90) == 0 {
			f.add(ledger.Bank("gcb"), ledger.Transit, c.Now())
			c.Advance(2 * time.Hour)
		}
	}
	c.Advance(3 * time.Hour)
	return f
}

func (f *hourly) add(from, to ledger.AccountID, at time.Time) {
	f.t.Helper()
	f.n++
	of := ledger.Transfer{Asset: ledger.GHS, From: from, To: to, Amount: int64(f.n), Subject: fmt.Sprintf("s%d", 1000-f.n), Leg: "leg", Kind: fmt.Sprintf("kind %d", f.n%3), At: at}
	if err := move(f.t.Context(), f.db, f.Ledger, of); err != nil {
		f.t.Fatal(err)
	}
}

func (f *hourly) sum() {
	f.t.Helper()
	if err := f.SumHours(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

func (f *hourly) exec(sql string) {
	f.t.Helper()
	if err := f.db.Write(f.t.Context(), func(tx *db.Tx) error { _, err := tx.Exec(sql); return err }); err != nil {
		f.t.Fatal(err)
	}
}

// period has the expected sums of a period.
type period struct {
	Motions         []ledger.Motion
	Opening, Ending map[ledger.AccountID]int64
	Size            int64
	Journals        map[ledger.AccountID][]string
}

// periods reads periods that begin and end within hours and at their bounds.
func (f *hourly) periods() (all []period) {
	f.t.Helper()
	for _, bounds := range [][2]time.Duration{{0, 100 * time.Hour}, {time.Minute, 7*time.Hour + 20*time.Minute}, {time.Hour, 2 * time.Hour}, {90 * time.Minute, 100 * time.Minute},
		{3*time.Hour + time.Second, 4*time.Hour - time.Second}, {5 * time.Hour, 5 * time.Hour}, {2*time.Hour + 30*time.Minute, 12 * time.Hour}} {
		from, to := start.Add(bounds[0]), start.Add(bounds[1])
		p := period{Journals: map[ledger.AccountID][]string{}}
		err := f.db.ReadWhole(f.t.Context(), func(tx *db.Tx) (err error) {
			if p.Motions, err = ledger.Motions(tx, ledger.GHS, from, to); err != nil {
				return err
			}
			if p.Opening, err = ledger.BalancesBefore(tx, ledger.GHS, from); err != nil {
				return err
			}
			p.Ending, err = ledger.BalancesBefore(tx, ledger.GHS, to)
			return err
		})
		if err != nil {
			f.t.Fatal(err)
		}
		if p.Size, err = f.JournalSize(f.t.Context(), ledger.Span{Asset: ledger.GHS, From: from, To: to}); err != nil {
			f.t.Fatal(err)
		}
		for _, of := range []ledger.AccountID{"", "wallet:*", "reserve/*", ledger.Reserve("ama"), ledger.Wallet("ama"), ledger.Wallet("nobody"), ledger.Float("mtn"), "bank/*", ledger.Bank("gcb"), ledger.Fees} {
			p.Journals[of] = f.journal(ledger.Span{Asset: ledger.GHS, From: from, To: to, Account: of})
		}
		all = append(all, p)
	}
	return all
}

// same fails the test if the periods differ from the periods read before.
func (f *hourly) same(when string, before []period) {
	f.t.Helper()
	for n, after := range f.periods() {
		for of, rows := range after.Journals {
			if !slices.Equal(rows, before[n].Journals[of]) {
				f.t.Errorf("%s: journal of %q in period %d: %d rows, and %d before", when, of, n, len(rows), len(before[n].Journals[of]))
			}
		}
		before[n].Journals, after.Journals = nil, nil
		if !reflect.DeepEqual(before[n], after) {
			f.t.Errorf("%s: period %d is %+v, and was %+v", when, n, after, before[n])
		}
	}
}

// journal returns the lines of all pages of a journal.
func (f *hourly) journal(s ledger.Span) (all []string) {
	f.t.Helper()
	const size = 7
	for after := (*ledger.Transfer)(nil); ; {
		list, err := f.Journal(f.t.Context(), s, after, size)
		if err != nil {
			f.t.Fatal(err)
		}
		for _, t := range list {
			all = append(all, t.At.Format(time.RFC3339)+" "+t.Subject)
		}
		if len(list) < size {
			return all
		}
		after = &list[size-1]
	}
}

// A period has the same figures and journal before and after its hours are summed, and after a late transfer.
func TestHours_sameAsTransfers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newHourly(t, d)
		before := f.periods()
		for of, rows := range before[0].Journals {
			if !slices.IsSorted(rows) && of != "" || of != ledger.Wallet("nobody") && len(rows) == 0 {
				t.Errorf("journal of %q: %v", of, rows)
			}
		}
		f.sum()
		f.same("summed", before)
		sound(t, f.Ledger)
		f.add(ledger.Funding, ledger.Float("mtn"), start.Add(90*time.Minute)) // a transfer that commits long after its time
		late := f.periods()
		if late[0].Size != before[0].Size+1 {
			t.Errorf("%d transfers after a late one, and %d before", late[0].Size, before[0].Size)
		}
		f.sum()
		f.same("summed again", late)
		sound(t, f.Ledger)
	})
}

// After a step of the clock back, new transfers belong to hours that were already summed. After a step forward, no hour is summed
// too early.
func TestHours_clockSteps(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newHourly(t, d)
		f.sum()
		f.clock.Set(-5 * time.Hour)
		f.add(ledger.Funding, ledger.Wallet("ama"), f.clock.Now())
		back := f.periods()
		sound(t, f.Ledger)
		f.clock.Advance(20 * time.Minute)
		f.sum()
		f.same("set back", back)
		at := f.clock.Now() // the time of a transfer that commits after the step
		f.clock.Set(5 * time.Hour)
		f.sum()
		f.add(ledger.Funding, ledger.Wallet("ama"), at)
		sound(t, f.Ledger)
		f.clock.Advance(20 * time.Minute)
		late := f.periods()
		f.sum()
		f.same("set forward", late)
		sound(t, f.Ledger)
	})
}

// A node of the previous release does not reopen an hour for its late transfer. The check finds the transfer, and a recount
// corrects the sums.
func TestHours_olderNode(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newHourly(t, d)
		f.sum()
		f.exec(`CREATE TABLE kept AS SELECT summed_to FROM ledger_hours_state`)
		f.add(ledger.Funding, ledger.Float("mtn"), start.Add(90*time.Minute))
		late := f.periods()
		f.exec(`UPDATE ledger_hours_state SET summed_to = (SELECT summed_to FROM kept)`)
		if report, err := f.Check(t.Context()); err != nil || report.OK() {
			t.Errorf("not found, %v", err)
		}
		if err := f.SumHoursAgain(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.sum()
		f.same("counted again", late)
		sound(t, f.Ledger)
		f.exec(`DROP TABLE kept`)
	})
}

// A check finds sums that differ from the transfers, and a recount corrects them.
func TestHours_checkFindsWrongSums(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, wrong := range []string{
			`UPDATE ledger_hours SET moved_in = moved_in + 1, moved_out = moved_out + 1 WHERE account = 'fees'`,
			`DELETE FROM ledger_hours WHERE account = 'bank/gcb'`,
			`INSERT INTO ledger_hours (asset, at, account, kind, moved_in, moved_out, n) VALUES ('GHS', 3600000000, 'fees', 'x', 1, 1, 1)`,
		} {
			f := newHourly(t, d)
			f.exec(`DELETE FROM ledger_hours_state`)
			f.sum()
			f.exec(wrong)
			if report, err := f.Check(t.Context()); err != nil || report.OK() {
				t.Errorf("%s: not found, %v", wrong, err)
			}
			if err := f.SumHoursAgain(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.sum()
			sound(t, f.Ledger)
			f.exec(`DELETE FROM transfers`)
			f.exec(`DELETE FROM wallets`)
			f.exec(`DELETE FROM shards`)
		}
	})
}
