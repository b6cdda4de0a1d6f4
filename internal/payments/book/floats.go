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

// olderEvery is the interval at which a node checks for running nodes of an older release.
const olderEvery = 10 * time.Second

// A floatSwitch decides whether postings name the account at the provider. Nodes of the previous release know one
// float for each provider, and their check of the books reports any other account as a fault. Postings therefore name
// accounts only after the last such node has stopped. From then on they always do.
type floatSwitch struct {
	on   atomic.Bool
	next atomic.Int64 // microseconds; time of the next check
}

// read reports whether postings name accounts. Until they do, it checks for older nodes every olderEvery.
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

// Floats returns our balance in each account at a provider according to our ledger. The empty name stands for
// postings without an account, such as those of earlier releases.
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

// CheckFloat returns the provider's own balance minus ours, over all its accounts. It is zero if both agree, and
// positive if the provider has more.
func (rd *Reader) CheckFloat(ctx context.Context, rail, mode string, book money.Pesewas) (money.Pesewas, error) {
	floats, err := rd.Floats(ctx, rail, mode)
	for _, ours := range floats {
		book -= ours
	}
	return book, err
}
