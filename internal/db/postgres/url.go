package postgres

import (
	"errors"
	"strings"

	"github.com/makola/makola/internal/problem"
)

// errURL does not quote the URL, which may have a password.
var errURL = errors.New("db: the database must be named by a URL: postgres://user:password@host:port/name")

// unfitURL says what is wrong with the URL of the settings, and does not quote it either.
func unfitURL(why string) error {
	return problem.New(problem.Invalid, "database_url", "The URL of the database (MAKOLA_DATABASE) cannot be used: "+why)
}

// ofPostgres says whether a text names a database of PostgreSQL, as a URL or as a list of words. The driver takes every other
// URL with a "=" in it for such a list.
func ofPostgres(text string) bool {
	scheme, _, is := strings.Cut(text, "://")
	return !is || scheme == "postgres" || scheme == "postgresql" || strings.Contains(scheme, "=")
}
