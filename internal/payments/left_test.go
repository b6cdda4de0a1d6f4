package payments

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock/clocktest"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/dbtest"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

// shaped starts a node with a queue of its own shape.
func (h *house) shaped(o jobs.Options) *node {
	h.t.Helper()
	log := slog.New(slog.DiscardHandler)
	like := h.stopped(o.Node)
	n := &node{house: h, queue: jobs.New(h.db, h.clock, log, o), routes: route.New(h.db, h.clock, log, like.routes.Rails())}
	secret, err := config.NewSecret(make([]byte, config.SecretBytes))
	if err != nil {
		h.t.Fatal(err)
	}
	n.webhooks = webhook.New(h.db, n.queue, h.clock, log, webhook.Options{Secret: secret, Development: true})
	books := ledger.New(h.db, h.clock, o.Node)
	n.Payments = New(Deps{DB: h.db, Ledger: books, Tenants: tenant.New(h.db, books, h.clock), Jobs: n.queue, Webhooks: n.webhooks,
		Routes: n.routes, Clock: h.clock, Log: log, Secret: secret, Development: true})
	if err := n.queue.Start(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := n.queue.Stop(context.Background()); err != nil {
			h.t.Errorf("stop: %v", err)
		}
		n.Close()
	})
	return n
}

// open is how many payments the node remembers.
func (l *live) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ids)
}

// TestWhatHasNoRoomIsForgotten: payments that are open for long fill the table, not
// the memory.
func TestWhatHasNoRoomIsForgotten(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		n := h.shaped(jobs.Options{Node: "a", LeaseFor: time.Hour, Heartbeat: time.Hour, MemoryMax: 16})
		for range 90 {
			n.crash(t, "MTN")
		}
		if open := n.live.open(); open > 20 {
			t.Errorf("%d payments are remembered, the queue has room for 20", open)
		}
		h.first.script(always(pending), inTurn(notFound, success))
		clocktest.Await(t, "the end of all", func() bool {
			h.clock.Advance(time.Second)
			return n.jobsLeft() == 0
		})
		clocktest.Await(t, "the memory", func() bool { return n.live.open() == 0 })
		n.books()
	})
}

// TestWhatAnotherNodeTookIsForgotten: a node that loses its lease remembers nothing of
// what another one settles.
func TestWhatAnotherNodeTookIsForgotten(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d)
		a := h.shaped(jobs.Options{Node: "a", LeaseFor: time.Hour, Heartbeat: 50 * time.Millisecond})
		for range 20 {
			a.crash(t, "MTN")
		}
		a.quiet()
		b := h.shaped(jobs.Options{Node: "b", LeaseFor: time.Hour, Heartbeat: 50 * time.Millisecond})
		h.bury("a")
		clocktest.Await(t, "the loss", func() bool { return a.queue.Counts().LeasesLost > 0 })
		h.first.script(always(pending), always(success))
		clocktest.Await(t, "the end of all", func() bool {
			h.clock.Advance(time.Second)
			return a.jobsLeft() == 0
		})
		clocktest.Await(t, "the memories", func() bool { return a.live.open()+b.live.open() == 0 })
		b.books()
	})
}
