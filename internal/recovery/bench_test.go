package recovery

import (
	"strconv"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// BenchmarkContinuity measures the cost of the proof, in normal operation, that the database was not restored. It compares Sure
// before a submission, and a transaction that reports its row to the watch with one that does not.
func BenchmarkContinuity(b *testing.B) {
	d := dbtest.Open(b, db.SQLite)
	n := up(b, d, WatchOptions{Node: "a", Folder: b.TempDir()})
	b.Run("sure", func(b *testing.B) {
		for b.Loop() {
			if err := n.Sure(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	commit := func(w *Watch) func(*testing.B) {
		return func(b *testing.B) {
			id := 0
			for b.Loop() {
				id++
				if err := d.Write(b.Context(), func(tx *db.Tx) error {
					w.Commits(tx, 0, Campaign, "t", strconv.Itoa(id))
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("empty commit without", commit(nil))
	b.Run("empty commit with", commit(n.Watch))
}
