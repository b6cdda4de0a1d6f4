package changes

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/test/dbtest"
)

// missesAll stores exceptions of payments that the statement does not have, and lets a request about all of them be approved.
func (x *examples) missesAll(pays []book.Payment) (ids []string) {
	x.t.Helper()
	for _, pay := range pays {
		ids = append(ids, x.differs(difference{source: hubtelSource, kind: "ours_only", payment: pay.ID}))
	}
	x.approved(KindEndAllByLine, "source", hubtelSource, "kind", "ours_only")
	return ids
}

// settled fails the test unless the payments went back to the wallet, which had an amount before, each once.
func (x *examples) settled(pays []book.Payment, ids []string, had money.Pesewas) {
	x.t.Helper()
	for i, pay := range pays {
		had += pay.Held()
		e, err := x.Reconcile.Exception(x.t.Context(), ids[i])
		if p := x.payment(pay.ID); err != nil || p.Status != book.StatusFailed || e.Ending != reconcile.EndedSettled {
			x.t.Fatalf("payment %d is %s, its exception %+v, %v", i, p.Status, e, err)
		}
	}
	if x.wallet() != had {
		x.t.Fatalf("the wallet has %s, want %s", x.wallet(), had)
	}
}

// However setting the outcomes breaks off, the next run ends it, and no money goes back twice.
func TestSettleApproved_interrupted(t *testing.T) {
	const most, each = 40, 2
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, faults *db.Faults) {
		x := install(t, d, faults, true).treasurer()
		x.rail.pending = true
		pays := x.unknown(most * each)
		ways := []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict}
		hits, commits := 0, 0
		for n := range most {
			x.tx(func(tx *db.Tx) error { _, err := tx.Exec("DELETE FROM person_uses"); return err })
			part, had, left, hit := pays[n*each:(n+1)*each], x.wallet(), n, false
			ids := x.missesAll(part)
			faults.Decide(func(b db.Boundary) db.Fault {
				if left--; left != -1 {
					return db.FaultNone
				}
				if hit = true; b == db.BoundaryCommit {
					commits++
				}
				return ways[n%len(ways)]
			})
			_ = x.SettleApproved(t.Context()) // the next run must end what this one left
			faults.Decide(nil)
			if err := x.SettleApproved(t.Context()); err != nil {
				t.Fatalf("boundary %d: the next run: %v", n, err)
			}
			if x.settled(part, ids, had); !hit {
				break
			}
			hits++
		}
		if hits < 6 || hits == most || commits < each {
			t.Errorf("%d runs were broken off, %d at a commit", hits, commits)
		}
		x.sound()
	})
}

// node returns the changes of another node with the same database.
func (f *fixture) node(name string) *Changes {
	f.t.Helper()
	secret, err := config.NewSecret(bytes.Repeat([]byte{7}, config.SecretBytes))
	if err != nil {
		f.t.Fatal(err)
	}
	quiet, of := slog.New(slog.DiscardHandler), f.Deps
	of.Payments = payments.New(payments.Deps{Treasury: of.Treasury, DB: f.db, Ledger: f.ledger, Tenants: of.Tenants, Jobs: jobs.New(f.db, f.clock, quiet, jobs.Options{Node: name}), Webhooks: of.Webhooks,
		Routes: of.Routes, Lookups: of.Lookups, Clock: f.clock, Log: quiet, Secret: secret, Recovery: f.lost, CallbackURL: func(provider.Rail) string { return "" }})
	f.t.Cleanup(of.Payments.Close)
	return New(of)
}

// Nodes that set the same outcomes at once set each of them once.
func TestSettleApproved_byTwoNodes(t *testing.T) {
	each(t, func(f *fixture) {
		x := f.treasurer()
		x.rail.pending = true
		pays := x.unknown(20)
		had := x.wallet()
		ids := x.missesAll(pays)
		var all sync.WaitGroup
		for _, node := range []*Changes{f.Changes, f.node("b"), f.node("c")} {
			for range 2 {
				all.Go(func() {
					if err := node.SettleApproved(context.WithoutCancel(t.Context())); err != nil && !problem.Is(err, problem.InProgress) {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		if err := f.SettleApproved(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.settled(pays, ids, had)
		for _, id := range ids {
			if e, err := f.Reconcile.Exception(t.Context(), id); err != nil || e.Note != "" {
				t.Errorf("%+v, %v", e, err)
			}
		}
		x.sound()
	})
}
