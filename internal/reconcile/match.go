package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
)

// matcher decides about stored lines. It moves no money.
type matcher struct {
	*store
	payments *book.Reader
	account  func(book.Payment) string                                                 // account at the provider that a payment debits or credits
	closed   func(ctx context.Context, asset ledger.Asset, at time.Time) (bool, error) // nil: every day is open
	log      *slog.Logger
}

const (
	// maxRest is the number of lines without a named payment that are compared at once with all payments of their days.
	maxRest = 20_000
	// window is how long before its movement a payment may have been accepted, in addition to the lag.
	window = 48 * time.Hour
)

const (
	openLines = `SELECT ` + lineColumns + ` FROM statement_lines WHERE source = $1 AND judged = 0 AND id > $2 ORDER BY id LIMIT $3`

	judgeLines = `UPDATE statement_lines SET judged = 1 FROM rows($1) AS r WHERE statement_lines.id = r.id AND statement_lines.version = r.version`

	judgeAgain = `UPDATE statement_lines SET judged = 0 WHERE id IN (SELECT value FROM texts($1))`

	// Other lines that may be decided otherwise, because a movement of their payment was matched, or is free again.
	judgeOthers = `UPDATE statement_lines SET judged = 0 WHERE id IN (SELECT line FROM statement_exceptions WHERE payment IN (SELECT value FROM texts($1)) AND payment <> '' AND line <> ''
AND kind IN ('state', 'twice') AND (ended_at = 0 OR ending IN ('suspense', 'released')))`

	// Lines of the other movements of payments.
	judgeLegs = `UPDATE statement_lines SET judged = 0 WHERE id IN (SELECT line FROM statement_matches WHERE payment IN (SELECT value FROM texts($1)) AND payment <> '')`

	matchesOfLines = `SELECT line, payment, leg, rule, matched FROM statement_matches WHERE line IN (SELECT value FROM texts($1))`

	matchesOfPayments = `SELECT line, payment, leg, rule, matched FROM statement_matches WHERE payment IN (SELECT value FROM texts($1)) AND payment <> ''`

	undoneOfLines = `SELECT line, payment, '', '', NULL FROM statement_undone WHERE line IN (SELECT value FROM texts($1))`

	// Payments with an exception of a failed line of their movement that a person has not ended as settled.
	deniedPayments = `SELECT e.payment, min(e.line) FROM statement_exceptions e JOIN statement_lines l ON l.id = e.line AND l.status = 'failed'
JOIN payments p ON p.id = e.payment AND (l.amount > 0) = (p.kind = 'collection') WHERE e.payment IN (SELECT value FROM texts($1)) AND e.payment <> '' AND e.line <> '' AND e.kind = 'state' AND e.ending NOT IN ('agreed', 'settled') GROUP BY e.payment`

	deleteMatch = `DELETE FROM statement_matches WHERE line = $1`

	deleteSettled = `DELETE FROM statement_settled WHERE by_line = $1`

	// Unmatched lines of a source and a period that have the same party, amount and direction as others.
	rivals = `SELECT l.party, l.amount, l.at FROM rows($1) AS r JOIN statement_lines l ON l.party IN (r.party) AND l.amount = r.amount AND l.party <> '' WHERE unindexed(l.source) = $2 AND l.status = 'success'
AND l.at BETWEEN $3 AND $4 AND NOT EXISTS (SELECT 1 FROM statement_matches WHERE line = l.id)`

	// The money that is booked for good for lines without a payment.
	bookedLines = `SELECT line, CAST(sum(delta) AS INTEGER) FROM statement_exceptions WHERE line IN (SELECT value FROM texts($1)) AND line <> '' AND kind = 'theirs_only' AND ending IN ('adopted', 'released') GROUP BY line`

	// Each difference of a fee is a transfer of its exception.
	bookedFees = `SELECT e.line, CAST(sum(CASE WHEN t.leg = '` + legFee + `' THEN t.amount ELSE -t.amount END) AS INTEGER) FROM statement_exceptions e JOIN transfers t ON t.subject = e.id
WHERE e.line IN (SELECT value FROM texts($1)) AND e.line <> '' AND e.ending = 'booked' AND t.leg IN ('` + legFee + `', '` + legFeeBack + `') GROUP BY e.line`
)

