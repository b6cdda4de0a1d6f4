package reconcile

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

// collected returns a collection of 10.00 at noon of a day before the fixture's day.
func collected(reference string, change func(*row)) row {
	r := row{id: book.NewID(noon), kind: "collection", reference: reference, account: "233241234567", status: "success", rail: "mtn", amount: 1000, seq: 1, at: noon, settled: noon.Add(time.Second)}
	if change != nil {
		change(&r)
	}
	return r
}

// moved returns a line of MTN's file a minute after noon.
func moved(id, reference, status, amount, balance string) string {
	return mtnRow(id, reference, "2026-11-20 12:01:00", status, "FRI:233241234567/MSISDN", "us", amount, "", balance)
}

// mustFind fails the test unless the open exceptions are of these kinds.
func (f *fixture) mustFind(kinds ...Kind) []Exception {
	f.t.Helper()
	list, err := f.Exceptions(f.t.Context(), Filter{Limit: 100})
	if err != nil {
		f.t.Fatal(err)
	}
	got := map[Kind]int{}
	for _, e := range list {
		got[e.Kind]++
	}
	want := map[Kind]int{}
	for _, k := range kinds {
		want[k]++
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		f.t.Fatalf("open exceptions are %v, want %v: %+v", got, want, list)
	}
	return list
}

// rules returns the rules of all matches.
func (f *fixture) rules() string {
	f.t.Helper()
	var list []string
	if err := f.db.Read(f.t.Context(), func(tx *db.Tx) error {
		list = nil
		return tx.Query(`SELECT rule FROM statement_matches ORDER BY line`, nil, func(r *db.Row) error {
			var rule string
			err := r.Scan(&rule)
			list = append(list, rule)
			return err
		})
	}); err != nil {
		f.t.Fatal(err)
	}
	return strings.Join(list, " ")
}

// Each named rule matches a line with its payment.
func TestMatch_rules(t *testing.T) {
	for name, c := range map[string]struct {
		pay  func(*row)
		line string
		want string
	}{
		"the provider's id":   {func(r *row) { r.upstream = "77" }, moved("77", "", "Successful", "10.00", ""), "provider_id"},
		"both ids":            {func(r *row) { r.upstream = "77" }, moved("77", refA, "Successful", "10.00", ""), "provider_id"},
		"our reference":       {nil, moved("78", strings.ReplaceAll(refA, "-", ""), "Successful", "10.00", ""), "reference"},
		"amount and party":    {nil, moved("78", "", "Successful", "10.00", ""), "similar"},
		"a mention":           {nil, mtnRow("78", "payment "+refA, "2026-11-20 12:01:00", "Successful", "", "us", "10.00", "", ""), ""},
		"another amount":      {nil, moved("78", "", "Successful", "10.01", ""), ""},
		"a failed line":       {nil, moved("78", refA, "Failed", "10.00", ""), ""},
		"another direction":   {nil, moved("78", "", "Successful", "-10.00", ""), ""},
		"another mode's rail": {func(r *row) { r.rail = "hubtel" }, moved("78", refA, "Successful", "10.00", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := newFixture(t, d)
				f.pay(collected(refA, c.pay))
				f.must(mtn, mtnHeading+c.line)
				f.match()
				if got := f.rules(); got != c.want {
					t.Errorf("matched by %q, want %q", got, c.want)
				}
			})
		})
	}
}

// If two payments have the same amount and party, a line that names neither matches none. The same holds for two lines and one
// payment.
func TestMatch_twoCandidates(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.pay(collected(refA, nil), collected(refB, func(r *row) { r.id, r.seq = book.NewID(noon.Add(time.Minute)), 2 }))
		f.must(mtn, mtnHeading+moved("78", "", "Successful", "10.00", ""))
		f.match()
		f.mustFind(TheirsOnly)
		if got := f.rules(); got != "" {
			t.Errorf("matched by %q", got)
		}
	})
}

