package book

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs/lease"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// olderEvery is how often a node looks for older nodes while one lives.
const olderEvery = 10 * time.Second

// A floatSwitch decides whether postings name the account at the provider. Nodes of the release before know one float for
// each provider, and their check of the books reports any other as a fault. So the first posting that names an account
// waits until no such node lives; from then on this process names accounts for good.
type floatSwitch struct {
	on   atomic.Bool
	next atomic.Int64 // microseconds: the database is not asked before
}

// read reports whether postings name accounts, and asks the database now and then until they do.
func (s *floatSwitch) read(tx *db.Tx, now time.Time) (bool, error) {
	if s.on.Load() {
		return true, nil
	}
	if db.Micros(now) < s.next.Load() {
		return false, nil
	}
	older, err := lease.OlderLives(tx)
	if err != nil {
		return false, err
	}
	s.on.Store(!older)
	s.next.Store(db.Micros(now.Add(olderEvery)))
	return !older, nil
}

// Floats returns what we have at a provider by our own books, in each of its accounts that anything was ever posted to. The
// empty name is what is not assigned to an account: the postings of earlier releases, and money booked without an account.
func (rd *Reader) Floats(ctx context.Context, rail, mode string) (map[string]money.Pesewas, error) {
	accounts := map[ledger.AccountID]string{ledger.Float(rail): ""}
	ids := []ledger.AccountID{ledger.Float(rail)}
	for _, name := range provider.AccountNames() {
		id := ledger.FloatAt(rail, name)
		accounts[id], ids = name, append(ids, id)
	}
	balances, err := rd.ledger.Balances(ctx, asset(mode), ids)
	if err != nil {
		return nil, err
	}
	floats := make(map[string]money.Pesewas, len(balances))
	for id, balance := range balances {
		floats[accounts[id]] = -money.Pesewas(balance) // money at the provider is a negative balance, see treasury.AddFloat
	}
	return floats, nil
}

// CheckFloat compares what a provider's own book says that we have there, in all accounts together, with ours. It returns
// the difference: zero, or by how much the provider has more.
func (rd *Reader) CheckFloat(ctx context.Context, rail, mode string, book money.Pesewas) (money.Pesewas, error) {
	floats, err := rd.Floats(ctx, rail, mode)
	for _, ours := range floats {
		book -= ours
	}
	return book, err
}