// match is one row of matches.
type match struct {
	line, payment string
	leg           Leg
	rule          Rule
	at            time.Time
	matched       *int64 // amount of the line when it was matched without a payment; nil: not known
}

var insertMatches = []db.Column[match]{
	{Name: "line", Text: func(m match) string { return m.line }},
	{Name: "payment", Text: func(m match) string { return m.payment }},
	{Name: "leg", Text: func(m match) string { return string(m.leg) }},
	{Name: "rule", Text: func(m match) string { return string(m.rule) }},
	{Name: "maker", Text: func(match) string { return "" }},
	{Name: "made_at", Time: func(m match) time.Time { return m.at }},
}

var lineVersions = []db.Column[Line]{
	{Name: "id", Text: func(l Line) string { return l.ID }},
	{Name: "version", Int: func(l Line) int64 { return int64(l.Version) }},
}

func queryMatches(tx *db.Tx, sql string, ids []string) (list []match, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return db.All(tx, sql, []any{ids}, func(m *match, r *db.Row) error { return r.Scan(&m.line, &m.payment, &m.leg, &m.rule, &m.matched) })
}

// set is some lines of a source, with the payments found for them.
type set struct {
	source   Source
	lines    []Line
	payments map[string]*ours         // by id
	named    map[string]*ours         // by the reference of an attempt
	attempts map[string][]*ours       // that were given up, by payment
	given    map[string][]Line        // that moved money, in the order of their ids, by the reference of an attempt that was given up
	matched  map[string]match         // by line
	undone   map[[2]string]bool       // line and payment
	fees     map[string]money.Pesewas // booked for lines
	used     map[string]money.Pesewas // booked for lines without a payment
	denied   map[string]string        // by payment: the failed line that has the exception
	changes  map[string]money.Pesewas // by line: those of the set, and those that a line of the set takes back
	now      time.Time
	verdicts map[string]verdict

	settlements map[string]bool        // that lines of a bank may be
	ownAmounts  map[money.Pesewas]bool // of our own transfers

	again []string // lines to decide about again: the other leg of their payment was matched
}

// byName decides about lines that name their payment, and returns the others.
func (m *matcher) byName(ctx context.Context, source Source, lines []Line) (rest []Line, err error) {
	w, err := m.load(ctx, source, lines)
	if err != nil {
		return nil, err
	}
	var done []Line
	for _, l := range lines {
		if w.decide(l) {
			done = append(done, l)
		} else {
			rest = append(rest, l)
		}
	}
	return rest, m.write(ctx, w, done)
}

// load reads the payments that lines name or are matched with.
func (m *matcher) load(ctx context.Context, source Source, lines []Line) (*set, error) {
	for i := range lines {
		lines[i].within, lines[i].net = source.withinFees(), source.net()
	}
	w := &set{source: source, lines: lines, payments: map[string]*ours{}, named: map[string]*ours{}, given: map[string][]Line{}, attempts: map[string][]*ours{}, matched: map[string]match{}, undone: map[[2]string]bool{}, fees: map[string]money.Pesewas{}, used: map[string]money.Pesewas{}, denied: map[string]string{}, changes: map[string]money.Pesewas{},
		now: m.clock.Now(), verdicts: map[string]verdict{}, settlements: map[string]bool{}, ownAmounts: map[money.Pesewas]bool{}}
	ids, references := make([]string, len(lines)), []string{}
	for i, l := range lines {
		ids[i], w.changes[l.ID] = l.ID, l.change()
		if ours := ourReference(l.Reference); ours != "" {
			references = append(references, ours)
		}
		references = append(references, mentioned(l.Text)...)
	}
	attempts, err := m.payments.ByReferences(ctx, references)
	if err != nil {
		return nil, err
	}
	for reference, a := range attempts {
		if a.Mode != string(source.Mode) {
			continue
		}
		o := w.add(a.Payment)
		if !a.Current {
			given := *o
			given.AtRail, given.Current = a.AtRail, false
			o, w.given[reference] = &given, nil
			w.attempts[given.ID] = append(w.attempts[given.ID], o)
		}
		w.named[reference] = o
	}
	if err := m.loadMatches(ctx, w, ids); err != nil {
		return nil, err
	}
	if err := m.loadGiven(ctx, w); err != nil {
		return nil, err
	}
	if err := m.loadDenied(ctx, w); err != nil {
		return nil, err
	}
	return w, m.loadFees(ctx, w)
}

