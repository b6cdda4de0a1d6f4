package checkup

import (
	"context"

	"github.com/makola/makola/internal/db"
)

const (
	dropChecks   = `DELETE FROM provider_checks WHERE provider = $1 AND ($2 = '' OR mode = $2)`
	insertCheck  = `INSERT INTO provider_checks (mode, provider, number, subject, state, fact, fix, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	latestChecks = `SELECT mode, provider, subject, state, fact, fix, at FROM provider_checks WHERE provider = $1 ORDER BY mode, number`
)

// store replaces the results of the previous test.
func (c *Checkup) store(ctx context.Context, name, mode string, all []Result) error {
	return c.DB.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(dropChecks, name, mode); err != nil {
			return err
		}
		for n, r := range all {
			if _, err := tx.Exec(insertCheck, r.Mode, r.Provider, n, r.Subject, string(r.State), r.Fact, r.Fix, db.Micros(r.At)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Latest returns the results of the last test of a provider. It is empty if there was none.
func (c *Checkup) Latest(ctx context.Context, name string) ([]Result, error) {
	return db.ReadAll(ctx, c.DB, latestChecks, []any{name}, func(r *Result, row *db.Row) error {
		var state string
		err := row.Scan(&r.Mode, &r.Provider, &r.Subject, &state, &r.Fact, &r.Fix, &r.At)
		r.State = State(state)
		return err
	})
}
