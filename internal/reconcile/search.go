package reconcile

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
)

// similarity counts the matching members of a line and a payment without a reference.
type similarity struct {
	party  string
	amount money.Pesewas
}

// maxCandidates is the maximum number of payments that are stored for a line. A line with more than one payment has no match.
const maxCandidates = 3

// search searches the payments of lines among all payments of their days.
type search struct {
	*set
	byID      map[string][]string // lines by the provider's id
	bySimilar map[similarity][]string
	upstream  map[string][]string // payments by line
	similar   map[string][]string

	unmatched map[similarity][]time.Time
}

// bySearch decides about lines that name no payment: by the provider's id, the settlement, amount and party, or a text that mentions a
// payment.
func (m *matcher) bySearch(ctx context.Context, source Source, lines []Line) error {
	if len(lines) == 0 {
		return nil
	}
	w, err := m.load(ctx, source, lines)
	if err != nil {
		return err
	}
	s := &search{set: w, byID: map[string][]string{}, bySimilar: map[similarity][]string{}, upstream: map[string][]string{}, similar: map[string][]string{}, unmatched: map[similarity][]time.Time{}}
	s.index()
	for _, step := range []func(context.Context, *set) error{m.loadSettlements, m.loadOwn} {
		if err := step(ctx, w); err != nil {
			return err
		}
	}
	if !source.Bank() {
		if err := m.walk(ctx, s); err != nil {
			return err
		}
		if err := m.loadRivals(ctx, s); err != nil {
			return err
		}
	}
	var done []Line
	for _, l := range lines {
		decided, err := m.searched(ctx, s, l)
		if err != nil {
			return err
		}
		if decided {
			done = append(done, l)
		}
	}
	return m.write(ctx, w, done)
}

// index groups the lines by the members that they may share with payments.
func (s *search) index() {
	for _, l := range s.lines {
		if l.TheirID != "" {
			s.byID[l.TheirID] = append(s.byID[l.TheirID], l.ID)
		}
		if l.Reference != "" && l.Reference != l.TheirID && ourReference(l.Reference) == "" { // the provider's id of the payment
			s.byID[l.Reference] = append(s.byID[l.Reference], l.ID)
		}
		if l.Party != "" {
			key := similarity{l.Party, l.Amount}
			s.bySimilar[key] = append(s.bySimilar[key], l.ID)
		}
	}
}

// windows returns the times in which the payments of the lines may have been accepted. Lines of an old exception and
// of today do not make a walk through all payments between.
func (s *search) windows() []span {
	list := make([]span, len(s.lines))
	for i, l := range s.lines {
		list[i] = span{from: l.At.Add(-s.source.Lag() - window), to: l.At.Add(early)}
	}
	return apart(list)
}

