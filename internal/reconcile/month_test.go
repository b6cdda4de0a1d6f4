package reconcile

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/matrix"
)

// row is one payment that a test stores.
type row struct {
	id, kind, reference, account, status, upstream string
	rail                                           string
	amount                                         money.Pesewas
	seq                                            int
	at, settled                                    time.Time
}

func text(name string, value func(row) string) db.Column[row] {
	return db.Column[row]{Name: name, Text: value}
}

func constant(name, value string) db.Column[row] {
	return text(name, func(row) string { return value })
}

var paymentColumns = []db.Column[row]{
	constant("tenant", "t"), constant("mode", "test"), constant("channel", "MTN"), constant("fee_bearer", "merchant"), constant("account_name", ""), constant("bank_id", ""), constant("label", ""),
	constant("callback_url", ""), constant("access_key", "k"), constant("idempotency_hash", ""), constant("parent", ""), constant("child", ""), constant("details", ""),
	text("kind", func(r row) string { return r.kind }), text("id", func(r row) string { return r.id }), text("reference", func(r row) string { return r.reference }),
	text("provider_reference", func(r row) string { return r.reference }), text("account", func(r row) string { return r.account }), text("status", func(r row) string { return r.status }),
	text("rail", func(r row) string { return r.rail }), text("upstream_id", func(r row) string { return r.upstream }),
	{Name: "seq", Int: func(r row) int64 { return int64(r.seq) }}, {Name: "amount", Int: func(r row) int64 { return int64(r.amount) }},
	{Name: "charges", Int: func(row) int64 { return 0 }}, {Name: "plan", Int: func(row) int64 { return 1 }},
	{Name: "created_at", Time: func(r row) time.Time { return r.at }}, {Name: "settled_at", Time: func(r row) time.Time { return r.settled }},
}

