package books

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/booktest"
	"github.com/makola/makola/internal/test/dbtest"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// fixture is an installation with old payments, which are checked, and new payments.
type fixture struct {
	*Books
	t        *testing.T
	loader   *booktest.Loader
	tenant   tenant.Tenant
	old, new []book.Payment
}

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	l := booktest.New(t, d, noon)
	t.Cleanup(l.Close)
	f := &fixture{Books: New(d, l.Clock), t: t, loader: l, tenant: l.Tenant("Adom Stores", 1_000_000*money.Cedi)}
	f.old = l.Load(f.tenant, 120, 3, time.Second)
	l.Clock.Advance(2 * time.Hour)
	if err := l.Ledger.SumHours(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.full()
	f.new = l.Load(f.tenant, 40, 2, time.Second)
	f.sound("as loaded")
	return f
}

// full runs a full check.
func (f *fixture) full() {
	f.t.Helper()
	f.loader.Clock.Advance(time.Second)
	if err := f.Request(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	before, err := f.State(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	f.loader.Clock.Advance(time.Second)
	for range 100 {
		if err := f.Work(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		if s, err := f.State(f.t.Context()); err != nil || s.Stage == "" && !s.FullAt.Equal(before.FullAt) {
			return
		}
	}
	f.t.Fatal("the full check does not end")
}

func (f *fixture) recent() Found {
	f.t.Helper()
	report, err := f.Recent(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	return report.Found
}

func (f *fixture) sound(when string) {
	f.t.Helper()
	for name, of := range f.recent() {
		if !of.OK() {
			f.t.Errorf("%s: %s: %v", when, name, of.Problems)
		}
	}
}

func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	err := f.db.Write(f.t.Context(), func(tx *db.Tx) error { _, err := tx.Exec(sql, args...); return err })
	if err != nil {
		f.t.Fatal(err)
	}
}

// fault is a fault of the books: plant inserts it and mend corrects it, both by an SQL statement. $1 is a payment.
type fault struct{ plant, mend string }

// faults are wrong rows of a payment. The first payments of a fixture are payouts that succeeded.
var faults = map[string]fault{
	"an amount moved":    {`UPDATE transfers SET amount = amount + 1 WHERE subject = $1 AND leg = 'final'`, `UPDATE transfers SET amount = amount - 1 WHERE subject = $1 AND leg = 'final'`},
	"a balance carried":  {`UPDATE transfers SET balance = balance + 1 WHERE subject = $1 AND leg = 'hold'`, `UPDATE transfers SET balance = balance - 1 WHERE subject = $1 AND leg = 'hold'`},
	"an account":         {`UPDATE transfers SET to_account = 'fees' WHERE subject = $1 AND leg = 'final'`, `UPDATE transfers SET to_account = 'float/load' WHERE subject = $1 AND leg = 'final'`},
	"a subject":          {`UPDATE transfers SET subject = 'stray ' || $1 WHERE subject = $1 AND leg = 'final'`, `UPDATE transfers SET subject = $1 WHERE subject = 'stray ' || $1`},
	"a payment's amount": {`UPDATE payments SET amount = amount + 1 WHERE id = $1`, `UPDATE payments SET amount = amount - 1 WHERE id = $1`},
	"a payment's status": {`UPDATE payments SET status = 'failed' WHERE id = $1`, `UPDATE payments SET status = 'success' WHERE id = $1`},
	"a payment's mode":   {`UPDATE payments SET mode = 'live' WHERE id = $1`, `UPDATE payments SET mode = 'test' WHERE id = $1`},
	"a number":           {`UPDATE payments SET seq = seq + 1000 WHERE id = $1`, `UPDATE payments SET seq = seq - 1000 WHERE id = $1`},
	"a counter":          {`UPDATE payment_counters SET n = n + 1 WHERE level = 0 AND kind = 'payout' AND $1 <> ''`, `UPDATE payment_counters SET n = n - 1 WHERE level = 0 AND kind = 'payout' AND $1 <> ''`},
}

// TestRecent_findsNewFaults: the next recent check finds a wrong row among the newest rows, and counts it until it is corrected.
func TestRecent_findsNewFaults(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		for name, fault := range faults {
			f.exec(fault.plant, f.new[0].ID)
			for range 3 { // the check does not pass the fault
				f.loader.Clock.Advance(ledger.Overlap)
				if f.recent().Count() == 0 {
					t.Errorf("%s: not found", name)
				}
			}
			f.exec(fault.mend, f.new[0].ID)
			f.sound(name + " mended")
			f.new = f.loader.Load(f.tenant, 5, 1, time.Second)
		}
	})
}

// accountFaults are wrong rows that belong to no payment. Every recent check finds them.
var accountFaults = map[string]fault{
	"a wallet":       {`UPDATE wallets SET balance = balance + 1 WHERE $1 <> ''`, `UPDATE wallets SET balance = balance - 1 WHERE $1 <> '' AND balance > 0`},
	"a shard":        {`UPDATE shards SET balance = balance + 1 WHERE id = 'fees' AND $1 <> ''`, `UPDATE shards SET balance = balance - 1 WHERE id = 'fees' AND $1 <> ''`},
	"money swapped":  {`UPDATE shards SET balance = balance + CASE id WHEN 'fees' THEN 1 ELSE -1 END WHERE id IN ('fees', 'clearing') AND $1 <> ''`, `UPDATE shards SET balance = balance - CASE id WHEN 'fees' THEN 1 ELSE -1 END WHERE id IN ('fees', 'clearing') AND $1 <> ''`},
	"own money sent": {`INSERT INTO own_transfers (id, asset, source, target, amount, fee, state, reference, sent_at, ended_at) VALUES ('x' || $1, 'GHS', 'bank/gcb', 'float/mtn', 5, 0, 'sent', '', 1, 0)`, `DELETE FROM own_transfers WHERE id = 'x' || $1`},
}

// findsAccountFaults plants and mends each of accountFaults. The recent check finds it at once.
func (f *fixture) findsAccountFaults() {
	f.t.Helper()
	for name, fault := range accountFaults {
		f.exec(fault.plant, "1")
		if f.recent().Count() == 0 {
			f.t.Errorf("%s: not found", name)
		}
		f.exec(fault.mend, "1")
		f.sound(name + " mended")
	}
}

// TestRecent_findsAccountFaults: a wrong balance is found at once, however old its transfers are.
func TestRecent_findsAccountFaults(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.loader.Clock.Advance(time.Hour)
		f.sound("before")
		f.findsAccountFaults()
	})
}

