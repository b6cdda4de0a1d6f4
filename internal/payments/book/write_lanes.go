package book

import (
	"context"
	"errors"
	"hash/fnv"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
)

// How many lanes a node has on PostgreSQL. One lane is fastest for one hot
// wallet, several for many wallets; settling locks no wallet and has its own.
// SQLite has one writer and therefore one lane for everything.
const (
	walletLanes = 4
	settleLanes = 2
	nodesApart  = 64 // nodes that count in shards of their own, most likely
)

type opLane = groupcommit.Committer[*Op, Result]

// lanes are the group commits of this node: by wallet for what locks a wallet,
// by payment for what does not.
type lanes struct {
	wallets  []*opLane
	payments []*opLane
}

// newLanes makes the lanes of a node; commit is one transaction for many requests, in a shard of the counters.
func newLanes(node string, engine db.Engine, commit func(ctx context.Context, shard int, ops []*Op) ([]groupcommit.Verdict[Result], error)) lanes {
	var l lanes
	h := fnv.New32a()
	_, _ = h.Write([]byte(node))
	shard := int(h.Sum32()%nodesApart) * (walletLanes + settleLanes)
	add := func() *opLane {
		n := shard
		shard++
		return groupcommit.New(groupcommit.Options{Systemic: Systemic, Unsure: db.ErrAmbiguous}, func(ctx context.Context, ops []*Op) ([]groupcommit.Verdict[Result], error) {
			return commit(ctx, n, ops)
		})
	}
	if engine == db.SQLite {
		l.wallets = []*opLane{add()}
		l.payments = l.wallets
		return l
	}
	for range walletLanes {
		l.wallets = append(l.wallets, add())
	}
	for range settleLanes {
		l.payments = append(l.payments, add())
	}
	return l
}

// Systemic errors are no single request's fault.
func Systemic(err error) bool {
	return errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrAmbiguous)
}

// wallet is the lane of a tenant's wallet.
func (l *lanes) wallet(tenant string) *opLane { return pick(l.wallets, tenant) }

// payment is the lane of a payment's settlement.
func (l *lanes) payment(id string) *opLane { return pick(l.payments, id) }

func pick(of []*opLane, key string) *opLane {
	if len(of) == 1 {
		return of[0]
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return of[h.Sum32()%uint32(len(of))] // a handful
}

func (l *lanes) close() {
	for _, one := range l.wallets {
		one.Close()
	}
	for _, one := range l.payments {
		one.Close()
	}
}

// rowsOf is about how many rows one request writes.
const rowsOf = 4
