package db

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/makola/makola/internal/db/engine"
)

// If a transaction panics during its COMMIT, it releases the writer.
func TestWrite_panicsUnderItsCommit(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "makola.db")})
	if err != nil {
		t.Fatal(err)
	}
	panics := errors.New("panics")
	func() {
		defer func() {
			if recover() != panics {
				t.Error("no panic")
			}
		}()
		_ = d.Write(t.Context(), func(tx *Tx) error {
			tx.deferred = append(tx.deferred, &engine.Statement{SQL: "CREATE TABLE rows (id TEXT)", Repeat: func(i int) []any {
				if i == 1 {
					panic(panics)
				}
				return []any{}
			}})
			return nil
		})
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := d.Write(ctx, func(tx *Tx) error {
		_, err := tx.Exec("CREATE TABLE rows (id TEXT)")
		return err
	}); err != nil {
		t.Fatalf("the next transaction: %v", err) // otherwise the database waits for its writer for ever
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
