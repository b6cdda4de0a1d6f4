package postgres

import (
	"errors"
	"strings"

	"github.com/makola/makola/internal/problem"
)

// errURL does not contain the URL, which may have a password.
var errURL = errors.New("db: the database must be named by a URL: postgres://user:password@host:port/name")

// unfitURL returns an error about the configured URL that does not contain the URL.
func unfitURL(why string) error {
	return problem.New(problem.Invalid, "database_url", "The URL of the database (MAKOLA_DATABASE) cannot be used: "+why)
}

// ofPostgres reports whether a text names a PostgreSQL database, as a URL or as a list of keywords. The driver itself
// would accept every other URL that contains "=" as such a list.
func ofPostgres(text string) bool {
	scheme, _, is := strings.Cut(text, "://")
	return !is || scheme == "postgres" || scheme == "postgresql" || strings.Contains(scheme, "=")
}
