package db

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/problem"
)

// An unusable database URL is an error for the operator. The error does not contain the URL, which may hold a
// password.
func TestOpen_refusesOtherURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"mysql://ama:secret@x", "mysql://ama:secret@x?a=b", "postgres://ama:secret@x:port/y", "secret"} {
		_, err := Open(t.Context(), Options{URL: url})
		if !problem.Is(err, problem.Invalid) || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "MAKOLA_DATABASE") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
