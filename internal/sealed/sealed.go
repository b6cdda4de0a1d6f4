// Package sealed counts the texts of a table that are sealed under each master key, and reseals them under the active
// key. An operator needs both to rotate a key. The packages that own such tables define how a row is read and written.
package sealed

import (
	"context"
	"errors"
	"fmt"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
)

// AtOnce is the maximum number of rows that one transaction reseals.
const AtOnce = 100

// errNoMaster is returned if the process has no master key.
var errNoMaster = errors.New("sealed: there is no master key")

// Row is one row of a table.
type Row struct {
	Key   string   // context to which the texts are bound
	Texts [][]byte // sealed texts; nil if the row has none
	// Lapsed is set if the last text is no longer needed. It is deleted instead of resealed.
	Lapsed bool
}

// Table is a table with sealed texts.
type Table struct {
	DB     *db.DB
	Sealer *config.Sealer // nil without a master key
	After  string         // SQL that reads at most $2 rows after key $1 in the order of their keys
	Scan   func(*db.Row) (Row, error)
	// Write replaces the row was by now. It returns 0 if the row has changed.
	Write func(tx *db.Tx, was, now Row) (int64, error)
}

// Under returns the number of texts that are sealed under each master key, by the key's name.
func (t Table) Under(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	err := t.walk(ctx, func(rows []Row) error {
		for _, row := range rows {
			for _, text := range row.Texts {
				if text != nil {
					counts[t.Sealer.Under(text)]++
				}
			}
		}
		return nil
	})
	return counts, err
}

// Reseal reseals all texts under the active master key, in small transactions. After each it calls moved with the
// number of resealed texts. A row that changed meanwhile is skipped, because the server that changed it used its own
// active key. After an interruption a new run starts from the beginning and skips finished rows.
func (t Table) Reseal(ctx context.Context, moved func(int64)) error {
	return t.walk(ctx, func(rows []Row) error {
		n := int64(0)
		if err := t.DB.Write(db.Bulk(ctx, ""), func(tx *db.Tx) error {
			n = 0
			for _, row := range rows {
				k, err := t.resealOne(tx, row)
				if err != nil {
					return fmt.Errorf("sealed: reseal the row of %s: %w", row.Key, err)
				}
				n += k
			}
			return nil
		}); err != nil {
			return err
		}
		moved(n)
		return nil
	})
}

func (t Table) resealOne(tx *db.Tx, was Row) (moved int64, err error) {
	now := Row{Key: was.Key, Texts: make([][]byte, len(was.Texts))}
	for i, text := range was.Texts {
		changed := was.Lapsed && i == len(was.Texts)-1
		if text == nil {
			continue
		}
		if !changed {
			if now.Texts[i], changed, err = t.Sealer.Reseal(text, []byte(was.Key)); err != nil {
				return 0, err
			}
		}
		if changed {
			moved++
		}
	}
	if moved == 0 {
		return 0, nil
	}
	n, err := t.Write(tx, was, now)
	return n * moved, err
}

// walk reads the table, a limited number of rows at a time.
func (t Table) walk(ctx context.Context, each func([]Row) error) error {
	if t.Sealer == nil {
		return errNoMaster
	}
	return db.Walk(ctx, t.DB, t.After, AtOnce, func(after string) []any { return []any{after} }, func(r *db.Row, key *string) (Row, bool, error) {
		row, err := t.Scan(r)
		*key = row.Key
		return row, true, err
	}, each)
}