// TestCheck_manySets: the checks end, and find a fault after their first set of rows.
func TestCheck_manySets(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		last := f.loader.Load(f.tenant, 1200, 0, time.Second)
		f.full()
		f.sound("full check of many sets")
		check := func() (book.Report, int) {
			payments, err := book.NewReader(d, f.loader.Ledger, f.loader.Clock).Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ledger, err := f.loader.Ledger.Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return payments, len(payments.Problems) + len(ledger.Problems)
		}
		if report, faults := check(); faults > 0 || report.Payments != 1360 {
			t.Errorf("%+v", report)
		}
		wrong := faultOf("a payment's amount")
		f.exec(wrong.plant, last[len(last)-2].ID)
		if _, faults := check(); faults == 0 {
			t.Error("a wrong payment in the last set is not found")
		}
		f.exec(wrong.mend, last[len(last)-2].ID)
	})
}

// TestFull_findsOldFaults: the next full check finds a wrong row anywhere. It stays reported until a full check finds it corrected.
func TestFull_findsOldFaults(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		faults := map[string]fault{
			"a row before all others": {`INSERT INTO transfers (amount, at, subject, leg, asset, kind, from_account, to_account) VALUES (5, -1, 'x' || $1, 'x', 'TEST_GHS', 'x', 'fees', 'funding')`,
				`DELETE FROM transfers WHERE subject = 'x' || $1`},
			"a sum of an hour": {`UPDATE ledger_hours SET moved_in = moved_in + 1, moved_out = moved_out + 1 WHERE account = 'fees' AND $1 <> ''`,
				`UPDATE ledger_hours SET moved_in = moved_in - 1, moved_out = moved_out - 1 WHERE account = 'fees' AND $1 <> ''`},
			"an empty day":       {`INSERT INTO payment_days (tenant, kind, day, first) VALUES ('ghost', $1, 1, 1)`, `DELETE FROM payment_days WHERE tenant = 'ghost' AND kind = $1`},
			"a counter of 1,440": {`UPDATE payment_counters SET n = n + 1 WHERE level = 1 AND $1 <> ''`, `UPDATE payment_counters SET n = n - 1 WHERE level = 1 AND $1 <> ''`},
		}
		for name, fault := range faults {
			f.finds(name, fault)
		}
		for name, fault := range map[string]fault{"moved": faultOf("an amount moved"), "status": faultOf("a payment's status"), "account": faultOf("an account"), "subject": faultOf("a subject"), "balance": faultOf("a balance carried")} {
			f.finds(name, fault)
		}
	})
}

