package closing

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/test/dbtest"
)

const bankHeading = "Date,Details,Debit,Credit,Balance\n"

// statements has the statements of the fixture's bank account.
type statements struct {
	*fixture
	*reconcile.Reconcile
}

func (f *fixture) statements() statements {
	return statements{f, reconcile.New(reconcile.Deps{DB: f.db, Clock: f.clock, Log: slog.New(slog.DiscardHandler), Ledger: f.ledger,
		Payments: book.NewReader(f.db, f.ledger, f.clock), Account: func(book.Payment) string { return "" }})}
}

// give imports rows of the bank's statement, and matches them.
func (s statements) give(rows string) reconcile.Statement {
	s.t.Helper()
	file, err := sheet.Open(strings.NewReader(bankHeading + rows))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	done, err := s.Import(s.t.Context(), reconcile.Upload{Source: "test/bank/gcb", FileName: "gcb.csv", By: "ama", ByName: "Ama", Confirmed: true, Answers: reconcile.Layout{Dates: reconcile.DayFirst}}, file)
	if err != nil || done.Reading != nil || !done.Statement.Chains {
		s.t.Fatalf("%v %+v", problem.From(err).Fields, done)
	}
	s.match()
	return done.Statement
}

func (s statements) match() {
	s.t.Helper()
	if err := s.Match(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// is fails the test unless the bank account has these figures on a day, and no unexplained difference.
func (s statements) is(day Day, closing, theirs money.Pesewas) {
	s.t.Helper()
	a := s.account(day, "bank/gcb")
	if a.Closing != closing || a.Theirs == nil || *a.Theirs != theirs || a.Unexplained() != 0 {
		s.t.Fatalf("%s: closing %s, theirs %v, explained %s by %+v", day, a.Closing, a.Theirs, a.Explained, a.Exceptions)
	}
}

// A day has the balance of the imported statement. Its exceptions explain the difference to the pesewa: lines in transit, lines
// without a movement in our books, and money that was booked after the day.
func TestStatement_explainsTheDay(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		s, day := f.statements(), DayOf(began)
		f.until((day + 1).Begin().Add(time.Hour))
		first := s.give("22/11/2026,DEPOSIT ADOM,,1.00,1.00\n22/11/2026,UNKNOWN,,0.50,1.50\n")
		s.is(day, 0, 150)
		lines, err := s.LinesOf(t.Context(), first.ID, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		use := func(tx *db.Tx) error { return s.UseCredit(tx, lines[0].ID, 100, "act", "ama") }
		if err := f.treasury.FundFrom(t.Context(), f.tenant.ID, 100, "gcb", "the credit", "ama", use); err != nil {
			t.Fatal(err)
		}
		s.is(day, 0, 150)
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return f.SetTheirs(tx, asset, day, []Balance{{"bank/gcb", 7}}, "ama") }); !problem.Is(err, problem.Invalid) {
			t.Error("a balance was typed over a statement", err)
		}
		f.until((day + 5).Begin())
		s.give("23/11/2026,CHARGES,0.25,,1.25\n")
		s.is(day, 0, 150)
		s.is(day+1, 100, 125)
		f.closes(day, day+1)
		s.is(day, 0, 150)
		n, err := s.Select(t.Context(), reconcile.Filter{Source: "test/bank/gcb", Kind: reconcile.TheirsOnly})
		if err != nil || len(n.List) != 2 {
			t.Fatal(n, err)
		}
		f.write(func(tx *db.Tx) error { return s.Suspend(tx, []string{n.List[0].ID, n.List[1].ID}, n.Digest, "act") })
		f.write(func(tx *db.Tx) error {
			has, err := f.ledger.BalanceIn(tx, ledger.Key{Asset: asset, ID: ledger.Suspense})
			if err == nil && has != 25 {
				err = fmt.Errorf("suspense has %d", has)
			}
			return err
		})
		f.until((day + 6).Begin().Add(time.Hour))
		s.give("27/11/2026,DEPOSIT,,2.00,3.25\n")
		s.is(day+5, 125, 325)
	})
}

