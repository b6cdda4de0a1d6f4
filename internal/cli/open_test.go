package cli

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// A data folder on the command line and a PostgreSQL database in the environment are ambiguous. Every command except the server
// refuses them.
func TestStorage_ambiguous(t *testing.T) {
	url := dbtest.URL(t)
	t.Setenv("MAKOLA_DATABASE", url)
	folder := t.TempDir()
	for _, args := range [][]string{{"tenant", "list"}, {"migrate", "status"}, {"wallet", "fund", "x", "1.00", "--reason", "r"}} {
		if _, said := plain(t, exitUsage, append(args, "--data", folder)...); !strings.Contains(said, "MAKOLA_DATABASE") {
			t.Errorf("%v: %s", args, said)
		}
		if args[0] != "wallet" {
			plain(t, exitOK, append(args, "--data", folder, "--database", url)...)
		}
	}
	t.Setenv("MAKOLA_DATA", folder)
	plain(t, exitOK, "tenant", "list")
}

// The error names a PostgreSQL database that does not exist.
func TestStorage_databaseAbsent(t *testing.T) {
	t.Parallel()
	url := strings.Replace(dbtest.URL(t), "makola_t_", "absent_", 1)
	for _, args := range [][]string{{"tenant", "list"}, {"migrate", "up"}} {
		if _, said := plain(t, exitUnavailable, append(args, "--database", url)...); !strings.Contains(said, `The database "absent_`) || !strings.Contains(said, "create it") {
			t.Errorf("%v: %s", args, said)
		}
	}
}

// makola migrate status fails while a migration is missing, so that scripts can detect it.
func TestMigrateStatus_missing(t *testing.T) {
	t.Parallel()
	url := dbtest.EmptyURL(t)
	known, err := db.KnownMigrations()
	if err != nil {
		t.Fatal(err)
	}
	out, said := plain(t, exitInternal, "migrate", "status", "--database", url)
	if strings.Count(out, "\n") <= len(known) || !strings.Contains(said, "Run makola migrate up") {
		t.Errorf("%s%s", out, said)
	}
	plain(t, exitOK, "migrate", "up", "--database", url)
	plain(t, exitOK, "migrate", "status", "--database", url)
}

// For an unknown request id the error names the other place to look.
func TestPayoutsFind_requestUnknown(t *testing.T) {
	each(t, func(t *testing.T, w where) {
		w.tenant()
		if _, said := w.run(exitOK, "payouts", "find", "req_0123456789abcdef01234567"); !strings.Contains(said, "MAKOLA_ACCESS_LOG") {
			t.Errorf("stderr is %q", said)
		}
	})
}