// loadDenied reads which failed lines of paid payments have the exception: one of each payment.
func (m *matcher) loadDenied(ctx context.Context, w *set) error {
	var ids []string
	for _, l := range w.lines {
		if o := w.named[ourReference(l.Reference)]; o != nil && o.Paid && l.Status == StatusFailed {
			ids = append(ids, o.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return m.db.Read(ctx, func(tx *db.Tx) error {
		clear(w.denied)
		return tx.Query(deniedPayments, []any{ids}, func(r *db.Row) error {
			var payment, line string
			err := r.Scan(&payment, &line)
			w.denied[payment] = line
			return err
		})
	})
}

// loadGiven reads the lines of attempts that were given up.
func (m *matcher) loadGiven(ctx context.Context, w *set) error {
	if len(w.given) == 0 {
		return nil
	}
	return m.db.Read(ctx, func(tx *db.Tx) error {
		lines, err := queryLines(tx, linesByReference, slices.Sorted(maps.Keys(w.given)))
		slices.SortFunc(lines, func(a, b Line) int { return strings.Compare(a.ID, b.ID) })
		for reference := range w.given {
			w.given[reference] = nil
		}
		for _, l := range lines {
			if l.within, l.net = w.source.withinFees(), w.source.net(); l.Source == w.source.ID && l.moves() && !isFee(l.Type) {
				w.given[l.Reference] = append(w.given[l.Reference], l)
			}
		}
		return err
	})
}

func (w *set) add(p book.Payment) *ours {
	if o := w.payments[p.ID]; o != nil {
		return o
	}
	o := oursOf(p)
	w.payments[p.ID] = &o
	return &o
}

// loadMatches reads the matches of lines and payments, and the payments of matches that no line names.
func (m *matcher) loadMatches(ctx context.Context, w *set, lines []string) error {
	var own, undone []match
	if err := m.db.Read(ctx, func(tx *db.Tx) (err error) {
		if own, err = queryMatches(tx, matchesOfLines, lines); err != nil {
			return err
		}
		undone, err = queryMatches(tx, undoneOfLines, lines)
		return err
	}); err != nil {
		return err
	}
	var unnamed []string
	for _, one := range own {
		w.matched[one.line] = one
		if one.payment != "" && w.payments[one.payment] == nil {
			unnamed = append(unnamed, one.payment)
		}
	}
	for _, one := range undone {
		w.undone[[2]string{one.line, one.payment}] = true
	}
	more, err := m.payments.ByIDs(ctx, unnamed)
	for _, p := range more {
		w.add(p)
	}
	if err != nil {
		return err
	}
	return m.loadTaken(ctx, w)
}

// loadTaken reads which lines the payments are matched with.
func (m *matcher) loadTaken(ctx context.Context, w *set) error {
	var list []match
	if err := m.db.Read(ctx, func(tx *db.Tx) (err error) {
		list, err = queryMatches(tx, matchesOfPayments, idsOf(w.payments))
		return err
	}); err != nil {
		return err
	}
	gone := map[string]bool{} // lines of the set that moved money and do not any more
	for _, l := range w.lines {
		gone[l.ID] = !l.moves()
	}
	for _, one := range list {
		if !gone[one.line] {
			w.take(one)
		}
	}
	return m.loadMoved(ctx, w)
}

// loadMoved reads the lines of movements that lines of the set reverse.
func (m *matcher) loadMoved(ctx context.Context, w *set) error {
	var ids []string
	for _, l := range w.lines {
		o := w.named[ourReference(l.Reference)]
		if old, is := w.matched[l.ID]; is && old.payment != "" {
			o = w.payments[old.payment]
		}
		if o == nil || o.Movement == "" || o.leg(l) != LegReversal {
			continue
		}
		if _, known := w.changes[o.Movement]; !known {
			ids = append(ids, o.Movement)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return m.db.Read(ctx, func(tx *db.Tx) error {
		lines, err := queryLines(tx, linesByID, ids)
		for _, l := range lines {
			l.within, l.net = w.source.withinFees(), w.source.net()
			w.changes[l.ID] = l.change()
		}
		return err
	})
}

func idsOf(payments map[string]*ours) []string {
	ids := make([]string, 0, len(payments))
	for id := range payments {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// take records a match in its payment and in the attempts of that payment.
func (w *set) take(one match) {
	note := func(o *ours) {
		if one.leg == LegReversal {
			o.Reversing, o.Reversal = one.line, true
		} else {
			o.Movement = one.line
		}
	}
	note(w.payments[one.payment])
	for _, o := range w.attempts[one.payment] {
		note(o)
	}
}

// loadFees reads the fees that are booked for payments and lines.
func (m *matcher) loadFees(ctx context.Context, w *set) error {
	lines := make([]string, len(w.lines))
	for i, l := range w.lines {
		lines[i] = l.ID
	}
	fees, err := m.payments.ProviderFees(ctx, idsOf(w.payments))
	if err != nil {
		return err
	}
	for id, fee := range fees {
		w.payments[id].Fee = fee
	}
	return m.db.Read(ctx, func(tx *db.Tx) error {
		clear(w.fees)
		clear(w.used)
		for sql, into := range map[string]map[string]money.Pesewas{bookedFees: w.fees, bookedLines: w.used} {
			if err := tx.Query(sql, []any{lines}, func(r *db.Row) error {
				var line string
				var sum money.Pesewas
				err := r.Scan(&line, &sum)
				into[line] = sum
				return err
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// decide decides about a line that is matched or names a payment. Failed and open lines need no payment.
func (w *set) decide(l Line) bool {
	lag := w.source.Lag()
	old, is := w.matched[l.ID]
	if is && old.leg == LegSettlement {
		w.put(l, w.booked(l, old))
		return true
	}
	reference := ourReference(l.Reference)
	if o := w.named[reference]; o != nil && reference != "" && !o.Current && !isFee(l.Type) && o.AtRail == w.source.Provider && old.rule != RulePerson {
		w.put(l, w.abandoned(o, reference))
		return true
	}
	if is && old.payment != "" {
		if o := w.payments[old.payment]; o != nil {
			w.put(l, byReference(l, w.with(o, l), old.rule, lag, w.now))
			return true
		}
	}
	if o := w.named[reference]; o != nil && reference != "" && !isFee(l.Type) && o.AtRail == w.source.Provider && !w.undone[[2]string{l.ID, o.ID}] {
		rule := RuleReference
		if o.Upstream != "" && o.Upstream == l.TheirID {
			rule = RuleProviderID
		}
		w.put(l, byReference(l, w.with(o, l), rule, lag, w.now))
		return true
	}
	if !l.moves() {
		w.put(l, verdict{})
		return true
	}
	return false
}

// abandoned decides about all lines of an attempt that was given up together: what the provider took back, it did not
// pay. The first line that moved money has the difference.
func (w *set) abandoned(o *ours, reference string) verdict {
	v := verdict{payment: o.ID, givenUp: true}
	var amount, change money.Pesewas
	for _, l := range w.given[reference] {
		v.also = append(v.also, l.ID)
		amount, change = amount+l.Amount, change+l.change()
	}
	if amount != 0 {
		v.line, v.differences = v.also[0], []Difference{abandoned(amount, change)}
	}
	return v
}

// settled records that a line is matched as a settlement, without a payment.
func (w *set) settled(l Line) {
	w.matched[l.ID] = match{line: l.ID, leg: LegSettlement, rule: RuleSettlement}
	w.verdicts[l.ID] = verdict{rule: RuleSettlement, leg: LegSettlement}
}

// booked decides about a settlement line, or a line whose money a person has booked. If the provider reverses such a
// line, it becomes an exception.
func (w *set) booked(l Line, old match) (v verdict) {
	has, used := l.Amount, l.Amount
	if old.matched != nil {
		used = money.Pesewas(*old.matched)
	}
	if sum, is := w.used[l.ID]; is && old.rule == RulePerson {
		has, used = l.change(), sum
	}
	switch {
	case !l.moves():
		v.differences = []Difference{{StateOff, magnitude(used), -used, "The provider changed the line to unpaid, but its money is booked."}}
	case has != used:
		v.differences = []Difference{{AmountOff, magnitude(has - used), has - used,
			fmt.Sprintf("The provider changed the line to %s, but %s is booked for it.", cedis(has), cedis(used))}}
	}
	return v
}

// with returns a payment with the fees that are booked for it and for a line.
func (w *set) with(o *ours, l Line) ours {
	given := *o
	given.Denied = w.denied[o.ID]
	given.Fee += w.fees[l.ID]
	if moved, known := w.changes[o.Movement]; known {
		given.Moved = &moved
	}
	return given
}

// put stores the verdict about a line, and records the line as a line of its payment.
func (w *set) put(l Line, v verdict) {
	w.verdicts[l.ID] = v
	if l.Status == StatusFailed && len(v.differences) > 0 && w.denied[v.payment] == "" {
		w.denied[v.payment] = l.ID
	}
	if v.rule == "" || v.payment == "" {
		return
	}
	_, was := w.matched[l.ID]
	switch o := w.payments[v.payment]; {
	case v.leg == LegReversal && !was && o.Movement != "":
		w.again = append(w.again, o.Movement)
	case v.leg == LegMovement && (!was || l.Version > 1) && o.Reversing != "": // what it takes back may have changed
		w.again = append(w.again, o.Reversing)
	}
	w.take(match{line: l.ID, payment: v.payment, leg: v.leg})
}

// write stores the verdicts about lines.
func (m *matcher) write(ctx context.Context, w *set, lines []Line) error {
	for part := range slices.Chunk(lines, pacedLines) {
		if err := m.db.Write(db.Bulk(ctx, ""), func(tx *db.Tx) error { return m.writeIn(tx, w, part) }); err != nil {
			return err
		}
	}
	return nil
}

// judgeAround makes matching decide again about the lines of payments of which a person has changed a match.
func judgeAround(tx *db.Tx, payments []string) error {
	for _, sql := range []string{judgeOthers, judgeLegs} {
		if _, err := tx.Exec(sql, payments); err != nil {
			return err
		}
	}
	return nil
}

func (m *matcher) writeIn(tx *db.Tx, w *set, lines []Line) error {
	var made []match
	var changed, freed []string // payments
	f := found{source: w.source.ID}
	for _, l := range lines {
		v := w.verdicts[l.ID]
		f.lines = append(append(f.lines, l.ID), v.also...)
		_, was := w.matched[l.ID]
		switch {
		case v.rule != "" && !was:
			made = append(made, match{line: l.ID, payment: v.payment, leg: v.leg, rule: v.rule, at: w.now})
			changed = append(changed, v.payment)
		case v.rule == "" && was && w.matched[l.ID].leg != LegSettlement:
			freed = append(freed, w.matched[l.ID].payment)
			if _, err := tx.Exec(deleteMatch, l.ID); err != nil {
				return err
			}
		}
		switch {
		case v.givenUp:
			f.givenUp = append(f.givenUp, v.payment)
		case v.payment != "":
			f.payments = append(f.payments, v.payment)
		}
		if v.line != "" && slices.ContainsFunc(f.list, func(e Exception) bool { return e.Line == v.line }) {
			continue // another line of the attempt gave the exception
		}
		for _, d := range v.differences {
			f.list = append(f.list, Exception{Source: w.source.ID, Kind: d.Kind, Line: cmp.Or(v.line, l.ID), Payment: v.payment, Amount: d.Amount, Delta: d.Delta, Reason: d.Reason, At: l.At})
		}
	}
	if err := m.sync(tx, f); err != nil {
		return err
	}
	db.Insert(tx, "statement_matches", insertMatches, made)
	if err := tx.Flush(); err != nil {
		return err
	}
	if _, err := tx.Exec(judgeLines, db.RowsOf(lineVersions, lines)); err != nil {
		return err
	}
	if len(w.again) > 0 {
		if _, err := tx.Exec(judgeAgain, w.again); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(judgeOthers, append(changed, freed...)); err != nil || len(freed) == 0 {
		return err
	}
	_, err := tx.Exec(judgeLegs, freed)
	return err
}
