package reconcile

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
)

const (
	// The movements of one settlement at providers of the same mode, without movements that are matched with another line of a
	// bank.
	sumOfSettlement = `SELECT count(*), CAST(COALESCE(sum(amount), 0) AS INTEGER), CAST(COALESCE(sum(amount - fee), 0) AS INTEGER) FROM statement_lines
WHERE settlement = $1 AND settlement <> '' AND status = 'success' AND substr(source, 1, $2) = $3 AND source <> $4
AND NOT EXISTS (SELECT 1 FROM statement_settled WHERE line = statement_lines.id)`

	// Settlements with movements at providers of the same mode that no line of a bank has.
	openSettlements = `SELECT DISTINCT settlement FROM statement_lines WHERE settlement IN (SELECT value FROM texts($1)) AND settlement <> '' AND status = 'success'
AND substr(source, 1, $2) = $3 AND source <> $4 AND NOT EXISTS (SELECT 1 FROM statement_settled WHERE line = statement_lines.id)`

	insertSettled = `INSERT INTO statement_settled (line, by_line) SELECT id, $5 FROM statement_lines
WHERE settlement = $1 AND settlement <> '' AND status = 'success' AND substr(source, 1, $2) = $3 AND source <> $4
AND NOT EXISTS (SELECT 1 FROM statement_settled WHERE line = statement_lines.id)`

	insertMatch = `INSERT INTO statement_matches (line, payment, leg, rule, maker, made_at) VALUES ($1, $2, $3, $4, $5, $6)`
)

// loadSettlements reads which settlements of the lines of a bank have movements. Others need no search of their own.
func (m *matcher) loadSettlements(ctx context.Context, w *set) error {
	var ids []string
	for _, l := range w.lines {
		if w.source.Bank() && l.Settlement != "" {
			ids = append(ids, l.Settlement)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	mode := string(w.source.Mode) + "/"
	return m.db.Read(ctx, func(tx *db.Tx) error {
		clear(w.settlements)
		return tx.Query(openSettlements, []any{ids, int64(len(mode)), mode, w.source.ID}, func(r *db.Row) error {
			var id string
			err := r.Scan(&id)
			w.settlements[id] = true
			return err
		})
	})
}

// settle matches a line of a bank with the movements of one settlement if they add up to the line, with or without
// their fees. It reports whether it did.
func (m *matcher) settle(ctx context.Context, w *set, l Line) (settled bool, err error) {
	if !w.settlements[l.Settlement] || w.undone[[2]string{l.ID, ""}] {
		return false, nil
	}
	mode := string(w.source.Mode) + "/"
	of := []any{l.Settlement, int64(len(mode)), mode, w.source.ID}
	err = m.db.Write(db.Bulk(ctx, ""), func(tx *db.Tx) error {
		settled = false
		var n int
		var gross, net int64
		if _, err := tx.One(sumOfSettlement, of, &n, &gross, &net); err != nil || n == 0 {
			return err
		}
		if l.Amount != money.Pesewas(gross) && l.Amount != money.Pesewas(net) {
			return nil
		}
		rows, err := tx.Exec(insertSettled, append(of, l.ID)...)
		if err != nil {
			return err
		}
		if rows != int64(n) {
			return fmt.Errorf("reconcile: the settlement %s changed", l.ID)
		}
		settled = true
		return m.use(tx, l, RuleSettlement, "", w.now)
	})
	if settled {
		w.settled(l)
	}
	return settled, err
}
