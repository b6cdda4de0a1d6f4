package privacy

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A number is found at any position in a file, even across two reads. The search covers the database, its log and the
// copies beside it.
func TestCopies_acrossTwoReads(t *testing.T) {
	folder := t.TempDir()
	database := filepath.Join(folder, "makola.db")
	number := []byte("233241234567")
	for name, at := range map[string]int{"makola.db": 0, "makola.db-wal": readAtOnce - 5, "makola.db.before-0045": 3*readAtOnce - len(number), "other": 0} {
		text := bytes.Repeat([]byte{'x'}, 3*readAtOnce)
		copy(text[at:], number)
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for spelling, want := range map[string][]string{
		"233241234567": {"makola.db", "makola.db-wal", "makola.db.before-0045"},
		"233241234568": nil,
	} {
		found, err := Copies(database, "0241234567", spelling)
		if err != nil || !slices.Equal(found, want) {
			t.Errorf("%s: %v, %v", spelling, found, err)
		}
	}
}
