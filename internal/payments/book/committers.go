package book

import (
	"context"
	"errors"
	"hash/fnv"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
)

// The numbers of group commits on PostgreSQL. For one busy wallet a single group commit is fastest; many wallets need
// several. Settlements that lock no wallet have group commits of their own. SQLite allows one writer and therefore
// has one group commit.
const (
	walletCommitters  = 4
	paymentCommitters = 2
	nodesApart        = 64 // number of counter shards, so that nodes rarely share one
)

type opCommitter = groupcommit.Committer[*Op, Result]

// committers are the group commits of this node. Requests that lock a wallet are spread by wallet, all others by
// payment.
type committers struct {
	wallets  []*opCommitter
	payments []*opCommitter
}

// newCommitters returns the group commits of a node. commit runs one transaction for many requests and writes
// counters to the given shard.
func newCommitters(node string, engine db.Engine, commit func(ctx context.Context, shard int, ops []*Op) ([]groupcommit.Verdict[Result], error)) committers {
	var l committers
	h := fnv.New32a()
	_, _ = h.Write([]byte(node))
	shard := int(h.Sum32()%nodesApart) * (walletCommitters + paymentCommitters)
	add := func() *opCommitter {
		n := shard
		shard++
		return groupcommit.New(groupcommit.Options{Systemic: Systemic, Unsure: db.ErrAmbiguous, MaxBulkRows: bulkRows}, func(ctx context.Context, ops []*Op) ([]groupcommit.Verdict[Result], error) {
			return commit(ctx, n, ops)
		})
	}
	if engine == db.SQLite {
		l.wallets = []*opCommitter{add()}
		l.payments = l.wallets
		return l
	}
	for range walletCommitters {
		l.wallets = append(l.wallets, add())
	}
	for range paymentCommitters {
		l.payments = append(l.payments, add())
	}
	return l
}

// bulkRows is the number of rows of a transaction of bulk work, as rowsOf estimates them. Payments of others wait while it runs.
const bulkRows = 100

// Systemic reports whether an error concerns the database rather than one request.
func Systemic(err error) bool {
	return errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrAmbiguous)
}

// wallet returns the group commit of a tenant's wallet.
func (l *committers) wallet(tenant string) *opCommitter { return pick(l.wallets, tenant) }

// payment returns the group commit of a payment's settlement.
func (l *committers) payment(id string) *opCommitter { return pick(l.payments, id) }

func pick(of []*opCommitter, key string) *opCommitter {
	if len(of) == 1 {
		return of[0]
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return of[h.Sum32()%uint32(len(of))] // len(of) is small
}

func (l *committers) close() {
	for _, one := range l.wallets {
		one.Close()
	}
	for _, one := range l.payments {
		one.Close()
	}
}

// rowsOf estimates the number of rows that one request writes.
const rowsOf = 4
