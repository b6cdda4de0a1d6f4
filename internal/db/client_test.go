package db

import (
	"slices"
	"strings"
	"testing"
)

func TestClientEnvironment(t *testing.T) {
	for _, name := range []string{"PGSSLMODE", "PGSERVICE", "PGPASSWORD"} {
		t.Setenv(name, "")
	}
	for url, want := range map[string][]string{
		"postgres://ama:p%40ss@db.example:5433/shop?sslmode=disable&pool_max_conns=3&search_path=x&connect_timeout=3": {
			"PGHOST=db.example", "PGPORT=5433", "PGUSER=ama", "PGPASSWORD=p@ss", "PGDATABASE=shop", "PGSSLMODE=disable", "PGCONNECT_TIMEOUT=3", "PGAPPNAME=makola"},
		"postgres://ama@one:5432,two:5433/shop?target_session_attrs=read-write": {
			"PGHOST=one,two", "PGPORT=5432,5433", "PGUSER=ama", "PGDATABASE=shop", "PGTARGETSESSIONATTRS=read-write", "PGAPPNAME=makola"},
	} {
		got, err := ClientEnvironment(url)
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s:\n%v\n%v, want\n%v", url, got, err, want)
		}
	}
	for _, url := range []string{"host=db password=secret", "postgres://ama:secret@[db/x"} {
		if _, err := ClientEnvironment(url); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
