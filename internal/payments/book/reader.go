package book

import (
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
)

// Reader reads payments. It is safe for concurrent use.
type Reader struct {
	db     *db.DB
	ledger *ledger.Ledger
	clock  *clock.Clock
}

// NewReader returns a reader of a database. Without a ledger it cannot Check or return floats.
func NewReader(d *db.DB, l *ledger.Ledger, c *clock.Clock) *Reader {
	return &Reader{db: d, ledger: l, clock: c}
}