// A later statement can show a payment that was missing. Its exception then ends.
func TestMatch_laterStatementCompletes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.pay(collected(refA, nil))
		begin := mtnRow("1", "", "2026-11-20 11:00:00", "Failed", "a", "b", "1.00", "", "50.00")
		end := mtnRow("9", "", "2026-11-22 11:00:00", "Failed", "a", "b", "1.00", "", "50.00")
		f.must(mtn, mtnHeading+begin+end)
		f.match()
		f.mustFind(OursOnly)
		f.must(mtn, mtnHeading+strings.Replace(moved("78", refA, "Successful", "10.00", ""), ",,GHS\n", ",,GHS\n", 1))
		f.match()
		f.mustFind()
		if got := f.rules(); got != "reference" {
			t.Errorf("matched by %q", got)
		}
	})
}

// A payment is missing only if statements without a gap cover its time and the lag after it.
func TestMatch_missingNeedsTheWholeTime(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string
		balances [2]string
		want     []Kind
	}{
		"the whole time":   {"2026-11-20 11:00:00", "2026-11-21 12:00:01", [2]string{"50.00", "50.00"}, []Kind{OursOnly}},
		"within the lag":   {"2026-11-20 11:00:00", "2026-11-21 12:00:00", [2]string{"50.00", "50.00"}, nil},
		"after its begin":  {"2026-11-20 12:00:01", "2026-11-22 12:00:00", [2]string{"50.00", "50.00"}, nil},
		"without balances": {"2026-11-20 11:00:00", "2026-11-22 12:00:00", [2]string{"", ""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := newFixture(t, d)
				f.pay(collected(refA, nil))
				f.must(mtn, mtnHeading+mtnRow("1", "", c.from, "Failed", "a", "b", "1.00", "", c.balances[0])+mtnRow("2", "", c.to, "Failed", "a", "b", "1.00", "", c.balances[1]))
				f.match()
				f.mustFind(c.want...)
			})
		})
	}
}

// If the provider changes a line from failed to successful, matching decides about it again. No money moves.
func TestMatch_newVersion(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.pay(collected(refA, func(r *row) { r.status = "failed" }))
		f.must(mtn, mtnHeading+moved("78", refA, "Failed", "10.00", ""))
		f.match()
		f.mustFind()
		f.must(mtn, mtnHeading+moved("78", refA, "Successful", "10.00", ""))
		f.match()
		f.mustFind(StateOff)
		if n := f.count("transfers"); n != 0 {
			t.Errorf("%d transfers were made", n)
		}
		f.must(mtn, mtnHeading+moved("78", refA, "Failed", "10.00", "")+moved("79", "", "Failed", "1.00", ""))
		f.match()
		f.mustFind()
	})
}

// A partial reversal of a movement is an exception by the difference. The order of the two lines and their files do not matter.
func TestMatch_reversalOfAnotherAmount(t *testing.T) {
	paid := mtnRow("78", refA, "2026-11-20 12:01:00", "Successful", "FRI:233241234567/MSISDN", "us", "10.00", "", "")
	back := func(amount string) string {
		return mtnRow("79", refA, "2026-11-20 13:00:00", "Successful", "us", "FRI:233241234567/MSISDN", amount, "", "")
	}
	for name, c := range map[string]struct {
		status string
		files  []string
		want   []Kind
		delta  money.Pesewas
	}{
		"whole, failed here":           {"failed", []string{paid + back("-10.00")}, nil, 0},
		"less, failed here":            {"failed", []string{paid + back("-9.00")}, []Kind{AmountOff}, 100},
		"more, failed here":            {"failed", []string{paid + back("-10.50")}, []Kind{AmountOff}, -50},
		"less, in another file":        {"failed", []string{paid, back("-9.00")}, []Kind{AmountOff}, 100},
		"less, and the movement after": {"failed", []string{back("-9.00"), paid}, []Kind{AmountOff}, 100},
		"less, successful here":        {"success", []string{paid + back("-9.00")}, []Kind{StateOff}, -900},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := newFixture(t, d)
				f.pay(collected(refA, func(r *row) { r.status = c.status }))
				for _, file := range c.files {
					f.must(mtn, mtnHeading+file)
					f.match()
				}
				f.match()
				for _, e := range f.mustFind(c.want...) {
					if e.Delta != c.delta || e.Amount == 0 {
						t.Errorf("the exception is %+v, want a delta of %s", e, c.delta)
					}
				}
			})
		})
	}
}

