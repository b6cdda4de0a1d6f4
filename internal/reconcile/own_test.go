package reconcile

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/test/dbtest"
)

// transfers stores transfers of our own money, 500.00 each, from a bank to MTN's account for payouts. An empty reference means no
// reference.
func (f *fixture) transfers(references ...string) {
	f.t.Helper()
	if err := f.db.Write(f.t.Context(), func(tx *db.Tx) error {
		for i, reference := range references {
			if _, err := tx.Exec(`INSERT INTO own_transfers (id, asset, source, target, amount, fee, state, reference, sent_at, ended_at) VALUES ($1, $2, $3, $4, 50000, 0, 'arrived', $5, $6, $7)`,
				string(rune('a'+i)), ledger.TestGHS, ledger.Bank("gcb"), ledger.FloatAt("mtn", "disbursement"), reference, noon, noon.Add(3*time.Hour)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		f.t.Fatal(err)
	}
}

// A line is a movement of our own money in two cases. Exactly one transfer has its account, direction, amount and time, and no
// other line could be this movement. Or the narrative of our own debit names the transfer. A payer who writes our reference has no
// effect.
func TestMatch_ownTransfers(t *testing.T) {
	const (
		bank      = "test/bank/gcb"
		heading   = "Date,Details,Debit,Credit\n"
		float     = "test/mtn/disbursement"
		first     = "TOPUP-000001"
		second    = "TOPUP-000002"
		deposited = "2026-11-20 13:00:00"
	)
	deposit := func(id, from, amount string) string {
		return mtnRow(id, "", deposited, "Successful", from, "us", amount, "", "")
	}
	for name, c := range map[string]struct {
		references   []string
		source, text string
		want         int
	}{
		"our debit":                     {[]string{first}, bank, heading + "20/11/2026,RTGS,500.00,\n", 1},
		"our debit, named":              {[]string{first, second}, bank, heading + "20/11/2026,RTGS topup-000002,500.00,\n", 1},
		"our debit, two transfers":      {[]string{first, second}, bank, heading + "20/11/2026,RTGS,500.00,\n", 0},
		"our debits, one transfer":      {[]string{first}, bank, heading + "20/11/2026,RTGS,500.00,\n20/11/2026,RTGS 2,500.00,\n", 0},
		"our debits, both named":        {[]string{first, second}, bank, heading + "20/11/2026,TOPUP-000001,500.00,\n20/11/2026,TOPUP-000002,500.00,\n", 2},
		"our debits, the same named":    {[]string{first}, bank, heading + "20/11/2026,TOPUP-000001,500.00,\n20/11/2026,again TOPUP-000001,500.00,\n", 1},
		"another amount":                {[]string{first}, bank, heading + "20/11/2026,TOPUP-000001,500.01,\n", 0},
		"a credit that names it":        {[]string{first}, bank, heading + "20/11/2026,TOPUP-000001,,500.00\n", 0},
		"long after":                    {[]string{first}, bank, heading + "20/10/2026,TOPUP-000001,500.00,\n", 0},
		"the credit at MTN":             {[]string{first}, float, mtnHeading + deposit("1", "BANK", "500.00"), 1},
		"the credit at MTN, two":        {[]string{first, second}, float, mtnHeading + deposit("1", "BANK", "500.00"), 0},
		"a payer's credit at MTN":       {[]string{first}, float, mtnHeading + deposit("1", "FRI:233241234567/MSISDN", "500.00"), 0},
		"a debit at MTN":                {[]string{first}, float, mtnHeading + deposit("1", "BANK", "-500.00"), 0},
		"the account that collects":     {[]string{first}, mtn, mtnHeading + deposit("1", "BANK", "500.00"), 0},
		"a short reference means none":  {[]string{"A1", "B2"}, bank, heading + "20/11/2026,to A1,500.00,\n", 0},
		"a transfer without references": {[]string{""}, bank, heading + "20/11/2026,RTGS,500.00,\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := newFixture(t, d)
				f.transfers(c.references...)
				if _, err := f.give(c.source, c.text, Layout{Sign: SignIn, Dates: DayFirst}); err != nil {
					t.Fatal(fields(err))
				}
				f.match()
				f.match()
				if n := f.count("statement_own"); n != c.want || f.count("statement_matches") != n {
					t.Errorf("%d lines are own transfers, want %d", n, c.want)
				}
			})
		})
	}
}

// A settlement back to the bank is a credit that names its transfer, with the amount less the bank's fee. A forged mention with the
// amount of one of two transfers matches nothing.
func TestMatch_ownCreditAtBank(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		amount string
		others int
		want   int
	}{
		"named":                    {"SETTLE-000001", "490.00", 0, 1},
		"not named":                {"SETTLEMENT", "490.00", 0, 0},
		"the amount before fees":   {"SETTLE-000001", "500.00", 0, 0},
		"two of the same, forged?": {"SETTLE-000001", "490.00", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := newFixture(t, d)
				if err := d.Write(t.Context(), func(tx *db.Tx) error {
					for i := range 1 + c.others {
						if _, err := tx.Exec(`INSERT INTO own_transfers (id, asset, source, target, amount, fee, state, reference, sent_at, ended_at) VALUES ($1, $2, $3, $4, 50000, 1000, 'arrived', $5, $6, $7)`,
							string(rune('a'+i)), ledger.TestGHS, ledger.FloatAt("mtn", "collection"), ledger.Bank("gcb"), "SETTLE-00000"+string(rune('1'+i)), noon, noon.Add(time.Hour)); err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				f.must("test/bank/gcb", "Date,Details,Debit,Credit\n2026-11-20,"+c.text+",,"+c.amount+"\n")
				f.match()
				if n := f.count("statement_own"); n != c.want {
					t.Errorf("%d lines are own transfers, want %d", n, c.want)
				}
			})
		})
	}
}