func faultOf(name string) fault { return faults[name] }

func (f *fixture) finds(name string, of fault) {
	f.t.Helper()
	f.exec(of.plant, f.old[0].ID)
	f.full()
	if f.recent().Count() == 0 {
		f.t.Errorf("%s: not found", name)
	}
	f.exec(of.mend, f.old[0].ID)
	f.full()
	f.sound(name + " mended")
}

// TestWork_goesOn: a full check that stopped continues from its stored position on another node, while payments continue.
func TestWork_goesOn(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		ctx := t.Context()
		f.loader.Clock.Advance(48 * time.Hour)
		c, err := f.begin(ctx)
		for steps := 0; err == nil && c.stage != stageEnd; steps++ {
			if _, err = f.step(ctx, c); err != nil || steps > 1000 {
				t.Fatal(steps, err)
			}
			if err = d.Write(ctx, c.save); err == nil { // as when a node dies after its run
				c, err = New(d, f.loader.Clock).begin(ctx)
			}
			f.loader.Load(f.tenant, 3, 1, time.Second)
			f.loader.Clock.Advance(ledger.Overlap)
			f.sound("while a full check runs")
		}
		if err != nil {
			t.Fatal(err)
		}
		f.full()
		f.sound("after it")
		s, err := f.State(ctx)
		if err != nil || s.Faults != 0 || s.FullAt.IsZero() || s.RecentAt.IsZero() {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// post posts a transfer with the given time.
func (f *fixture) post(at time.Time) {
	f.t.Helper()
	err := f.db.Write(f.t.Context(), func(tx *db.Tx) error {
		page, err := f.loader.Ledger.Open(tx)
		if err == nil {
			err = page.Add(ledger.Transfer{Asset: ledger.TestGHS, From: ledger.Funding, To: ledger.Fees, Amount: 7, Subject: "late", Leg: "late", Kind: "late", At: at})
			page.Post()
		}
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// TestRecent_lateCommit: a transfer that commits long after its time is not a fault.
func TestRecent_lateCommit(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.loader.Clock.Advance(time.Hour)
		f.sound("before")
		f.post(noon)
		f.sound("a late transfer")
		f.loader.Clock.Advance(time.Hour)
		f.sound("an hour later")
		f.full()
		f.sound("after a full check")
	})
}

// TestDue_byNight: a full check begins once in a night, when it is requested, or when the last one is old.
func TestDue_byNight(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 11, 22, hour, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		name  string
		of    check
		now   time.Time
		wants bool
	}{
		{"never made", check{}, at(12), true},
		{"this morning", check{begunAt: at(2), endedAt: at(3)}, at(12), false},
		{"this night", check{begunAt: at(0), endedAt: at(1)}, at(3), false},
		{"yesterday, by day", check{begunAt: at(2).AddDate(0, 0, -1), endedAt: at(3).AddDate(0, 0, -1)}, at(12), false},
		{"yesterday, by night", check{begunAt: at(2).AddDate(0, 0, -1), endedAt: at(3).AddDate(0, 0, -1)}, at(1), true},
		{"two days ago", check{begunAt: at(2).AddDate(0, 0, -2), endedAt: at(3).AddDate(0, 0, -2)}, at(15), true},
		{"requested", check{begunAt: at(2), endedAt: at(3), requestedAt: at(11)}, at(12), true},
		{"requested and made", check{begunAt: at(11), endedAt: at(12), requestedAt: at(10)}, at(13), false},
	} {
		if got := c.of.due(c.now); got != c.wants {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