// pay stores payments.
func (f *fixture) pay(rows ...row) {
	f.t.Helper()
	for part := range slices.Chunk(rows, 1000) {
		if err := f.db.Write(f.t.Context(), func(tx *db.Tx) error {
			db.Insert(tx, "payments", paymentColumns, part)
			return nil
		}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// planted is one fault of a generated month, and the exception that must be found.
type planted struct {
	kind    Kind
	payment string // or the provider's id of a line that has no payment
}

// faultKinds is the number of kinds of faults that the generator plants.
const faultKinds = 10

// month generates payments and the statements of their provider, with faults.
type month struct {
	random  *rand.Rand
	rows    []row
	lines   map[string][]string // by source, in order
	balance map[string]money.Pesewas
	number  int
	want    map[planted]int
}

var monthBegin = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

const monthPayouts = "test/mtn/disbursement"

// The balances at the beginning of the month, in pesewas.
const (
	openingIn  = 100_000_000
	openingOut = 100_000_000_000
)

func (g *month) add(source, reference, status, narrative, party string, at time.Time, amount, fee money.Pesewas) (id string) {
	g.number++
	id = fmt.Sprint(900_000_000 + g.number)
	if status == "Successful" {
		g.balance[source] += amount - fee
	}
	g.lines[source] = append(g.lines[source], fmt.Sprintf("%s,%s,%s,%s,Transfer,,,%s,%s,,,%s,,,,,%s,GHS,%s,GHS,,GHS,,GHS,,GHS,%s,GHS\n", id, reference, at.Format("2006-01-02 15:04:05"), status, narrative,
		party, party, amount, fee, g.balance[source]))
	return id
}

// payment generates a payment with its line, and sometimes a fault.
func (g *month) payment(i, n, fault int) {
	at := monthBegin.Add(time.Duration(i) * (29 * 24 * time.Hour / time.Duration(n))).Truncate(time.Second)
	r := row{id: book.NewID(at), kind: "payout", reference: uuid.Must(uuid.NewRandomFromReader(readerOf{g.random})).String(), account: fmt.Sprintf("23324%07d", g.random.IntN(10_000_000)),
		status: "success", rail: "mtn", amount: money.Pesewas(100 + g.random.IntN(100_000)), seq: i + 1, at: at, settled: at.Add(2 * time.Second)}
	source, amount := monthPayouts, -r.amount
	if i%2 == 0 {
		r.kind, source, amount = "collection", mtn, r.amount
	}
	moved, party := at.Add(time.Second), "FRI:"+r.account+"/MSISDN"
	lineAs := func(status string, amount, fee money.Pesewas) string {
		return g.add(source, r.reference, status, "", party, moved, amount, fee)
	}
	expect := func(kind Kind, what string) { g.want[planted{kind, what}]++ }
	switch fault {
	case 0:
		expect(OursOnly, r.id)
	case 1:
		lineAs("Successful", amount+1, 0)
		expect(AmountOff, r.id)
	case 2:
		lineAs("Successful", amount, 0)
		lineAs("Successful", amount, 0)
		expect(Twice, r.id)
	case 3:
		lineAs("Successful", amount, 50)
		expect(FeeOff, r.id)
	case 4:
		lineAs("Successful", amount, 0)
		lineAs("Successful", -amount, 0)
		expect(StateOff, r.id)
	case 5:
		lineAs("Failed", amount, 0)
		expect(StateOff, r.id)
	case 6:
		r.status = "failed"
		lineAs("Successful", amount, 0)
		expect(StateOff, r.id)
	case 7:
		lineAs("Successful", amount, 0)
		expect(TheirsOnly, g.add(source, "", "Successful", "", "FRI:233209999999/MSISDN", moved, 777, 0))
	case 8:
		lineAs("Successful", amount, 0)
		expect(TheirsOnly, g.add(source, "", "Successful", "bank charge", "", moved, -333, 0))
	case 9:
		lineAs("Successful", amount, 0)
		expect(TheirsOnly, g.add(source, "", "Successful", "for "+r.reference, "FRI:233208888888/MSISDN", moved, amount, 0))
	default:
		lineAs("Successful", amount, 0)
	}
	g.rows = append(g.rows, r)
}

// readerOf reads bytes from a source of random numbers.
type readerOf struct{ *rand.Rand }

func (r readerOf) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = byte(r.Uint32())
	}
	return len(into), nil
}

func generate(n, faults int) *month {
	g := &month{random: rand.New(rand.NewPCG(1, 2)), lines: map[string][]string{}, balance: map[string]money.Pesewas{mtn: openingIn, monthPayouts: openingOut}, want: map[planted]int{}}
	every, made := n*8/10/faults, 0
	for i := range n {
		fault := -1
		if i%every == every/2 && made < faults {
			fault, made = made%faultKinds, made+1
		}
		g.payment(i, n, fault)
	}
	end := monthBegin.AddDate(0, 1, 1) // so that the statements reach the end of the lag
	for _, source := range []string{mtn, monthPayouts} {
		g.want[planted{TheirsOnly, g.add(source, "", "Successful", "", "", end, 1, 0)}]++
	}
	return g
}

// give imports the statements in files of some lines.
func (g *month) give(f *fixture, most int) {
	f.t.Helper()
	for source, lines := range g.lines {
		for part := range slices.Chunk(lines, most) {
			file, err := sheet.Open(io.MultiReader(strings.NewReader(mtnHeading), strings.NewReader(strings.Join(part, ""))))
			if err != nil {
				f.t.Fatal(err)
			}
			done, err := f.Import(f.t.Context(), Upload{Source: source, FileName: "november.csv", By: "ama", ByName: "Ama", Confirmed: true, Answers: Layout{Sign: SignIn}}, file)
			if err != nil || done.Reading != nil || !done.Statement.Chains {
				f.t.Fatalf("%s: %v %+v", source, fields(err), done.Reading)
			}
			if err := file.Close(); err != nil {
				f.t.Error(err)
			}
		}
	}
}

// found returns the open exceptions as planted faults.
func (f *fixture) found() map[planted]int {
	f.t.Helper()
	found := map[planted]int{}
	for before := ""; ; {
		list, err := f.Exceptions(f.t.Context(), Filter{Before: before, Limit: 1000})
		if err != nil {
			f.t.Fatal(err)
		}
		for _, e := range list {
			what := e.Payment
			if what == "" {
				l, err := f.Line(f.t.Context(), e.Line)
				if err != nil {
					f.t.Fatal(err)
				}
				what = l.TheirID
			}
			found[planted{e.Kind, what}]++
			before = e.ID
		}
		if len(list) < 1000 {
			return found
		}
	}
}

func (f *fixture) match() {
	f.t.Helper()
	if err := f.Match(f.t.Context()); err != nil {
		f.t.Fatal(fields(err))
	}
}

// A month of payments has planted faults of ten kinds. Exactly the faults become exceptions, and a second matching changes nothing.
// On each day the exceptions explain the difference between statements and books to the pesewa. After all are resolved, the
// balances are equal.
func TestMonth_findsPlantedFaults(t *testing.T) {
	n, faults := 3000, 50
	if matrix.Whole() {
		n, faults = 200_000, 500
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.clock.Advance(monthBegin.AddDate(0, 1, 3).Sub(f.clock.Now()))
		g := generate(n, faults)
		f.pay(g.rows...)
		g.books(f)
		g.give(f, 40_000)
		begun := time.Now()
		f.match()
		t.Logf("matched %d payments in %s", n, time.Since(begun).Round(time.Millisecond))
		found := f.found()
		for fault, times := range g.want {
			if found[fault] != times {
				t.Errorf("%s of %s is found %d times, want %d", fault.kind, fault.payment, found[fault], times)
			}
			delete(found, fault)
		}
		for fault, times := range found {
			t.Errorf("%s of %s is found %d times and was not planted", fault.kind, fault.payment, times)
		}
		matches, exceptions := f.count("statement_matches"), f.count("statement_exceptions")
		if err := f.Recheck(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		f.match()
		if m, e := f.count("statement_matches"), f.count("statement_exceptions"); m != matches || e != exceptions {
			t.Errorf("matching again: %d matches and %d exceptions, were %d and %d", m, e, matches, exceptions)
		}
		g.ties(f)
		begun = time.Now()
		f.resolves()
		f.match()
		f.mustFind()
		t.Logf("resolved %d exceptions in %s", exceptions, time.Since(begun).Round(time.Millisecond))
		g.ties(f)
		for _, source := range []string{mtn, monthPayouts} {
			s, err := ParseSource(source)
			if err != nil {
				t.Fatal(err)
			}
			if ours := f.ours(s.Ledger().ID, f.clock.Now().Add(time.Hour)); ours != g.balance[source] {
				t.Errorf("%s: our books end with %s, and the statement with %s", source, ours, g.balance[source])
			}
		}
		if left := f.ours(ledger.Suspense, f.clock.Now().Add(time.Hour)); left != 0 {
			t.Errorf("%s are left in suspense", left)
		}
	})
}

// books posts the opening balances, and the transfers of payments that succeeded.
func (g *month) books(f *fixture) {
	f.t.Helper()
	list := []ledger.Transfer{}
	for source, opening := range map[string]int64{mtn: openingIn, monthPayouts: openingOut} {
		s, err := ParseSource(source)
		if err != nil {
			f.t.Fatal(err)
		}
		list = append(list, ledger.Transfer{Asset: ledger.TestGHS, From: s.Ledger().ID, To: ledger.Funding, Amount: opening, Subject: source, Leg: "opening", Kind: "opening", At: monthBegin})
	}
	for _, r := range g.rows {
		if r.status != "success" {
			continue
		}
		t := ledger.Transfer{Asset: ledger.TestGHS, From: ledger.Funding, To: ledger.FloatAt("mtn", "disbursement"), Amount: int64(r.amount), Subject: r.id, Leg: book.LegFinal, Kind: "payout", At: r.settled}
		if r.kind == "collection" {
			t.From, t.To, t.Kind = ledger.FloatAt("mtn", "collection"), ledger.Funding, r.kind
		}
		list = append(list, t)
	}
	for part := range slices.Chunk(list, 1000) {
		f.posts(part...)
	}
}

// ours returns the balance of an account in our books at a moment.
func (f *fixture) ours(id ledger.AccountID, before time.Time) money.Pesewas {
	f.t.Helper()
	return f.moved(id, time.Time{}, before)
}

// moved returns the change of the balance of an account in our books within a period.
func (f *fixture) moved(id ledger.AccountID, from, to time.Time) (sum money.Pesewas) {
	f.t.Helper()
	if err := f.db.Read(f.t.Context(), func(tx *db.Tx) error {
		_, err := tx.One(`SELECT CAST(COALESCE(sum(CASE WHEN from_account = $1 THEN amount ELSE -amount END), 0) AS INTEGER) FROM transfers WHERE (from_account = $1 OR to_account = $1) AND at >= $2 AND at < $3`,
			[]any{id, from, to}, &sum)
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
	return sum
}

// ties fails the test unless the listed reasons explain the difference between the statements and our books on each day of the
// month.
func (g *month) ties(f *fixture) {
	f.t.Helper()
	ours := map[ledger.AccountID]money.Pesewas{} // at the end of the day
	for day := range 31 {
		begin := monthBegin.AddDate(0, 0, day)
		end := begin.AddDate(0, 0, 1)
		var list []Given
		if err := f.db.Read(f.t.Context(), func(tx *db.Tx) (err error) {
			list, err = AtDay(tx, "test", begin, end)
			return err
		}); err != nil {
			f.t.Fatal(err)
		}
		if len(list) != 2 {
			f.t.Errorf("%s has the balances of %d statements", begin.Format(time.DateOnly), len(list))
		}
		for _, one := range list {
			ours[one.Account] += f.moved(one.Account, begin, end)
			explained := money.Pesewas(0)
			for _, r := range one.Reasons {
				explained += r.Amount
			}
			if off := one.Balance - ours[one.Account] - explained; off != 0 {
				f.t.Errorf("%s, %s: %s is unexplained", begin.Format(time.DateOnly), one.Account, off)
			}
		}
	}
}

// resolves resolves every open exception, as people do with approvals, and moves the money out of suspense.
func (f *fixture) resolves() {
	f.t.Helper()
	act := 0
	each := func(from Filter, do func(tx *db.Tx, ids []string, digest, act string) error) {
		for {
			from.Limit = MaxSelected
			list, err := f.Exceptions(f.t.Context(), from)
			if err != nil || len(list) == 0 {
				if err != nil {
					f.t.Fatal(err)
				}
				return
			}
			ids := make([]string, len(list))
			for i, e := range list {
				ids[i] = e.ID
			}
			slices.Sort(ids)
			selected := f.Selected
			if from.Ending == EndedSuspend {
				selected = f.Suspended
			}
			n, err := selected(f.t.Context(), ids)
			if err != nil {
				f.t.Fatal(err)
			}
			act++
			if err := f.db.Write(f.t.Context(), func(tx *db.Tx) error { return do(tx, ids, n.Digest, fmt.Sprint("act", act)) }); err != nil {
				f.t.Fatal(fields(err))
			}
		}
	}
	each(Filter{Kind: FeeOff}, f.BookFees)
	for _, k := range []Kind{TheirsOnly, OursOnly, AmountOff, StateOff, Twice} {
		each(Filter{Kind: k}, f.Suspend)
	}
	if err := f.Recheck(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	each(Filter{Ending: EndedSuspend}, func(tx *db.Tx, ids []string, digest, act string) error {
		return f.Release(tx, ids, digest, act, "kofi", func(Exception) (ledger.AccountID, error) { return ledger.Fees, nil })
	})
	if err := f.Recheck(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// A payment in the last second of a day is matched with its line of the next day, and is not an exception. The day lists it as in
// transit at midnight, in both directions.
func TestMatch_aroundMidnight(t *testing.T) {
	midnight := noon.Truncate(24 * time.Hour).Add(24 * time.Hour)
	for name, c := range map[string]struct{ ours, theirs time.Time }{
		"our day before": {midnight.Add(-time.Second), midnight},
		"our day after":  {midnight, midnight.Add(-time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				f := newFixture(t, d)
				g := &month{rows: []row{collected(refA, func(r *row) {
					r.at, r.settled, r.id = midnight.Add(-2*time.Second), c.ours, book.NewID(midnight.Add(-2*time.Second))
				})}}
				f.pay(g.rows...)
				g.books(f)
				line := func(id, reference string, at time.Time, amount, balance string) string {
					return mtnRow(id, reference, at.Format("2006-01-02 15:04:05"), "Successful", "FRI:233241234567/MSISDN", "us", amount, "", balance)
				}
				opening := money.Pesewas(openingIn)
				f.must(mtn, mtnHeading+line("1", refB, midnight.Add(-time.Hour), "0.00", opening.String())+line("2", refA, c.theirs, "10.00", (opening+1000).String())+
					line("3", refB, midnight.Add(48*time.Hour), "0.00", (opening+1000).String()))
				f.match()
				for _, e := range f.mustList() {
					if e.Payment != "" {
						t.Errorf("the payment is an exception: %+v", e)
					}
				}
				var list []Given
				if err := d.Read(t.Context(), func(tx *db.Tx) (err error) {
					list, err = AtDay(tx, "test", midnight.Add(-24*time.Hour), midnight)
					return err
				}); err != nil || len(list) != 1 || len(list[0].Reasons) != 1 {
					t.Fatalf("%+v, %v", list, err)
				}
				if off := list[0].Balance - f.ours(list[0].Account, midnight); off == 0 || off != list[0].Reasons[0].Amount {
					t.Errorf("the books differ by %s, and %+v is listed", off, list[0].Reasons[0])
				}
			})
		})
	}
}

// mustList returns the open exceptions.
func (f *fixture) mustList() []Exception {
	f.t.Helper()
	list, err := f.Exceptions(f.t.Context(), Filter{Limit: 100})
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}