// A transfer of our own money explains the difference of a day by its amount if its line and its entry in our books have different
// days, or if its end is not booked.
func TestDay_ownTransferInTransit(t *testing.T) {
	const source = "test/mtn/disbursement"
	midnight := noon.Truncate(24 * time.Hour).Add(24 * time.Hour)
	before, after := midnight.Add(-time.Minute), midnight.Add(time.Minute)
	for name, c := range map[string]struct {
		booked, line time.Time // a zero booked means that the transfer is in transit
		want         money.Pesewas
	}{
		"booked before, the line after":  {before, after, -50_000},
		"the line before, booked after":  {after, before, 50_000},
		"the line before, never booked":  {time.Time{}, before, 50_000},
		"both before":                    {before, before, 0},
		"both after":                     {after, after, 0},
		"the line after, and not booked": {time.Time{}, after, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := newFixture(t, d)
				f.transfers("TOPUP-000001")
				if c.booked.IsZero() {
					f.exec(`UPDATE own_transfers SET state = 'sent', ended_at = 0`)
				} else {
					f.exec(`UPDATE own_transfers SET ended_at = $1`, c.booked)
					f.posts(ledger.Transfer{Asset: ledger.TestGHS, From: ledger.FloatAt("mtn", "disbursement"), To: ledger.Transit, Amount: 50_000, Subject: "a", Leg: "ended", Kind: "transfer", At: c.booked})
				}
				line := func(id string, at time.Time, status, amount, balance string) string {
					return mtnRow(id, "", at.Format(time.DateTime), status, "BANK", "us", amount, "", balance)
				}
				f.must(source, mtnHeading+line("1", midnight.Add(-time.Hour), "Failed", "1.00", "0.00")+line("2", c.line, "Successful", "500.00", "500.00")+
					line("3", midnight.Add(time.Hour), "Failed", "1.00", "500.00"))
				f.match()
				f.mustFind()
				var list []Given
				if err := d.Read(t.Context(), func(tx *db.Tx) (err error) {
					list, err = AtDay(tx, "test", midnight.Add(-24*time.Hour), midnight)
					return err
				}); err != nil || len(list) != 1 {
					t.Fatalf("%+v, %v", list, err)
				}
				explained := money.Pesewas(0)
				for _, r := range list[0].Reasons {
					explained += r.Amount
				}
				if off := list[0].Balance - f.ours(list[0].Account, midnight); off != c.want || explained != c.want {
					t.Errorf("the books differ by %s, explained %s by %+v, want %s", off, explained, list[0].Reasons, c.want)
				}
			})
		})
	}
}

// exec changes rows.
func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	if err := f.db.Write(f.t.Context(), func(tx *db.Tx) error { _, err := tx.Exec(sql, args...); return err }); err != nil {
		f.t.Fatal(err)
	}
}

// posts books transfers.
func (f *fixture) posts(list ...ledger.Transfer) {
	f.t.Helper()
	if err := f.db.Write(f.t.Context(), func(tx *db.Tx) error {
		page, err := f.matcher.ledger.Open(tx)
		if err != nil {
			return err
		}
		err = page.Add(list...)
		page.Post()
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
}

// A person undoes the match of an own transfer. The line is then an exception, and no rule matches it again.
func TestUndo_ownTransfer(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.transfers("TOPUP-000001")
		f.must("test/mtn/disbursement", mtnHeading+mtnRow("1", "", "2026-11-20 13:00:00", "Successful", "BANK", "us", "500.00", "", ""))
		f.match()
		f.mustFind()
		line := f.lineOf("1")
		if of, err := f.OwnTransferOf(t.Context(), line); err != nil || of != "a" {
			t.Fatalf("the line is of the transfer %q, %v", of, err)
		}
		if err := f.Undo(t.Context(), line, "ama", "a deposit of somebody else"); err != nil {
			t.Fatal(err)
		}
		f.match()
		f.mustFind(TheirsOnly)
		if n := f.count("statement_own"); n != 0 {
			t.Errorf("%d lines are own transfers", n)
		}
	})
}

// lineOf returns the id of the line with a provider's id.
func (f *fixture) lineOf(theirID string) (id string) {
	f.t.Helper()
	if _, err := f.db.ReadOne(f.t.Context(), `SELECT id FROM statement_lines WHERE their_id = $1`, []any{theirID}, &id); err != nil || id == "" {
		f.t.Fatalf("no line %s: %v", theirID, err)
	}
	return id
}

// If the provider changes the amount of a line whose money is booked, the line is an exception by the difference. The exception
// ends when the provider corrects the line.
func TestMatch_bookedLineChanges(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		give := func(amount, status string) {
			t.Helper()
			f.must(mtn, mtnHeading+moved("78", "", status, amount, ""))
			f.match()
		}
		give("10.00", "Successful")
		f.mustFind(TheirsOnly)
		line := f.lineOf("78")
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return f.Reconcile.book(tx, line, "ama") }); err != nil {
			t.Fatal(err)
		}
		if err := f.Recheck(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.mustFind()
		give("12.50", "Successful")
		e := f.mustFind(AmountOff)[0]
		if e.Amount != 250 || e.Delta != 250 || e.Line != line {
			t.Errorf("the exception is %+v", e)
		}
		give("12.51", "Failed")
		if e := f.mustFind(StateOff)[0]; e.Amount != 1000 || e.Delta != -1000 {
			t.Errorf("the exception is %+v", e)
		}
		f.must(mtn, mtnHeading+moved("78", "", "Successful", "10.00", "")+moved("79", "", "Failed", "1.00", ""))
		f.match()
		f.mustFind()
	})
}
