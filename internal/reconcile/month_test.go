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
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/matrix"
)

// row is one payment as a test stores it.
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
	payment string // or the provider's id of a line without one
}

// faultKinds is how many kinds of faults the generator plants.
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

// payment generates a payment with its line, and every so often a fault.
func (g *month) payment(i, n, fault int) {
	at := monthBegin.Add(time.Duration(i) * (29 * 24 * time.Hour) / time.Duration(n)).Truncate(time.Second)
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

// readerOf gives the bytes of a source of random numbers.
type readerOf struct{ *rand.Rand }

func (r readerOf) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = byte(r.Uint32())
	}
	return len(into), nil
}

func generate(n, faults int) *month {
	g := &month{random: rand.New(rand.NewPCG(1, 2)), lines: map[string][]string{}, balance: map[string]money.Pesewas{mtn: 100_000_000, monthPayouts: 100_000_000_000}, want: map[planted]int{}}
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

// A month of payments with planted faults of ten kinds: exactly the faults become exceptions, and matching again changes nothing.
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
	})
}