// walk compares the payments of the lines' days with the lines.
func (m *matcher) walk(ctx context.Context, s *search) error {
	var found []string
	for _, w := range s.windows() {
		if err := m.outlines(ctx, s.source, w.from, w.to, func(list []book.Outline) error {
			for _, o := range list {
				if s.note(o) {
					found = append(found, o.ID)
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	for ids := range slices.Chunk(found, walked) {
		payments, err := m.payments.ByIDs(ctx, ids)
		if err != nil {
			return err
		}
		for _, p := range payments {
			s.add(p)
		}
	}
	if err := m.loadTaken(ctx, s.set); err != nil {
		return err
	}
	return m.loadFees(ctx, s.set)
}

// note stores the id of a payment that may belong to lines, and reports whether it did.
func (s *search) note(o book.Outline) (noted bool) {
	add := func(to map[string][]string, lines []string) {
		for _, line := range lines {
			if len(to[line]) < maxCandidates {
				to[line], noted = append(to[line], o.ID), true
			}
		}
	}
	if o.UpstreamID != "" {
		add(s.upstream, s.byID[o.UpstreamID])
	}
	amount := o.Gross
	if o.Kind != book.KindCollection {
		amount = -amount
	}
	add(s.similar, s.bySimilar[similarity{o.Account, amount}])
	return noted
}

// candidates returns the possible payments of a line, without those of matches that a person has undone.
func (s *search) candidates(l Line, ids []string) (list []ours) {
	for _, id := range ids {
		if !s.undone[[2]string{l.ID, id}] {
			list = append(list, s.with(s.payments[id], l))
		}
	}
	return list
}

// inDirection returns the payment with the line's direction if several payments have the same id, because a provider may count
// collections and payouts separately.
func inDirection(l Line, list []ours) []ours {
	if len(list) < 2 {
		return list
	}
	return slices.DeleteFunc(list, func(o ours) bool { return o.leg(l) != LegMovement })
}

// searched decides about one line. A line of a bank is in transit during its lag and stays undecided.
func (m *matcher) searched(ctx context.Context, s *search, l Line) (decided bool, err error) {
	lag := s.source.Lag()
	if list := inDirection(l, s.candidates(l, s.upstream[l.ID])); len(list) == 1 && !isFee(l.Type) {
		s.put(l, byReference(l, list[0], RuleProviderID, lag, s.now))
		return true, nil
	}
	if settled, err := m.settle(ctx, s.set, l); err != nil || settled {
		return settled, err
	}
	if own, err := m.own(ctx, s.set, l); err != nil || own {
		return own, err
	}
	if o, ok := bySimilar(l, s.candidates(l, s.similar[l.ID]), s.rivals(l), lag); ok {
		s.put(l, byReference(l, o, RuleSimilar, lag, s.now))
		return true, nil
	}
	o, ok, suggestion := byNarrative(l, s.mentions(l), lag)
	if ok {
		s.put(l, byReference(l, o, RuleNarrative, lag, s.now))
		return true, nil
	}
	if s.source.Bank() && s.now.Sub(l.At) <= lag {
		return false, nil
	}
	s.put(l, verdict{differences: unknown(l, suggestion)})
	return true, nil
}

// mentions returns the payments that a text or the column for our reference mentions.
func (s *search) mentions(l Line) (list []ours) {
	for _, reference := range append(mentioned(l.Text), ourReference(l.Reference)) {
		if o := s.named[reference]; o != nil && reference != "" && !s.undone[[2]string{l.ID, o.ID}] && o.AtRail == s.source.Provider {
			list = append(list, s.with(o, l))
		}
	}
	return list
}

// pairs are the members that lines without a name and their rivals share.
var pairs = []db.Column[similarity]{
	{Name: "party", Text: func(s similarity) string { return s.party }},
	{Name: "amount", Int: func(s similarity) int64 { return int64(s.amount) }},
}

// loadRivals reads the times of the unmatched lines that have the party and the amount of a line with a possible
// payment.
func (m *matcher) loadRivals(ctx context.Context, s *search) error {
	keys := map[similarity]bool{}
	var from, until time.Time
	for _, l := range s.lines {
		if len(s.similar[l.ID]) == 0 {
			continue
		}
		keys[similarity{l.Party, l.Amount}] = true
		if from.IsZero() || l.At.Before(from) {
			from = l.At
		}
		if l.At.After(until) {
			until = l.At
		}
	}
	apart := s.source.Lag() + early
	for part := range slices.Chunk(slices.Collect(maps.Keys(keys)), setLines) {
		if err := m.db.Read(ctx, func(tx *db.Tx) error {
			for _, key := range part {
				delete(s.unmatched, key)
			}
			return tx.Query(rivals, []any{db.RowsOf(pairs, part), s.source.ID, from.Add(-apart), until.Add(apart)}, func(r *db.Row) error {
				var key similarity
				var at time.Time
				err := r.Scan(&key.party, &key.amount, &at)
				s.unmatched[key] = append(s.unmatched[key], at)
				return err
			})
		}); err != nil {
			return err
		}
	}
	return nil
}

// rivals counts the unmatched lines that could be the same payment, the line itself included.
func (s *search) rivals(l Line) (n int) {
	apart := s.source.Lag() + early
	for _, at := range s.unmatched[similarity{l.Party, l.Amount}] {
		if !at.Before(l.At.Add(-apart)) && !at.After(l.At.Add(apart)) {
			n++
		}
	}
	return n
}
