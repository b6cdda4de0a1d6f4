package payments

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// open returns the number of payments in the memory of the node.
func (l *live) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ids)
}

// Payments that stay open for long fill the table of jobs, not the memory.
func TestLive_overflowIsEvicted(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.shaped(jobs.Options{Node: "a", LeaseFor: time.Hour, Heartbeat: time.Hour, MemoryMax: 16})
		for range 90 {
			n.crash(t, "MTN")
		}
		if open := n.follower.live.open(); open > 20 {
			t.Errorf("%d payments are remembered, the queue has room for 20", open)
		}
		h.first.script(always(pending), always(success))
		clocktest.Await(t, "the end of all", func() bool {
			h.clock.Advance(time.Second)
			return n.jobsLeft() == 0
		})
		clocktest.Await(t, "the memory", func() bool { return n.follower.live.open() == 0 })
		n.books()
	})
}

// A job that found no room in memory records that its payment was never submitted. The payment is then submitted
// without a query.
func TestLive_overflowIsSubmitted(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.shaped(jobs.Options{Node: "a", LeaseFor: time.Hour, Heartbeat: time.Hour, MemoryMax: 16})
		leave := make(chan struct{})
		h.first.script(func(int, string) provider.Outcome {
			<-leave
			return pending
		}, func(_ int, reference string) provider.Outcome {
			h.first.mu.Lock()
			defer h.first.mu.Unlock()
			if h.first.submissions[reference] != 1 {
				t.Errorf("asked after %d POSTs", h.first.submissions[reference])
				return notFound
			}
			return success
		})
		for range 60 {
			n.crash(t, "MTN")
		}
		close(leave)
		clocktest.Await(t, "the end of all", func() bool {
			h.clock.Advance(time.Second)
			return n.jobsLeft() == 0
		})
		if posts, _ := h.first.counts(); posts != 60 {
			t.Errorf("%d POSTs", posts)
		}
		n.books()
	})
}

// Another loop may find a job in the table and run it before the acceptance learns of its own COMMIT. The payment is
// not sent again, and the waiting request is answered.
func TestLive_jobRunsBeforeCommitReturns(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.stopped("a")
		h.first.script(always(pending), always(pending))
		a, pay := n.accepted(t, "MTN", true)
		n.follower.live.drop(pay.ID) // the acceptance does not know of its COMMIT yet
		a.attempt.begun = false
		n.follower.live.expect(a.attempt)
		job := openJob(pay, h.clock.Now(), jobs.Job{Fresh: true})
		n.follower.runJob(t.Context(), job)
		n.follower.opened(pay)
		select {
		case <-a.reply.given:
		default:
			t.Error("the request still waits")
		}
		job.Fresh = false
		n.follower.runJob(t.Context(), job)
		if posts, asks := h.first.counts(); posts != 1 || asks != 1 {
			t.Errorf("%d POSTs, %d questions", posts, asks)
		}
	})
}

// A node that loses its lease forgets its payments, because another node settles them.
func TestLive_lostLease(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		a := h.shaped(jobs.Options{Node: "a", LeaseFor: time.Hour, Heartbeat: 50 * time.Millisecond})
		for range 20 {
			a.crash(t, "MTN")
		}
		a.quiet()
		b := h.shaped(jobs.Options{Node: "b", LeaseFor: time.Hour, Heartbeat: 50 * time.Millisecond})
		h.expireLease("a")
		clocktest.Await(t, "the loss", func() bool { return a.queue.Counts().LeasesLost > 0 })
		h.first.script(always(pending), always(success))
		clocktest.Await(t, "the end of all", func() bool {
			h.clock.Advance(time.Second)
			return a.jobsLeft() == 0
		})
		clocktest.Await(t, "the memories", func() bool { return a.follower.live.open()+b.follower.live.open() == 0 })
		b.books()
	})
}
