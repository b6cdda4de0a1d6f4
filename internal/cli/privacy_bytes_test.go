package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/makola/makola/internal/db"
)

// holding lists the files of a folder that contain the last nine digits of a number, in which every spelling ends.
func holding(t *testing.T, folder, digits string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.IsDir() { // the simulator stands for the providers, who know their customers
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte(digits)); n > 0 {
			names = append(names, fmt.Sprintf("%s (%d)", f.Name(), n))
		}
	}
	return names
}

// After an erasure, no byte of the database's files has the number, while other processes read and write. Rows that were deleted or
// changed long ago have left copies in free pages and in the log.
func TestErase_leavesNoBytesOnSQLite(t *testing.T) {
	t.Parallel()
	w := aSample(t)
	number, _ := someoneWhoWasPaid(t, w)
	digits := strings.TrimPrefix(number, "233")
	const many = 2_000
	change := func(sql string, args ...any) {
		t.Helper()
		if err := w.db.Write(t.Context(), func(tx *db.Tx) error {
			for n := range many {
				if _, err := tx.Exec(sql, append([]any{fmt.Sprintf("%036d", n)}, args...)...); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	change(`INSERT INTO otp_counters (tenant, msisdn, name, window_start, used) VALUES ($1, $2, 'sent', 5, 1)`, number)
	change(`DELETE FROM otp_counters WHERE tenant = $1 AND msisdn = $2 AND $1 <> '000000000000000000000000000000000007'`, number)

	var crowd sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for n := range 2 {
		crowd.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				if n == 0 {
					_ = w.db.ReadWhole(ctx, func(tx *db.Tx) error { _, err := tx.Count([]string{"payments"}); return err })
					continue
				}
				_ = w.db.Write(ctx, func(tx *db.Tx) error {
					_, err := tx.Exec(`UPDATE installation SET production = production`)
					return err
				})
			}
		})
	}
	done := w.object("privacy", "erase", number, "--reason", "the person asked")
	stop()
	crowd.Wait()
	has(t, done, map[string]any{"left": 0, "counters": 1})
	if found := holding(t, filepath.Dir(w.folder()), digits); len(found) > 0 {
		t.Errorf("the number is still in %v; the command said %v", found, done)
	}
	w.run(exitOK, "ledger", "check")
}

func (w where) folder() string { return filepath.Join(w.flags[1], "makola.db") }
