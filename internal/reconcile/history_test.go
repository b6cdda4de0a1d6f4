package reconcile

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

// fact is a movement at the provider, as the next file has it.
type fact struct {
	id, reference, party, note, status string
	amount, fee                        money.Pesewas
	at                                 time.Time
	frozen                             bool // a person has written its line off
}

// history is a random life of statements and payments, with a model of the money: the lines as the files had them last.
type history struct {
	*fixture
	random *rand.Rand
	pays   map[string][]row                    // by source
	facts  map[string][]*fact                  // by source
	given  map[string]map[string]money.Pesewas // by source and id of the provider: the change of the balance
	told   []string                            // what happened
	stale  []Selection                         // exceptions as people saw them earlier
	wallet ledger.Key
}

func newHistory(t *testing.T, d *db.DB, seed uint64) *history {
	h := &history{fixture: newFixture(t, d), random: rand.New(rand.NewPCG(seed, 7)), pays: map[string][]row{}, facts: map[string][]*fact{}, given: map[string]map[string]money.Pesewas{},
		wallet: ledger.Key{Asset: ledger.TestGHS, ID: ledger.Wallet("t")}}
	if err := d.Write(t.Context(), func(tx *db.Tx) error {
		h.matcher.ledger.Create(tx, h.wallet, 0)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		at := noon.Add(time.Duration(i) * time.Minute)
		r := row{id: book.NewID(at), kind: "payout", reference: uuid.Must(uuid.NewRandomFromReader(readerOf{h.random})).String(), account: fmt.Sprintf("23324123456%d", h.random.IntN(3)),
			status: h.one("success", "success", "failed", "pending"), rail: "mtn", amount: money.Pesewas(1000 * (1 + h.random.IntN(2))), seq: i + 1, at: at}
		source := monthPayouts
		if i%2 == 0 {
			r.kind, source = "collection", mtn
		}
		if r.status != "pending" {
			r.settled = at.Add(time.Second)
		}
		h.pay(r)
		if r.status == "success" {
			h.paid(r)
		}
		h.pays[source] = append(h.pays[source], r)
		for range 1 + h.random.IntN(2)*h.random.IntN(2) {
			h.happens(source, r)
		}
	}
	return h
}

func (h *history) one(words ...string) string { return words[h.random.IntN(len(words))] }

func (h *history) tell(format string, args ...any) {
	h.told = append(h.told, fmt.Sprintf(format, args...))
}

func (r row) signed() money.Pesewas {
	if r.kind == "collection" {
		return r.amount
	}
	return -r.amount
}

// paid posts the movement of a payment that succeeded.
func (h *history) paid(r row) {
	t := ledger.Transfer{Asset: ledger.TestGHS, From: ledger.Funding, To: ledger.FloatAt("mtn", "disbursement"), Amount: int64(r.amount), Subject: r.id, Leg: book.LegFinal, Kind: "payout", At: h.clock.Now()}
	if r.kind == "collection" {
		t.From, t.To, t.Kind = ledger.FloatAt("mtn", "collection"), ledger.Funding, r.kind
	}
	h.posts(t)
}

// happens adds a movement of a payment at the provider, or one that looks so.
func (h *history) happens(source string, r row) {
	f := &fact{id: fmt.Sprint(800_000_000 + len(h.facts[mtn])*10 + len(h.facts[monthPayouts])*10_000), reference: r.reference, party: "FRI:" + r.account + "/MSISDN", status: h.one("Successful", "Successful", "Successful", "Failed"),
		amount: r.signed(), at: r.at.Add(time.Minute)}
	switch h.random.IntN(8) {
	case 0:
		f.reference = ""
	case 1:
		f.reference, f.note = "", "for "+r.reference // as a payer may write
	case 2:
		f.reference, f.note, f.party = "", "for "+r.reference, "FRI:233209999999/MSISDN"
	case 3:
		f.amount = -f.amount // taken back
	}
	h.facts[source] = append(h.facts[source], f)
}

// corrects changes what the provider says about a movement.
func (h *history) corrects() {
	source := h.one(mtn, monthPayouts)
	f := h.facts[source][h.random.IntN(len(h.facts[source]))]
	if f.frozen {
		return
	}
	switch h.random.IntN(3) {
	case 0:
		f.status = h.one("Successful", "Failed")
	case 1:
		f.amount += money.Pesewas(h.random.IntN(3)-1) * 7
	case 2:
		f.fee = money.Pesewas(h.random.IntN(3) * 5)
	}
	h.tell("the provider has %s of %s as %s of %s, fee %s", f.id, source, f.status, f.amount, f.fee)
}

// imports gives a file with some of the movements.
func (h *history) imports() {
	source, text := h.one(mtn, monthPayouts), ""
	lines := map[string]money.Pesewas{}
	for _, f := range h.facts[source] {
		if h.random.IntN(3) == 0 {
			continue
		}
		from, to := f.party, "us"
		if f.amount < 0 {
			from, to = to, from
		}
		text += mtnRow(f.id, cmp.Or(f.reference, f.note), f.at.Format("2006-01-02 15:04:05"), f.status, from, to, f.amount.String(), f.fee.String(), "")
		if lines[f.id] = 0; f.status == "Successful" {
			lines[f.id] = f.amount - f.fee
		}
	}
	if text == "" {
		return
	}
	h.must(source, mtnHeading+text)
	if h.given[source] == nil {
		h.given[source] = map[string]money.Pesewas{}
	}
	for id, change := range lines {
		h.given[source][id] = change
	}
	h.tell("a file of %s has %d lines", source, len(lines))
}

// undoes ends a match.
func (h *history) undoes() {
	var lines []string
	if err := h.db.Read(h.t.Context(), func(tx *db.Tx) error {
		lines = nil
		return tx.Query(`SELECT line FROM statement_matches ORDER BY line`, nil, func(r *db.Row) error {
			var line string
			err := r.Scan(&line)
			lines = append(lines, line)
			return err
		})
	}); err != nil {
		h.t.Fatal(err)
	}
	if len(lines) == 0 {
		return
	}
	line := lines[h.random.IntN(len(lines))]
	err := h.Undo(h.t.Context(), line, "ama", "a wrong match")
	h.allows("undo of "+line, err)
}

// allows fails the test for an error that is no refusal.
func (h *history) allows(what string, err error) {
	h.t.Helper()
	var refused *problem.Error
	if err != nil && (!errors.As(err, &refused) || refused.Kind == problem.Unavailable) {
		h.fails("%s: %v", what, err)
	}
	h.tell("%s: %v", what, err)
}

func (h *history) fails(format string, args ...any) {
	h.t.Helper()
	for source, list := range h.pays {
		for _, r := range list {
			h.tell("%s: payment %s, %s, is %s with %s of %s", source, r.id, r.reference, r.status, r.signed(), r.account)
		}
		for _, f := range h.facts[source] {
			h.tell("%s: line %s is %s with %s, fee %s, %q %q", source, f.id, f.status, f.amount, f.fee, f.reference, f.note)
		}
	}
	for _, e := range h.everyException() {
		h.tell("%s: exception %s: %s, line %s, payment %s, delta %s, ended %q: %s", e.Source, e.ID, e.Kind, e.Line, e.Payment, e.Delta, e.Ending, e.Reason)
	}
	h.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(h.told, "\n"))
}