// A line of a closed day that arrives after the close is listed once, in the next open day. The closed day stays as it was signed.
func TestStatement_lateLinesAreListed(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		s, day := f.statements(), DayOf(began)
		f.until((day + 1).Begin().Add(time.Hour))
		s.give("22/11/2026,DEPOSIT,,1.00,1.00\n")
		f.closes(day)
		f.until((day + 2).Begin().Add(time.Hour))
		s.give("21/11/2026,OLD,,0.30,0.30\n21/11/2026,OLD CHARGE,0.30,,0.00\n")
		if late := f.figures(day + 1).LateLines; len(late) == 0 || late[0].Amount != 30 || late[0].Account != "bank/gcb" {
			t.Errorf("late lines: %+v", late)
		}
		if late := f.figures(day).LateLines; len(late) != 0 {
			t.Errorf("the closed day lists %+v", late)
		}
		f.closes(day + 1)
		if late := f.figures(day + 2).LateLines; len(late) != 0 {
			t.Errorf("listed twice: %+v", late)
		}
		s.is(day, 0, 100)
	})
}

// A line of a closed day whose provider corrects it after the close is listed in the next open day. It moves nothing, and the closed day stays
// as it was signed.
func TestStatement_correctionAfterTheClose(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		s, day := f.statements(), DayOf(began)
		give := func(status string) {
			t.Helper()
			file, err := sheet.Open(strings.NewReader("Id,External Transaction Id,Date,Status,Amount\n1,,2026-11-22 12:00:00," + status + ",5.00\n"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			done, err := s.Import(t.Context(), reconcile.Upload{Source: "test/mtn/collection", FileName: status + ".csv", By: "ama", ByName: "Ama", Confirmed: true, Answers: reconcile.Layout{Sign: reconcile.SignIn}}, file)
			if err != nil || done.Reading != nil {
				t.Fatalf("%v %+v", err, done)
			}
			s.match()
		}
		f.until((day + 1).Begin().Add(time.Hour))
		give("Failed")
		f.closes(day)
		before := f.figures(day)
		f.until((day + 2).Begin().Add(time.Hour))
		give("Successful")
		if late := f.figures(day + 1).LateLines; len(late) != 1 || late[0].Amount != 500 || late[0].Version != 2 || late[0].Account != "float/mtn/collection" {
			t.Errorf("late lines: %+v", late)
		}
		if after := f.figures(day); fmt.Sprint(after.Accounts) != fmt.Sprint(before.Accounts) || len(after.LateLines) != 0 {
			t.Errorf("the closed day is %+v, was %+v", after, before)
		}
		if list, err := s.Exceptions(t.Context(), reconcile.Filter{Limit: 10}); err != nil || len(list) != 1 || list[0].Kind != reconcile.TheirsOnly {
			t.Errorf("exceptions: %+v, %v", list, err)
		}
	})
}

// A day is not closed while a statement is being read, whose lines are stored in part.
func TestClose_whileAStatementIsRead(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		day := DayOf(began)
		f.deposit(100)
		f.until((day + 1).End())
		figures := f.figures(day)
		reading := func(mode string, until time.Time) {
			t.Helper()
			if err := d.Write(t.Context(), func(tx *db.Tx) error {
				if _, err := tx.Exec(`DELETE FROM statement_sources`); err != nil {
					return err
				}
				_, err := tx.Exec(`INSERT INTO statement_sources (id, profile, provider, account, mode, reading, reading_until, created_at) VALUES ($1, 'mtn', 'mtn', 'collection', $2, 's', $3, 1)`,
					mode+"/mtn/collection", mode, until)
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		closes := func() error {
			return d.Write(t.Context(), func(tx *db.Tx) error { return f.Close(tx, figures, "act") })
		}
		reading("test", f.clock.Now().Add(time.Minute))
		if err := closes(); !problem.Is(err, problem.InProgress) {
			t.Errorf("closed while a statement is read: %v", err)
		}
		reading("test", f.clock.Now().Add(-time.Minute)) // its server has ended
		if err := closes(); err != nil {
			t.Error(err)
		}
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return f.Reopen(tx, asset, day, 1, "act", "again", "ama") }); err != nil {
			t.Fatal(err)
		}
		figures = f.figures(day)
		reading("live", f.clock.Now().Add(time.Minute))
		if err := closes(); err != nil {
			t.Error(err)
		}
	})
}
