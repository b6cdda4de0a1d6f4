package backup

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// programs creates a folder with scripts in place of PostgreSQL's three programs.
func programs(t testing.TB, script string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"pg_dump", "pg_restore", "psql"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+strings.ReplaceAll(script, "NAME", name)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestTools_refusesOlderThanServer(t *testing.T) {
	t.Parallel()
	version := func(n int) string { return programs(t, fmt.Sprintf("echo 'NAME (PostgreSQL) %d.4'", n)) }
	old, right, newer := version(13), version(16), version(17)
	incomplete := version(16)
	if err := os.Remove(filepath.Join(incomplete, "psql")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		folders []string
		least   int
		want    string
	}{
		{[]string{old, newer, right}, 16, right},
		{[]string{old, newer, right}, 14, right},
		{[]string{old, newer, right}, 17, newer},
		{[]string{incomplete, newer}, 16, newer},
		{[]string{old, right}, 18, ""},
		{nil, 15, ""},
	} {
		found, err := findTools(t.Context(), c.folders, c.least)
		if c.want == "" {
			refused(t, err, "tools_missing")
			if want := fmt.Sprintf("apt-get install postgresql-client-%d", c.least); !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%v does not say %q", err, want)
			}
			continue
		}
		if err != nil || filepath.Dir(found.dump) != c.want {
			t.Errorf("for %d: %+v, %v, want those of %s", c.least, found, err, c.want)
		}
	}
}

// A password must not be in arguments, because every user of a machine can read the command lines of all programs.
func TestTools_passwordNotInArguments(t *testing.T) {
	real, err := findTools(t.Context(), toolFolders(), 0)
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	folder := programs(t, `[ "$1" = --version ] && exec `+filepath.Dir(real.dump)+`/NAME --version
echo "NAME $@ / $PGPASSWORD" >> `+log+`
exec `+filepath.Dir(real.dump)+`/NAME "$@"`)
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	secret := func(database string) string {
		u, err := url.Parse(database)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(u.User.Username(), "unseen-by-others")
		return u.String()
	}
	o := db.Options{URL: secret(dbtest.URL(t)), MaxConns: 2}
	b := source{dbtest.OpenWith(t, o), o}.backup(t)
	if err := b.Restore(t.Context(), db.Options{URL: secret(dbtest.EmptyURL(t)), MaxConns: 2}, restoring()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var names []string
	for _, line := range lines {
		arguments, environment, _ := strings.Cut(line, " /")
		environment = strings.TrimSpace(environment)
		name, _, _ := strings.Cut(arguments, " ")
		names = append(names, name)
		want := "unseen-by-others"
		if name == "pg_restore" { // pg_restore prints and contacts no server
			want = ""
		}
		if strings.Contains(arguments, "unseen") || environment != want {
			t.Errorf("ran as %q", line)
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"pg_dump", "pg_restore", "psql"}) {
		t.Errorf("ran %v", names)
	}
}

// If a program fails, the error of the command contains its output.
func TestTools_errorHasTheirOutput(t *testing.T) {
	t.Setenv("PATH", programs(t, `[ "$1" = --version ] && { echo "NAME (PostgreSQL) 15"; exit; }
echo "NAME: out of luck" >&2
exit 1`)+":"+os.Getenv("PATH"))
	o := dbtest.Options(t, db.Postgres)
	folder := t.TempDir()
	_, err := Create(t.Context(), dbtest.OpenWith(t, o), o, CreateOptions{Folder: folder, Version: "test", Clock: clock.Real()})
	if refused(t, err, "tool_failed"); !strings.Contains(fmt.Sprint(err), "pg_dump: out of luck") {
		t.Errorf("the message is %v", err)
	}
	if entries, _ := os.ReadDir(folder); len(entries) > 0 {
		t.Errorf("in the folder: %v", entries)
	}
}

// If a program fails in the middle, the restore leaves nothing, even if everything that it printed was restored.
func TestTools_partialRestoreIsRolledBack(t *testing.T) {
	real, err := findTools(t.Context(), toolFolders(), 0)
	if err != nil {
		t.Fatal(err)
	}
	o := dbtest.Options(t, db.Postgres)
	b := source{dbtest.OpenWith(t, o), o}.backup(t)
	for name, print := range map[string]string{
		"pg_restore fails":      "echo 'CREATE TABLE half (n INT);'; exit 1",
		"psql fails":            "echo 'CREATE TABLE half (n INT); SELECT nothing;'; exit 0",
		"the mark has no table": "echo 'CREATE TABLE half (n INT);'; exit 0",
	} {
		folder := programs(t, `[ "$1" = --version ] && exec `+filepath.Dir(real.dump)+`/NAME --version
[ NAME = pg_restore ] && { `+print+`; }
exec `+filepath.Dir(real.dump)+`/NAME "$@"`)
		t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
		target := db.Options{URL: dbtest.EmptyURL(t), MaxConns: 2}
		err := b.Restore(t.Context(), target, restoring())
		if err == nil {
			t.Errorf("%s: it was restored", name)
		}
		t.Logf("%s: %v", name, err)
		nothingThere(t, target)
	}
}