// selects returns an exception as a person sees it, or saw one earlier.
func (h *history) selects(ending Ending) (n Selection, found bool) {
	if len(h.stale) > 0 && h.random.IntN(4) == 0 {
		return h.stale[h.random.IntN(len(h.stale))], true
	}
	list, err := h.Exceptions(h.t.Context(), Filter{Ending: ending, Limit: 100})
	if err != nil {
		h.t.Fatal(err)
	}
	if len(list) == 0 {
		return n, false
	}
	e := list[h.random.IntN(len(list))]
	if ending == EndedSuspend {
		n, err = h.Suspended(h.t.Context(), []string{e.ID})
	} else {
		n, err = h.Selected(h.t.Context(), []string{e.ID})
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.stale = append(h.stale, n)
	return n, true
}

// resolvesOne ends an exception twice in one of its ways. The second time is refused.
func (h *history) resolvesOne() {
	ending := Ending("")
	if h.random.IntN(3) == 0 {
		ending = EndedSuspend
	}
	n, found := h.selects(ending)
	if !found {
		return
	}
	e, act := n.List[0], newID()
	ids := []string{e.ID}
	var do func(tx *db.Tx) error
	what := h.one("suspend", "release", "fees", "adopt", "pair", "settle", "settle", "write off")
	if ending == EndedSuspend {
		what = "release"
	}
	switch what {
	case "suspend":
		if err := h.CheckSuspend(h.t.Context(), n.List); err != nil {
			return
		}
		do = func(tx *db.Tx) error { return h.Suspend(tx, ids, n.Digest, act) }
	case "release":
		do = func(tx *db.Tx) error {
			return h.Release(tx, ids, n.Digest, act, "kofi", func(Exception) (ledger.AccountID, error) { return ledger.Fees, nil })
		}
	case "fees":
		do = func(tx *db.Tx) error { return h.BookFees(tx, ids, n.Digest, act) }
	case "adopt":
		do = func(tx *db.Tx) error {
			_, err := h.Adopt(tx, ids, n.Digest, h.wallet, act, "kofi")
			return err
		}
	case "pair":
		do = h.pairs(e, n)
	case "settle":
		do = h.settles(e, n)
	case "write off":
		if e.Kind == TheirsOnly {
			do = func(tx *db.Tx) error { return h.WriteOff(tx, ids, n.Digest, act) }
		}
	}
	if do == nil {
		return
	}
	err := h.db.Write(h.t.Context(), do)
	h.allows(fmt.Sprintf("%s of %s %s, line %s, payment %s, %s", what, e.Kind, e.ID, e.Line, e.Payment, e.Delta), err)
	if err != nil {
		return
	}
	if what == "write off" {
		h.freezes(e.Line)
	}
	if err := h.db.Write(h.t.Context(), do); err == nil {
		h.fails("%s of %s a second time", what, e.ID)
	}
}

func (h *history) freezes(line string) {
	l, err := h.Line(h.t.Context(), line)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range h.facts[l.Source] {
		if f.id == l.TheirID {
			f.frozen, f.status, f.amount, f.fee = true, map[Status]string{StatusSuccess: "Successful", StatusFailed: "Failed"}[l.Status], l.Amount, l.Fee
		}
	}
}

func (h *history) pairs(e Exception, n Selection) func(tx *db.Tx) error {
	list := h.pays[e.Source]
	r := list[h.random.IntN(len(list))]
	found, err := h.payments.ByIDs(h.t.Context(), []string{r.id})
	if err != nil {
		h.t.Fatal(err)
	}
	leg, err := h.CheckPair(h.t.Context(), e, found[r.id])
	if err != nil {
		return nil
	}
	return func(tx *db.Tx) error { return h.Pair(tx, []Pairing{{e.ID, r.id, leg}}, n.Digest, "kofi") }
}

// settles sets the outcome of an open payment from the statement, with the movement in the books.
func (h *history) settles(e Exception, n Selection) func(tx *db.Tx) error {
	if e.Kind != StateOff || e.Line == "" {
		return nil
	}
	for i, r := range h.pays[e.Source] {
		if r.id != e.Payment || r.status != "pending" {
			continue
		}
		found, err := h.payments.ByIDs(h.t.Context(), []string{r.id})
		if err != nil {
			h.t.Fatal(err)
		}
		l, err := h.Evidence(h.t.Context(), e, found[r.id])
		if err != nil || l.Status != StatusSuccess || (l.Amount > 0) != (r.kind == "collection") {
			return nil
		}
		return func(tx *db.Tx) error {
			if err := h.EndSettled(tx, e.ID, n.Digest, true, "act"); err != nil {
				return err
			}
			if n, err := tx.Exec(`UPDATE payments SET status = 'success', settled_at = $2 WHERE id = $1 AND status = 'pending'`, r.id, h.clock.Now()); err != nil || n != 1 {
				return errors.Join(err, problem.New(problem.Invalid, "changed", "changed"))
			}
			h.pays[e.Source][i].status = "success"
			page, err := h.ledger.Open(tx)
			if err != nil {
				return err
			}
			t := ledger.Transfer{Asset: ledger.TestGHS, From: ledger.Funding, To: ledger.FloatAt("mtn", "disbursement"), Amount: int64(r.amount), Subject: r.id, Leg: book.LegFinal, Kind: "payout", At: h.clock.Now()}
			if r.kind == "collection" {
				t.From, t.To, t.Kind = ledger.FloatAt("mtn", "collection"), ledger.Funding, r.kind
			}
			if err := page.Add(t); err != nil {
				return err
			}
			page.Post()
			return nil
		}
	}
	return nil
}

// ties fails the test unless the statements differ from the books by exactly the exceptions, and by the payments that no file has yet.
func (h *history) ties() {
	h.t.Helper()
	if err := h.Recheck(h.t.Context()); err != nil {
		h.fails("recheck: %v", err)
	}
	h.match() // lines that this changed for others
	h.match()
	exceptions := h.everyException()
	for _, source := range []string{mtn, monthPayouts} {
		s, err := ParseSource(source)
		if err != nil {
			h.t.Fatal(err)
		}
		off, explained := -h.ours(s.Ledger().ID, h.clock.Now().Add(time.Hour)), money.Pesewas(0)
		for _, change := range h.given[source] {
			off += change
		}
		denied := map[string]bool{} // by a failed line: an exception, or resolved as one
		var list []string
		for _, e := range exceptions {
			if e.Source != source {
				continue
			}
			if e.EndedAt.IsZero() || e.Ending == EndedWritten {
				explained += e.Delta
				list = append(list, fmt.Sprintf("%s, line %s, payment %s: %s", e.Kind, e.Line, e.Payment, e.Delta))
			}
			if e.Kind == StateOff && e.Line != "" && e.Ending != EndedAgreed {
				l, err := h.Line(h.t.Context(), e.Line)
				if err != nil {
					h.t.Fatal(err)
				}
				denied[e.Payment] = denied[e.Payment] || l.Status == StatusFailed && (l.Amount > 0) == (source == mtn)
			}
		}
		for _, r := range h.pays[source] {
			if r.status == "success" && !h.matched(r.id) && !denied[r.id] {
				off += r.signed()
			}
		}
		if off != explained {
			h.fails("%s differs from the books by %s, and the exceptions explain %s:\n%s\n", source, off, explained, strings.Join(list, "\n"))
		}
	}
}

func (h *history) matched(payment string) bool {
	n := 0
	if err := h.db.Read(h.t.Context(), func(tx *db.Tx) error {
		_, err := tx.One(`SELECT count(*) FROM statement_matches WHERE payment = $1 AND leg = 'movement'`, []any{payment}, &n)
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
	return n > 0
}

func (h *history) everyException() (list []Exception) {
	if err := h.db.Read(h.t.Context(), func(tx *db.Tx) (err error) {
		list, err = queryExceptions(tx, `SELECT `+exceptionColumns+` FROM statement_exceptions ORDER BY id`)
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
	return list
}

// Random lives: files with parts of the movements, corrections of lines that were used, lines that only a text names, two lines for one
// payment, matches that are undone while their exceptions are resolved, and resolutions of exceptions as they were earlier. After each step
// the statements differ from the books by exactly the open exceptions, so that no line was used twice and none was lost.
func TestHistory_exceptionsExplainTheDifference(t *testing.T) {
	const steps = 40
	for _, seed := range []uint64{16, 20, 36, 57, 63, 66, 73, 151} { // each found a fault
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newHistory(t, d, seed)
				h.imports()
				for range steps {
					switch h.random.IntN(6) {
					case 0:
						h.corrects()
						h.imports()
					case 1:
						h.imports()
					case 2:
						h.undoes()
					default:
						h.resolvesOne()
					}
					if h.random.IntN(3) > 0 {
						h.match()
					}
					h.ties()
				}
			})
		})
	}
}
