// Package sealed rotates master keys: it counts the texts of a table that are sealed under each key, and seals them
// anew under the active key. The packages that own such tables define how a row is read and written.
package sealed

import (
	"context"
	"errors"
	"fmt"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
)

// AtOnce is the most rows that one transaction seals anew.
const AtOnce = 100

// errNoMaster is returned where the process has no master key.
var errNoMaster = errors.New("sealed: there is no master key")

// Row is one row of a table.
type Row struct {
	Key   string   // to which its texts are bound
	Texts [][]byte // sealed; nil where the row has none
	// Lapsed reports whether the last text is of no use any more. It is removed instead of sealed anew.
	Lapsed bool
}

// Table is a table with sealed texts.
type Table struct {
	DB     *db.DB
	Sealer *config.Sealer // nil: there is no master key
	After  string         // a statement that reads the rows after key $1 in the order of their keys, at most $2
	Scan   func(*db.Row) (Row, error)
	// Write stores now in place of was, and returns 0 if the row is not as it was.
	Write func(tx *db.Tx, was, now Row) (int64, error)
}

// Under returns the number of texts sealed under each master key, by its name.
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

// Reseal seals every text under the active master key, in small transactions, and reports after each the number of texts
// moved. A row that changes in between stays as it is: its server seals under its own active key. A new run after an
// interruption starts over and skips finished rows.
func (t Table) Reseal(ctx context.Context, moved func(int64)) error {
	return t.walk(ctx, func(rows []Row) error {
		n := int64(0)
		if err := t.DB.Write(db.Bulk(ctx, ""), func(tx *db.Tx) error {
			n = 0
			for _, row := range rows {
				k, err := t.resealOne(tx, row)
				if err != nil {
					return fmt.Errorf("sealed: the row of %s: %w", row.Key, err)
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

// walk reads the table, a bounded number of rows at a time.
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
