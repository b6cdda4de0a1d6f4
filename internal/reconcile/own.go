package reconcile

import (
	"context"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
)

const (
	// The movements of our own transfers between accounts of ours that a line of an account may be, and that no other line is.
	ownMovements = `SELECT id, side, reference FROM (
SELECT id, 'sent' AS side, reference, sent_at AS from_at, sent_at AS until_at FROM own_transfers WHERE $3 < 0 AND asset = $1 AND source = $2 AND amount = -$3
UNION ALL SELECT id, 'arrived', reference, sent_at, CASE WHEN state = 'sent' THEN $5 ELSE ended_at END FROM own_transfers
WHERE $3 > 0 AND asset = $1 AND target = $2 AND amount - fee = $3 AND state <> 'returned'
UNION ALL SELECT id, 'returned', reference, sent_at, ended_at FROM own_transfers WHERE $3 > 0 AND asset = $1 AND source = $2 AND amount - fee = $3 AND state = 'returned'
) AS m WHERE from_at <= $5 AND until_at >= $4 AND NOT EXISTS (SELECT 1 FROM statement_own o WHERE o.transfer = m.id AND o.side = m.side) ORDER BY id, side LIMIT 10`

	// Amounts, with the sign of a line, of the movements of our own transfers at an account that no line is.
	ownAmounts = `SELECT DISTINCT amount FROM (
SELECT id, 'sent' AS side, -amount AS amount, sent_at AS from_at, sent_at AS until_at FROM own_transfers WHERE asset = $1 AND source = $2
UNION ALL SELECT id, 'arrived', amount - fee, sent_at, CASE WHEN state = 'sent' THEN $4 ELSE ended_at END FROM own_transfers WHERE asset = $1 AND target = $2 AND state <> 'returned'
UNION ALL SELECT id, 'returned', amount - fee, sent_at, ended_at FROM own_transfers WHERE asset = $1 AND source = $2 AND state = 'returned'
) AS m WHERE from_at <= $4 AND until_at >= $3 AND NOT EXISTS (SELECT 1 FROM statement_own o WHERE o.transfer = m.id AND o.side = m.side) ORDER BY amount`

	// Unmatched lines of an account with the same amount within a time, which name no person.
	countAlike = `SELECT count(*) FROM statement_lines WHERE source = $1 AND day BETWEEN $2 AND $3 AND amount = $4 AND party = '' AND status = 'success'
AND NOT EXISTS (SELECT 1 FROM statement_matches WHERE line = statement_lines.id)`

	insertOwn = `INSERT INTO statement_own (line, transfer, side, made_at) VALUES ($1, $2, $3, $4)`

	deleteOwn = `DELETE FROM statement_own WHERE line = $1`

	selectOwn = `SELECT transfer FROM statement_own WHERE line = $1`
)

// ownMovement is one movement of a transfer between accounts of ours.
type ownMovement struct{ id, side, reference string }

// mayBeOwn reports whether rules may find that a line is a movement of our own money.
func (w *set) mayBeOwn(l Line) bool {
	return l.moves() && l.Amount != 0 && l.Party == "" && ourReference(l.Reference) == "" && !w.undone[[2]string{l.ID, ""}]
}

// loadOwn reads the amounts of our own transfers in the time of the lines. Nearly all lines have another amount, and
// need no search of their own.
func (m *matcher) loadOwn(ctx context.Context, w *set) error {
	var from, until time.Time
	for _, l := range w.lines {
		if !w.mayBeOwn(l) {
			continue
		}
		if from.IsZero() || l.At.Before(from) {
			from = l.At
		}
		if l.At.After(until) {
			until = l.At
		}
	}
	if from.IsZero() {
		return nil
	}
	apart, key := w.source.Lag()+window, w.source.Ledger()
	return m.db.Read(ctx, func(tx *db.Tx) error {
		clear(w.ownAmounts)
		return tx.Query(ownAmounts, []any{key.Asset, key.ID, from.Add(-apart), until.Add(apart)}, func(r *db.Row) error {
			var amount money.Pesewas
			err := r.Scan(&amount)
			w.ownAmounts[amount] = true
			return err
		})
	})
}

// own matches a line with a movement of our own money between a bank account and a float, and reports whether it did.
func (m *matcher) own(ctx context.Context, w *set, l Line) (matched bool, err error) {
	if !w.mayBeOwn(l) || !w.ownAmounts[l.Amount] {
		return false, nil
	}
	apart := w.source.Lag() + window
	key := w.source.Ledger()
	err = m.db.Write(db.Bulk(ctx, ""), func(tx *db.Tx) error {
		matched = false
		var list []ownMovement
		if err := tx.Query(ownMovements, []any{key.Asset, key.ID, int64(l.Amount), l.At.Add(-apart), l.At.Add(apart)}, func(r *db.Row) error {
			var o ownMovement
			err := r.Scan(&o.id, &o.side, &o.reference)
			list = append(list, o)
			return err
		}); err != nil || len(list) == 0 {
			return err
		}
		alike := 0
		if _, err := tx.One(countAlike, []any{w.source.ID, dayOf(l.At.Add(-apart)), dayOf(l.At.Add(apart)), int64(l.Amount)}, &alike); err != nil {
			return err
		}
		o, is := ownOf(l, list, alike, w.source.Bank())
		if !is {
			return nil
		}
		if _, err := tx.Exec(insertOwn, l.ID, o.id, o.side, w.now); err != nil {
			return err
		}
		matched = true
		return m.use(tx, l, RuleSettlement, "", w.now)
	})
	if matched {
		w.settled(l)
	}
	return matched, err
}

// minMention is how many characters a reference has at least to count in a narrative.
const minMention = 6

// ownOf returns the movement in list that the line records. Every movement in list has the line's account, direction
// and amount, and a time near the line's. ownOf chooses the only movement whose reference is in the narrative.
// Without a reference it chooses the only movement in list, if no other line has its amount. A credit at a bank needs
// both conditions, because anybody can pay into the account and write any narrative. We write the narrative of a
// debit ourselves.
func ownOf(l Line, list []ownMovement, alike int, bank bool) (o ownMovement, is bool) {
	var named []ownMovement
	for _, one := range list {
		reference := strings.ToLower(one.reference)
		if len(reference) >= minMention && (containsFold(l.Text, reference) || containsFold(l.Settlement, reference)) {
			named = append(named, one)
		}
	}
	credit := bank && l.Amount > 0
	switch {
	case len(named) == 1 && (!credit || len(list) == 1):
		return named[0], true
	case len(list) == 1 && alike == 1 && !credit:
		return list[0], true
	}
	return o, false
}

// OwnTransferOf returns the id of our own transfer that a line is a movement of; empty: none.
func (s *store) OwnTransferOf(ctx context.Context, line string) (transfer string, err error) {
	_, err = s.db.ReadOne(ctx, selectOwn, []any{line}, &transfer)
	return transfer, err
}