// A bank's line is the settlement of the movements that add up to it, less their fees. Within the lag it is in transit.
func TestMatch_settlement(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		const heading = "Date,Transaction ID,Client Reference,Settlement ID,Amount,Charges\n"
		if _, err := f.give("test/hubtel/collection", heading+"2026-11-20 12:00:00,1,,S1,60.00,1.00\n2026-11-20 12:00:00,2,,S1,40.00,0.50\n2026-11-20 12:00:00,3,,S2,5.00,0.00\n", Layout{Sign: SignIn}); err != nil {
			t.Fatal(fields(err))
		}
		f.must("test/bank/gcb", "Date,Reference,Details,Debit,Credit\n21/11/2026,S1,HUBTEL,,98.50\n21/11/2026,S2,HUBTEL,,6.00\n24/11/2026,S9,HUBTEL,,7.00\n")
		f.match()
		f.mustFind(TheirsOnly, TheirsOnly, TheirsOnly, TheirsOnly) // three lines of Hubtel, and S2, whose sum differs
		if f.count("statement_settled") != 2 || f.rules() != "settlement" {
			t.Errorf("%d lines are settled, matched by %q", f.count("statement_settled"), f.rules())
		}
		f.match()
		f.clock.Advance(3 * 24 * time.Hour)
		f.match()
		f.mustFind(TheirsOnly, TheirsOnly, TheirsOnly, TheirsOnly, TheirsOnly)
	})
}

// A person undoes a match with a reason while its day is open. No rule makes the match again, and the payment can be matched with
// another line.
func TestUndo_whileTheDayIsOpen(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.pay(collected(refA, nil))
		f.must(mtn, mtnHeading+moved("78", refA, "Successful", "10.00", ""))
		f.match()
		var line string
		if _, err := d.ReadOne(t.Context(), `SELECT line FROM statement_matches`, nil, &line); err != nil {
			t.Fatal(err)
		}
		if err := f.Undo(t.Context(), line, "ama", " "); err == nil {
			t.Error("undone without a reason")
		}
		f.closed = func(context.Context, ledger.Asset, time.Time) (bool, error) { return true, nil }
		if err := f.Undo(t.Context(), line, "ama", "wrong"); err == nil {
			t.Error("undone though the day is closed")
		}
		f.closed = nil
		if err := f.Undo(t.Context(), line, "ama", "wrong"); err != nil {
			t.Fatal(err)
		}
		f.match()
		f.mustFind(TheirsOnly)
		f.must(mtn, mtnHeading+moved("78", refA, "Successful", "10.00", "")+moved("79", refA, "Successful", "10.00", ""))
		f.match()
		f.mustFind(TheirsOnly)
		if got := f.rules(); got != "reference" {
			t.Errorf("matched by %q", got)
		}
	})
}

// A person's number is erased from lines after matching has decided about them. The amounts stay.
func TestErase_decidedLines(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.must(mtn, mtnHeading+moved("78", "", "Successful", "10.00", "")+moved("79", "", "Failed", "10.00", ""))
		erase := func() (erased, left int) {
			if err := OfNumber(t.Context(), d, []string{"233241234567", "0241234567"}, func(l Line, _ bool) error {
				done, err := Erase(t.Context(), d, l.ID)
				if done {
					erased++
				} else {
					left++
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return erased, left
		}
		if erased, left := erase(); erased != 0 || left != 2 {
			t.Errorf("before matching: %d erased, %d left", erased, left)
		}
		f.match()
		if erased, left := erase(); erased != 2 || left != 0 {
			t.Errorf("after matching: %d erased, %d left", erased, left)
		}
		if erased, left := erase(); erased+left != 0 || f.count("statement_lines") != 2 {
			t.Errorf("again: %d erased, %d left of %d", erased, left, f.count("statement_lines"))
		}
	})
}

// A note on an exception that contains a person's number is found in any spelling and deleted. Other notes stay.
func TestEraseNote_withTheNumber(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.must(mtn, mtnHeading+moved("78", "", "Successful", "10.00", "")+moved("79", "", "Successful", "11.00", ""))
		f.match()
		list := f.mustFind(TheirsOnly, TheirsOnly)
		for i, note := range []string{"called 0241234567, no answer", "the bank's mistake"} {
			if err := f.Note(t.Context(), list[i].ID, note); err != nil {
				t.Fatal(err)
			}
		}
		if err := NotesOfNumber(t.Context(), d, []string{"233241234567", "0241234567"}, func(e Exception) error {
			if e.ID != list[0].ID {
				t.Errorf("found the note %q", e.Note)
			}
			return EraseNote(t.Context(), d, e.ID)
		}); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"", "the bank's mistake"} {
			if e, err := f.Exception(t.Context(), list[i].ID); err != nil || e.Note != want {
				t.Errorf("the note is %q, want %q: %v", e.Note, want, err)
			}
		}
	})
}

