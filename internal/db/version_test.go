package db_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// The operators' document names the version of PostgreSQL that these tests use.
func TestPostgres_versionIsDocumented(t *testing.T) {
	var number int64
	if err := dbtest.Open(t, db.Postgres).Read(t.Context(), func(tx *db.Tx) error {
		_, err := tx.One(`SELECT CAST(current_setting('server_version_num') AS BIGINT) / 10000`, nil, &number)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/operations/install.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), fmt.Sprintf("tested with PostgreSQL %d", number)) {
		t.Errorf("the tests run on PostgreSQL %d: name it in docs/operations/install.md", number)
	}
}
