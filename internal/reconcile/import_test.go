package reconcile

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/test/dbtest"
)

// fixture is a database at a day after all lines.
type fixture struct {
	t     testing.TB
	db    *db.DB
	clock *clock.Clock
	*Reconcile
}

func newFixture(t testing.TB, d *db.DB) *fixture {
	t.Helper()
	c := clock.NewManual(time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC))
	return &fixture{t, d, c, New(Deps{DB: d, Clock: c, Log: slog.New(slog.DiscardHandler), Ledger: ledger.New(d, c, "test"), Payments: book.NewReader(d, ledger.New(d, c, "test"), c), Account: accountOf})}
}

// accountOf returns the account of a payment at MTN.
func accountOf(p book.Payment) string {
	if p.Kind == book.KindCollection {
		return provider.AccountCollection
	}
	return provider.AccountDisbursement
}

// give imports a text as a file whose reading a person has confirmed.
func (f *fixture) give(source, text string, answers Layout) (Imported, error) {
	f.t.Helper()
	file, err := sheet.Open(strings.NewReader(text))
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	return f.Import(f.t.Context(), Upload{Source: source, FileName: "statement.csv", By: "person", ByName: "Ama", Answers: answers, Confirmed: true}, file)
}

// must imports a file.
func (f *fixture) must(source, text string) Statement {
	f.t.Helper()
	done, err := f.give(source, text, Layout{Sign: SignIn})
	if err != nil {
		f.t.Fatal(fields(err))
	}
	if done.Reading != nil || !done.Statement.Done {
		f.t.Fatalf("not read: %+v", done)
	}
	return done.Statement
}

// count counts the rows of a table.
func (f *fixture) count(table string) (n int) {
	f.t.Helper()
	if _, err := f.db.ReadOne(f.t.Context(), `SELECT count(*) FROM `+table, nil, &n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

const mtn = "test/mtn/collection"

// mtnDay returns a file of n lines. Their ids begin at from.
func mtnDay(from, n int, status string) string {
	text := mtnHeading
	for i := from; i < from+n; i++ {
		balance := fmt.Sprintf("%d.00", 1000+i)
		text += mtnRow(fmt.Sprint(i), "", fmt.Sprintf("2026-11-20 08:%02d:%02d", i/60%60, i%60), status, "FRI:233241234567/MSISDN", "us", "1.00", "", balance)
	}
	return text
}

// A file is stored once. The same file again changes nothing, and an overlapping file adds only its new lines.
func TestImport_onceAndOverlap(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		first := f.must(mtn, mtnDay(1, 1200, "Successful"))
		if first.Added != 1200 || f.count("statement_lines") != 1200 || !first.Chains {
			t.Fatalf("stored %d of %d lines, chains %v", f.count("statement_lines"), first.Added, first.Chains)
		}
		again, err := f.give(mtn, mtnDay(1, 1200, "Successful"), Layout{})
		if err != nil || !again.Repeated || again.Statement.ID != first.ID || f.count("statements") != 1 {
			t.Fatalf("the same file again: %+v, %v", again, err)
		}
		if next := f.must(mtn, mtnDay(1000, 300, "Successful")); next.Added != 99 || next.Changed != 0 || f.count("statement_lines") != 1299 {
			t.Errorf("the file that overlaps: added %d, changed %d of %d", next.Added, next.Changed, f.count("statement_lines"))
		}
	})
}

// The first file of a source is shown to a person before anything is stored.
func TestImport_firstFileIsShown(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		file, err := sheet.Open(strings.NewReader(mtnDay(1, 20, "Successful")))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		shown, err := f.Import(t.Context(), Upload{Source: mtn, By: "person"}, file)
		if err != nil || shown.Reading == nil || len(shown.Reading.Sample) != 10 || shown.Reading.Columns[FieldCurrency] != 17 {
			t.Fatalf("shown %+v, %v", shown.Reading, err)
		}
		if n := f.count("statement_lines") + f.count("statement_sources") + f.count("statements"); n != 0 {
			t.Errorf("%d rows are stored", n)
		}
	})
}

// A refused file leaves nothing behind.
func TestImport_refusedLeavesNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		for _, text := range []string{
			strings.Replace(mtnDay(1, 900, "Successful"), "1.00,GHS", "x,GHS", 1),
			mtnDay(1, 900, "Successful") + mtnRow("9999", "", "2026-11-21 08:00:00", "Successful", "a", "b", "1.00", "", "1.00"),
		} {
			if _, err := f.give(mtn, text, Layout{}); err == nil {
				t.Error("a broken file was read")
			}
		}
		if n := f.count("statement_lines") + f.count("statement_sources") + f.count("statements"); n != 0 {
			t.Errorf("%d rows are stored", n)
		}
	})
}

// A known id with another status is a new version of the line. The old version is kept.
func TestImport_newVersion(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		heading := strings.Replace(mtnHeading, `"Balance","Currency"`, `"Left","Currency"`, 1)
		row := func(id, status, amount string) string {
			return mtnRow(id, "", "2026-11-20 08:00:00", status, "FRI:233241234567/MSISDN", "us", amount, "", "")
		}
		f.must(mtn, heading+row("1", "Failed", "5.00")+row("2", "Successful", "6.00"))
		s := f.must(mtn, heading+row("1", "Successful", "5.00")+row("2", "Successful", "6.00"))
		if s.Added != 0 || s.Changed != 1 || f.count("statement_versions") != 1 || f.count("statement_lines") != 2 {
			t.Fatalf("added %d, changed %d, versions %d", s.Added, s.Changed, f.count("statement_versions"))
		}
		var l Line
		if err := d.Read(t.Context(), func(tx *db.Tx) error {
			list, err := queryLines(tx, linesByIdentity, mtn, []string{"i:1"})
			l = list[0]
			return err
		}); err != nil || l.Version != 2 || l.Status != StatusSuccess || l.Statement != s.ID {
			t.Errorf("the line is %+v, %v", l, err)
		}
	})
}

