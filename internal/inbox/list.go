package inbox

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
)

const (
	// newestBefore is after every id.
	newestBefore = "~"
	maxPage      = 1_000
)

const (
	listTexts    = `SELECT ` + textFields + ` FROM inbox_texts WHERE tenant = $1 AND id < $2 ORDER BY id DESC LIMIT $3`
	listAllTexts = `SELECT ` + textFields + ` FROM inbox_texts WHERE id < $1 ORDER BY id DESC LIMIT $2`
)

// Filter selects texts.
type Filter struct {
	Tenant string // with All: not read
	All    bool   // texts of all accounts, and texts without an account
	Before string // id of the last text of the page before
	Limit  int    // at most 1,000
}

// Texts returns texts, the newest first.
func (s *Store) Texts(ctx context.Context, f Filter) (list []Text, err error) {
	f.Limit = min(max(f.Limit, 1), maxPage)
	if f.Before == "" {
		f.Before = newestBefore
	}
	sql, args := listTexts, []any{f.Tenant, f.Before, f.Limit}
	if f.All {
		sql, args = listAllTexts, args[1:]
	}
	return db.ReadAll(ctx, s.DB, sql, args, (*Text).scan)
}

// Kept is how long texts are kept.
func (s *Store) Kept() time.Duration { return s.Keep }
