package reconcile

import (
	"context"
	"slices"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
)

const (
	chainsOfSource = `SELECT id, first_at, last_at, opening, closing, compared FROM statements WHERE source = $1 AND state = 'read' AND chains = 1 ORDER BY first_at, last_at, id`

	comparedStatements = `UPDATE statements SET compared = 1 WHERE id IN (SELECT value FROM texts($1))`

	// Statements without balances cannot show that a payment is missing.
	skipStatements = `UPDATE statements SET compared = 1 WHERE source = $1 AND compared = 0 AND state = 'read' AND chains = 0`
)

// covered joins the periods of statements, in order of their start. It joins periods that overlap and those whose
// balances follow from each other.
func covered(list []span) (joined []span) {
	for _, s := range list {
		if n := len(joined); n > 0 {
			if last := &joined[n-1]; !s.from.After(last.to) || s.opening == last.closing {
				if s.to.After(last.to) {
					last.to, last.closing = s.to, s.closing
				}
				continue
			}
		}
		joined = append(joined, s)
	}
	return joined
}

// missing searches for payments that are absent from the statements of a source, although the statements cover their
// time and the lag after it. Each statement is searched once: a later one covers payments that this one did not
// reach.
func (m *matcher) missing(ctx context.Context, source Source) error {
	if source.Bank() {
		return nil
	}
	var all, fresh []span
	var ids []string
	if err := m.db.Read(ctx, func(tx *db.Tx) error {
		all, fresh, ids = nil, nil, nil
		return tx.Query(chainsOfSource, []any{source.ID}, func(r *db.Row) error {
			var id string
			var s span
			compared := false
			err := r.Scan(&id, &s.from, &s.to, &s.opening, &s.closing, &compared)
			all = append(all, s)
			if !compared {
				ids = append(ids, id)
				fresh = append(fresh, span{from: s.from.Add(-source.Lag() - window), to: s.to})
			}
			return err
		})
	}); err != nil {
		return err
	}
	spans := covered(all)
	for _, w := range apart(fresh) {
		if err := m.missingIn(ctx, source, w, spans); err != nil {
			return err
		}
	}
	return m.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(comparedStatements, ids); err != nil {
			return err
		}
		_, err := tx.Exec(skipStatements, source.ID)
		return err
	})
}

// missingIn searches for such payments among those that were accepted in a period.
func (m *matcher) missingIn(ctx context.Context, source Source, w span, spans []span) error {
	return m.outlines(ctx, source, w.from, w.to, func(list []book.Outline) error {
		ids, err := m.unmatched(ctx, list)
		if err != nil || len(ids) == 0 {
			return err
		}
		payments, err := m.payments.ByIDs(ctx, ids)
		if err != nil {
			return err
		}
		var due []ours
		for _, id := range ids {
			if o, must := m.due(source, payments[id], spans); must {
				due = append(due, o)
			}
		}
		return m.raise(ctx, source, due)
	})
}

// unmatched returns the payments whose movement has no line, in order. Only these payments are read in full, because nearly all
// payments have a line.
func (m *matcher) unmatched(ctx context.Context, list []book.Outline) (ids []string, err error) {
	all, taken := make([]string, len(list)), map[string]bool{}
	for i, o := range list {
		all[i] = o.ID
	}
	err = m.db.Read(ctx, func(tx *db.Tx) error {
		matched, err := queryMatches(tx, matchesOfPayments, all)
		for _, one := range matched {
			if one.leg == LegMovement {
				taken[one.payment] = true
			}
		}
		return err
	})
	for _, id := range all {
		if !taken[id] {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// due reports whether a statement must contain a payment: it was sent to the provider, it did not fail here, and one
// span reaches from its acceptance to the lag after its last movement.
func (m *matcher) due(source Source, p book.Payment, spans []span) (ours, bool) {
	if !m.of(source, p) || p.AwaitsApproval() || p.Status == book.StatusWaiting {
		return ours{}, false
	}
	o := oursOf(p)
	if !o.Open && !o.Paid || o.Open && o.In {
		return o, false
	}
	return o, slices.ContainsFunc(spans, func(s span) bool {
		return !s.from.After(p.CreatedAt) && !s.to.Before(o.Until.Add(source.Lag()))
	})
}

// raise opens an exception for each payment without a line.
func (m *matcher) raise(ctx context.Context, source Source, list []ours) error {
	for part := range slices.Chunk(list, setLines) {
		ids := make([]string, len(part))
		for i, o := range part {
			ids[i] = o.ID
		}
		fees, err := m.payments.ProviderFees(ctx, ids)
		if err != nil {
			return err
		}
		if err := m.db.Write(db.Bulk(ctx, ""), func(tx *db.Tx) error {
			matched, err := queryMatches(tx, matchesOfPayments, ids)
			if err != nil {
				return err
			}
			known, err := queryExceptions(tx, everyOfPayments, ids)
			if err != nil {
				return err
			}
			var f found
			for _, o := range part {
				if slices.ContainsFunc(matched, func(one match) bool { return one.payment == o.ID && one.leg == LegMovement }) ||
					slices.ContainsFunc(known, func(e Exception) bool {
						return e.Payment == o.ID && (e.EndedAt.IsZero() || e.Kind == OursOnly && e.Ending != EndedAgreed)
					}) {
					continue
				}
				o.Fee = fees[o.ID]
				d := missing(o)
				f.list = append(f.list, Exception{Source: source.ID, Kind: d.Kind, Payment: o.ID, Amount: d.Amount, Delta: d.Delta, Reason: d.Reason, At: o.Until})
			}
			return m.sync(tx, f)
		}); err != nil {
			return err
		}
	}
	return nil
}