// rerouted records that a payment was given up at another provider under a reference of its own.
func (f *fixture) rerouted(r row, rail, reference string) {
	f.t.Helper()
	if err := f.db.Write(f.t.Context(), func(tx *db.Tx) error {
		if _, err := tx.Exec(`INSERT INTO attempts (tenant, kind, payment, number, rail, provider_reference, posts, class, reason, ended_at) VALUES ('t', $1, $2, 1, $3, $4, 1, '', '', 1)`,
			r.kind, r.id, rail, reference); err != nil {
			return err
		}
		_, err := tx.Exec(`UPDATE payments SET attempt = 2, provider_reference = $2, attempt_reference = reference WHERE id = $1`, r.id, reference)
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
}

// A line of an attempt that was given up stays an exception, whatever the other provider did and however often the line is decided about,
// until the provider has taken its money back.
func TestMatch_attemptThatWasGivenUp(t *testing.T) {
	const out = "test/mtn/disbursement"
	sent := func(id, status, amount string) string {
		return mtnRow(id, refB, "2026-11-20 12:01:00", status, "us", "FRI:233241234567/MSISDN", amount, "", "")
	}
	for name, status := range map[string]string{"paid by the other": "success", "failed at the other": "failed", "open at the other": "pending"} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := newFixture(t, d)
				f.account = oneBalance
				pay := collected(refA, func(r *row) {
					r.kind, r.rail, r.status = "payout", "hubtel", status
					if status == "pending" {
						r.settled = time.Time{}
					}
				})
				f.pay(pay)
				f.rerouted(pay, "mtn", refB)
				f.must(out, mtnHeading+sent("1", "Failed", "-10.00"))
				f.match()
				f.mustFind()
				f.must(out, mtnHeading+sent("2", "Successful", "-10.00"))
				for range 2 {
					if err := f.Recheck(t.Context()); err != nil {
						t.Fatal(err)
					}
					if e := f.mustFind(StateOff)[0]; e.Delta != -1000 || e.Payment != pay.id || !strings.Contains(e.Reason, "given up") {
						t.Fatalf("%+v", e)
					}
				}
				f.must(out, mtnHeading+sent("3", "Successful", "10.00")+sent("4", "Successful", "-5.00")+sent("5", "Successful", "5.00"))
				f.match()
				f.mustFind()
				f.must(out, mtnHeading+sent("3", "Failed", "10.00")+sent("4", "Failed", "-5.00")+sent("5", "Failed", "5.00"))
				f.match()
				if e := f.mustFind(StateOff)[0]; e.Delta != -1000 {
					t.Fatalf("%+v", e)
				}
				if got := f.rules(); got != "" {
					t.Errorf("matched by %q", got)
				}
			})
		})
	}
}