// A file that a spreadsheet saved again has the same lines, or is refused with the first line that it changed.
func TestImport_savedBySpreadsheet(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		row := func(id, at string) string {
			return mtnRow(id, refA, at, "Successful", "a", "b", "5.00", "", "")
		}
		f.must(mtn, mtnHeading+row("00123456789012345678", "2026-11-20 08:00:05"))
		if s := f.must(mtn, mtnHeading+row("00123456789012345678", "2026-11-20 08:00")); s.Added != 0 || s.Changed != 0 {
			t.Errorf("without seconds: added %d, changed %d", s.Added, s.Changed)
		}
		for _, at := range []string{"20/11/2026 08:00:05", "20/11/2026 8:00", "20/11/2026 8:00:05 AM", "20-Nov-26 08:00"} {
			if s := f.must(mtn, mtnHeading+row("00123456789012345678", at)); s.Added != 0 || s.Changed != 0 {
				t.Errorf("with the date %s: added %d, changed %d", at, s.Added, s.Changed)
			}
		}
		for name, c := range map[string]struct{ id, at, want string }{
			"without zeros":      {"123456789012345678", "2026-11-20 08:00:05", "row 2 has the id"},
			"without digits":     {"00123456789012300000", "2026-11-20 08:00:05", "row 2 has the id"},
			"with an exponent":   {"1.23457E+17", "2026-11-20 08:00:05", "digits a spreadsheet has dropped"},
			"with a decimal":     {"00123456789012345678.0", "2026-11-20 08:00:05", "in place of an id"},
			"with groups":        {"123,456,789,012,345,678", "2026-11-20 08:00:05", "in place of an id"},
			"with month first":   {"00123456789012345678", "11/20/2026 8:00", "does not begin with the day"},
			"as a serial number": {"00123456789012345678", "46346.3333912037", "must be a date"},
			"with another month": {"00123456789012345678", "2026-10-20 08:00:05", "row 2 has the time"},
		} {
			if _, err := f.give(mtn, mtnHeading+strings.Replace(row("x", c.at), "x,", `"`+c.id+`",`, 1), Layout{}); err == nil || !strings.Contains(fields(err), c.want) {
				t.Errorf("%s: %q", name, fields(err))
			}
		}
		if n := f.count("statement_lines"); n != 1 {
			t.Errorf("%d lines are stored", n)
		}
	})
}

// Lines without an id are accepted in whole days. A day may be imported again in full, but never in part.
func TestImport_wholeDays(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		const bank, heading = "live/bank/gcb", "Date,Description,Debit,Credit\n"
		const monday, tuesday = "23/11/2026,FEE,1.00,\n23/11/2026,FEE,1.00,\n", "24/11/2026,FEE,1.00,\n24/11/2026,DEPOSIT,,9.00\n"
		f.must(bank, heading+monday)
		if s := f.must(bank, heading+monday+tuesday); s.Added != 2 || f.count("statement_lines") != 4 {
			t.Fatalf("added %d of %d", s.Added, f.count("statement_lines"))
		}
		for name, text := range map[string]string{
			"a part of a day":     "23/11/2026,FEE,1.00,\n",
			"more of a day":       monday + "23/11/2026,FEE,1.00,\n",
			"another line":        tuesday + "24/11/2026,OTHER,2.00,\n",
			"a day not over":      "25/11/2026,FEE,1.00,\n",
			"an earlier day, too": "22/11/2026,FEE,1.00,\n23/11/2026,FEE,1.00,\n",
		} {
			if _, err := f.give(bank, heading+text, Layout{}); err == nil {
				t.Errorf("%s was read", name)
			}
		}
		if n := f.count("statement_lines"); n != 4 {
			t.Errorf("%d lines are stored", n)
		}
	})
}

// The first file of a source is stored unchanged until a person confirms it.
func TestDraft_keepsTheFile(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		text := mtnDay(1, 12_000, "Successful") // more than one part
		file, err := sheet.Open(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		draft, err := f.Keep(t.Context(), Upload{Source: mtn, FileName: "a.csv", By: "ama"}, file)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.OpenDraft(t.Context(), draft.ID, "kofi"); err == nil {
			t.Error("another person opened the draft")
		}
		kept, copied, err := f.OpenDraft(t.Context(), draft.ID, "ama")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = copied.Close() }()
		was, _ := digestOf(file)
		if is, err := digestOf(copied); err != nil || is != was || kept.FileName != "a.csv" || kept.parts < 2 {
			t.Errorf("kept %+v, digest %s, want %s, %v", kept, is, was, err)
		}
		f.clock.Advance(25 * time.Hour)
		if err := f.Sweep(t.Context()); err != nil || f.count("statement_drafts")+f.count("statement_draft_parts") != 0 {
			t.Errorf("the sweep left %d drafts, %v", f.count("statement_drafts"), err)
		}
	})
}