// The failed line of an attempt that was given up does not end, or change, the exception that the statement of the next
// provider lacks the payment: that provider may not have paid. It ends an exception of its own source.
func TestMatch_givenUpAndMissing(t *testing.T) {
	const out, next = "test/mtn/disbursement", "test/hubtel/disbursement"
	for name, c := range map[string]struct {
		source, set string
		open        int
	}{
		"open": {next, "reason = reason", 1}, "in suspense": {next, "ending = 'suspense', ended_at = opened_at", 0},
		"released": {next, "ending = 'released', ended_at = opened_at", 0}, "of its own source": {out, "reason = reason", 0},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := newFixture(t, d)
				f.account = oneBalance
				pay := collected(refA, func(r *row) { r.kind, r.rail = "payout", "hubtel" })
				f.pay(pay)
				f.rerouted(pay, "mtn", refB)
				e := Exception{ID: newID(), Source: c.source, Kind: OursOnly, Payment: pay.id, Amount: 1000, Delta: 1000, Reason: "r", At: noon, OpenedAt: noon}
				if err := d.Write(t.Context(), func(tx *db.Tx) error {
					db.Insert(tx, "statement_exceptions", insertExceptions, []Exception{e})
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if _, err := d.Exec(t.Context(), "UPDATE statement_exceptions SET "+c.set+" WHERE id = $1", e.ID); err != nil {
					t.Fatal(err)
				}
				f.must(out, mtnHeading+mtnRow("1", refB, "2026-11-20 12:01:00", "Failed", "us", "FRI:233241234567/MSISDN", "-10.00", "", ""))
				f.match()
				if list, err := f.Exceptions(t.Context(), Filter{Limit: 10}); err != nil || len(list) != c.open {
					t.Errorf("%+v, %v", list, err)
				}
				var same bool
				if _, err := d.ReadOne(t.Context(), "SELECT ending = 'agreed' FROM statement_exceptions WHERE id = $1", []any{e.ID}, &same); err != nil || same != (c.source == out) {
					t.Errorf("agreed is %v, %v", same, err)
				}
			})
		})
	}
}

// A payment does not end as not paid while the statement of any provider shows that an attempt was paid and kept.
func TestCheckUnpaid_attemptPaidElsewhere(t *testing.T) {
	const out = "test/mtn/disbursement"
	sent := func(id, amount string) string {
		return mtnRow(id, refB, "2026-11-20 12:01:00", "Successful", "us", "FRI:233241234567/MSISDN", amount, "", "")
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		pay := collected(refA, func(r *row) { r.kind, r.rail, r.status, r.settled = "payout", "hubtel", "pending", time.Time{} })
		f.pay(pay)
		f.rerouted(pay, "mtn", refB)
		check := func(want string) {
			t.Helper()
			e := Exception{ID: newID(), Source: "test/hubtel/disbursement", Kind: OursOnly, Payment: pay.id, Amount: 1000, Reason: "r", At: noon, OpenedAt: noon}
			if err := d.Write(t.Context(), func(tx *db.Tx) error {
				if _, err := tx.Exec(`DELETE FROM statement_exceptions WHERE kind = 'ours_only'`); err != nil {
					return err
				}
				db.Insert(tx, "statement_exceptions", insertExceptions, []Exception{e})
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			n, err := f.Selected(t.Context(), []string{e.ID})
			if err != nil {
				t.Fatal(err)
			}
			for by, err := range map[string]error{"request": f.CheckUnpaid(t.Context(), pay.id), "write": d.Write(t.Context(), func(tx *db.Tx) error {
				return f.EndSettled(tx, e.ID, n.Digest, false, "act")
			})} {
				if err == nil && want != "" || err != nil && problem.From(err).Code != want {
					t.Errorf("%s: %v, want %q", by, err, want)
				}
			}
			if err := d.Write(t.Context(), func(tx *db.Tx) error { return f.EndSettled(tx, e.ID, n.Digest, true, "act") }); want != "" && err != nil {
				t.Errorf("ended as paid: %v", err)
			}
		}
		check("")
		f.must(out, mtnHeading+sent("2", "-10.00"))
		check("paid_elsewhere") // before matching has seen the line
		f.match()
		check("paid_elsewhere")
		f.must(out, mtnHeading+sent("3", "10.00"))
		check("")
		withFee := mtnRow("4", refB, "2026-11-20 12:02:00", "Successful", "us", "FRI:233241234567/MSISDN", "-10.50", "0.50", "")
		f.must(out, mtnHeading+withFee)
		check("paid_elsewhere")
		f.must(out, mtnHeading+sent("5", "10.00")) // the fee was kept
		check("")
		f.must(out, mtnHeading+sent("6", "-1.00"))
		check("paid_elsewhere")
	})
}
