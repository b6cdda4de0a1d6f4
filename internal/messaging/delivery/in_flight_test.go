package delivery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/smstest"
)

const (
	recorded = "SELECT count(*) FROM messages WHERE campaign = $1 AND status NOT IN ('queued', 'sending')"
	// unrecorded counts the messages of a chunk that are unknown if the node dies now.
	unrecorded = "SELECT begun - (SELECT count(*) FROM messages m WHERE m.tenant = k.tenant AND m.campaign = k.campaign) FROM chunks k WHERE campaign = $1"
)

// awaitRecorded waits until want messages of a campaign have their rows.
func (h *fixture) awaitRecorded(c Campaign, want int64) {
	h.t.Helper()
	clocktest.Await(h.t, fmt.Sprintf("%d messages to be recorded", want), func() bool { return h.Count(recorded, c.ID) == want })
}

// wantOnce checks that each of the numbers was offered to the rails once.
func wantOnce(t *testing.T, numbers int, rails ...*smstest.Operator) {
	t.Helper()
	offered := map[string]int{}
	for _, o := range rails {
		for _, s := range o.All() {
			if offered[s.To]++; offered[s.To] > 1 {
				t.Errorf("%s was offered %d times", s.To, offered[s.To])
			}
		}
	}
	if len(offered) != numbers {
		t.Errorf("%d numbers were offered a message, expected %d", len(offered), numbers)
	}
}

func TestInFlight_unansweredDelaysNoOther(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 1_000})
		h.operator.Keeps("233240000007", "233240000120")
		c, err := h.send("hello", smstest.Numbers(151)...)
		if err != nil {
			t.Fatal(err)
		}
		h.awaitRecorded(c, 149)
		if n := h.Count(unrecorded, c.ID); n != 2 {
			t.Errorf("%d messages are marked and have no row, expected 2", n)
		}
		if s := h.status(c); s != CampaignActive {
			t.Errorf("the campaign is %s with two answers missing", s)
		}
		h.sound()
		h.operator.Let()
		h.Quiet()
		h.wantStatus(c, "151 submitted")
		if s := h.status(c); s != CampaignDone {
			t.Errorf("the campaign is %s", s)
		}
		wantOnce(t, 151, h.operator)
		h.WantBalance(1_000 - 151)
		h.sound()
	})
}

// At most a slice of messages waits for answers, so that a crash leaves a bounded number of messages unknown.
func TestInFlight_boundedBySlice(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 1_000})
		every := smstest.Numbers(450)
		var odd []string
		for i := 1; i < len(every); i += 2 {
			odd = append(odd, every[i])
		}
		h.operator.Keeps(odd...)
		c, err := h.send("hello", every...)
		if err != nil {
			t.Fatal(err)
		}
		h.advanceUntil(func() bool { // a message is claimed before its submit
			return h.Count(unrecorded, c.ID) == sliceSize && h.Count(recorded, c.ID) == sliceSize && len(h.operator.All()) >= 2*sliceSize
		})
		if n := len(h.operator.All()); n != 2*sliceSize {
			t.Errorf("%d messages left, expected %d", n, 2*sliceSize)
		}
		h.operator.Let()
		h.advanceUntil(func() bool { return h.status(c) == CampaignDone })
		h.wantStatus(c, "450 submitted")
		wantOnce(t, 450, h.operator)
		h.sound()
	})
}

// advanceUntil advances the clock until a condition is true.
func (h *fixture) advanceUntil(until func() bool) {
	h.t.Helper()
	clocktest.Await(h.t, "what the clock brings", func() bool {
		h.clock.Advance(recordWithin)
		return until()
	})
}

func TestTakeover_onlyUnansweredIsUnknown(t *testing.T) {
	for _, size := range []int{3, 151} { // a campaign in its own row, and a campaign with a chunk
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			each(t, func(t *testing.T, d *db.DB) { diesWithOneMissing(t, d, size) })
		})
	}
}

func diesWithOneMissing(t *testing.T, d *db.DB, size int) {
	h := open(t, d, options{credits: 1_000})
	h.operator.Keeps("233240000001")
	c, err := h.send("hello", smstest.Numbers(size)...)
	if err != nil {
		t.Fatal(err)
	}
	h.advanceUntil(func() bool { return h.Count(recorded, c.ID) == int64(size-1) })
	left := h.clock.Now()
	kill(t, d, "one")
	other := node(t, d, options{node: "two", at: h.clock})
	other.Quiet()
	want := fmt.Sprintf("1 submitted, 1 unknown, %d submitted", size-2)
	h.wantStatus(c, want)
	h.operator.Let() // the answer comes to a node that no longer has the chunk
	h.Quiet()
	h.wantStatus(c, want)
	wantOnce(t, size, h.operator, other.operator)
	if since := h.Count("SELECT since FROM unsure WHERE campaign = $1", c.ID); since == 0 || since > db.Micros(left) {
		t.Errorf("the message is unknown since %d, and left before %d", since, db.Micros(left))
	}
	h.sound()
	// The unknown message is refunded once, after its receipt window.
	other.Pass(receiptWindow + sweepEvery)
	other.Pass(sweepEvery)
	h.wantStatus(c, fmt.Sprintf("1 submitted, 1 failed, %d submitted", size-2))
	h.WantBalance(1_000 - int64(size-1))
	h.sound()
}

// A node is taken for dead while answers are missing, at each of many positions in a campaign. The answers come after
// another node has taken over.
func TestTakeover_sendsNoMessageTwice(t *testing.T) {
	for _, at := range []int{1, 2, 60, 99, 100, 101, 140, 197, 198, 240, 250} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			each(t, func(t *testing.T, d *db.DB) { diesAt(t, d, at) })
		})
	}
}

func diesAt(t *testing.T, d *db.DB, at int) {
	h := open(t, d, options{credits: 1_000})
	begun, goOn := make(chan struct{}), make(chan struct{})
	h.operator.Script(func(int, provider.Segment) provider.Outcome {
		h.operator.Last++
		if h.operator.Last == at {
			close(begun)
			<-goOn
		}
		return provider.Outcome{Class: provider.Accepted, UpstreamID: fmt.Sprintf("old-%06d", h.operator.Last)}
	})
	h.operator.Keeps("233240000001", "233240000120")
	c, err := h.send("hello", smstest.Numbers(250)...)
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	kill(t, d, "one")
	other := node(t, d, options{node: "two", at: h.clock})
	other.Quiet()
	close(goOn)
	h.operator.Let()
	h.advanceUntil(func() bool { counts := h.queue.Counts(); return counts.Running == 0 })
	tally := map[Status]int{}
	for _, m := range h.messages(c) {
		tally[m.Status]++
	}
	if tally[StatusSubmitted]+tally[StatusUnknown] != 250 || tally[StatusUnknown] == 0 || tally[StatusUnknown] > sliceSize {
		t.Errorf("the messages are %v", tally)
	}
	offered := map[string]int{}
	for _, s := range append(h.operator.All(), other.operator.All()...) {
		if offered[s.To]++; offered[s.To] > 1 {
			t.Errorf("%s was offered twice", s.To)
		}
	}
	for _, m := range h.messages(c) {
		if m.Status == StatusSubmitted && offered[m.Recipient] != 1 {
			t.Errorf("%s reads submitted and was offered %d times", m.Recipient, offered[m.Recipient])
		}
	}
	if s := h.status(c); s != CampaignDone {
		t.Errorf("the campaign is %s", s)
	}
	h.sound()
	other.Pass(receiptWindow + sweepEvery)
	other.Pass(sweepEvery)
	h.WantBalance(1_000 - int64(tally[StatusSubmitted]))
	h.sound()
}

func TestStop_waitsForInFlight(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 1_000})
		h.operator.Script(func(int, provider.Segment) provider.Outcome {
			if h.operator.Last == 250 {
				h.operator.SetReady(fmt.Errorf("no operator"))
			}
			return h.operator.Accept()
		})
		h.operator.Keeps("233240000007", "233240000120")
		c, err := h.send("hello", smstest.Numbers(900)...)
		if err != nil {
			t.Fatal(err)
		}
		clocktest.Await(t, "the operator to be away", func() bool { return h.operator.Ready("") != nil && h.Count(unrecorded, c.ID) == 2 })
		h.stop(c)
		h.clock.Advance(freshness)
		h.operator.SetReady(nil)
		h.clock.Advance(noBindPause)
		sent := len(h.operator.All())
		h.operator.Let()
		h.advanceUntil(func() bool { return h.Count("SELECT count(*) FROM chunks WHERE campaign = $1", c.ID) == 0 })
		if n := len(h.operator.All()); n != sent {
			t.Errorf("%d messages left after the stop", n-sent)
		}
		wantOnce(t, sent, h.operator)
		h.WantBalance(1_000 - int64(sent))
		if n := h.Count("SELECT count(*) FROM messages WHERE campaign = $1 AND status = 'submitted'", c.ID); n != int64(sent) {
			t.Errorf("%d messages are submitted of %d that left", n, sent)
		}
		h.sound()
	})
}

// At a low rate the messages in flight take minutes. Few of them leave after a stop; earlier, all of them did.
func TestStop_seenWithinFlight(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 1_000})
		begun, goOn := make(chan struct{}), make(chan struct{})
		long := strings.Repeat("a", 161) // two segments
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			h.clock.Advance(freshness / 2) // the operator is so slow
			if h.operator.Last++; h.operator.Last == 11 {
				close(begun)
				<-goOn
			}
			return provider.Outcome{Class: provider.Accepted, UpstreamID: fmt.Sprint("slow-", h.operator.Last)}
		})
		c, err := h.send(long, smstest.Numbers(250)...)
		if err != nil {
			t.Fatal(err)
		}
		<-begun // the operator has the first of the two segments
		h.stop(c)
		close(goOn)
		h.advanceUntil(func() bool { return h.Count("SELECT count(*) FROM chunks WHERE campaign = $1", c.ID) == 0 })
		n := len(h.operator.All()) // the rest of a started message, and submits that were already running
		if n > 18 || n%2 != 0 {
			t.Errorf("%d segments left, expected the 11 before the stop and few more, of whole messages", n)
		}
		h.WantBalance(1_000 - int64(n))
		h.sound()
	})
}

// slowRail accepts one segment for each turn, as a bind with a low rate does.
type slowRail struct {
	turns   chan struct{}
	waiting atomic.Int64
	sent    atomic.Int64
}

func (r *slowRail) Whole(string, msisdn.MSISDN) bool { return false }

func (r *slowRail) Ready(msisdn.Network) error { return nil }

func (r *slowRail) Submit(ctx context.Context, _ provider.Segment, done func(provider.Outcome)) {
	r.waiting.Add(1)
	defer r.waiting.Add(-1)
	select {
	case <-r.turns:
		done(provider.Outcome{Class: provider.Accepted, UpstreamID: fmt.Sprint("turn-", r.sent.Add(1))})
	case <-ctx.Done():
		done(provider.Outcome{Class: provider.NotSent, Message: ctx.Err().Error()})
	}
}

// Each step adds messages to those that already wait, so that many messages in flight wait for their turn. A stop
// calls them back.
func TestStop_recallsWaitingMessages(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		const waiting = 10
		rail := &slowRail{turns: make(chan struct{})}
		h := nodeOn(t, d, options{}, rail)
		h.customer("shop", 1_000)
		c, err := h.send("hello", smstest.Numbers(400)...)
		if err != nil {
			t.Fatal(err)
		}
		turn := func() {
			if h.Count(recorded, c.ID) < rail.sent.Load() {
				return // one step for each turn
			}
			select {
			case rail.turns <- struct{}{}:
			default:
			}
		}
		h.advanceUntil(func() bool { turn(); return rail.waiting.Load() >= waiting })
		h.stop(c)
		before := rail.sent.Load()
		h.advanceUntil(func() bool {
			turn()
			return h.Count("SELECT count(*) FROM chunks WHERE campaign = $1", c.ID) == 0
		})
		if n := rail.sent.Load() - before; n > waiting/2 {
			t.Errorf("%d messages left after the stop", n)
		}
		h.WantBalance(1_000 - rail.sent.Load())
		h.sound()
	})
}

// A small campaign is claimed with its charge and is part of a small batch in flight.
func TestStop_seenInSmallBatch(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 1_000})
		begun, goOn := make(chan struct{}), make(chan struct{})
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			h.clock.Advance(freshness)
			if s.To == "233240000002" {
				close(begun)
				<-goOn
			}
			return h.operator.Accept()
		})
		c, err := h.send("hello", smstest.Numbers(9)...)
		if err != nil {
			t.Fatal(err)
		}
		<-begun
		h.stop(c)
		close(goOn)
		h.Quiet()
		h.wantStatus(c, "3 submitted, 6 failed")
		h.WantBalance(1_000 - 3)
		if s := h.status(c); s != CampaignStopped {
			t.Errorf("the campaign is %s", s)
		}
		h.sound()
	})
}

func TestInFlight_throttledDoesNotWait(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 1_000})
		h.operator.Script(func(n int, s provider.Segment) provider.Outcome {
			if s.To[len(s.To)-1] == '3' && n == 1 {
				return smstest.Throttled
			}
			return h.operator.Accept()
		})
		h.operator.Keeps("233240000001")
		c, err := h.send("hello", smstest.Numbers(40)...)
		if err != nil {
			t.Fatal(err)
		}
		h.advanceUntil(func() bool { return h.Count(recorded, c.ID) == 39 })
		h.operator.Let()
		h.Quiet()
		h.wantStatus(c, "40 submitted")
		h.sound()
	})
}

func TestSmallBatch_recordsAnswers(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Keeps("233241000002")
		sent := []Campaign{}
		batch := []*admission{h.admission(KindCampaign, "233241000001", "233241000002", "233241000003"), h.admission(KindCampaign, "233241000004")}
		verdicts, err := h.admissions.admit(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range verdicts {
			sent = append(sent, v.Value.campaign)
		}
		h.advanceUntil(func() bool { return h.Count(recorded, sent[0].ID) == 2 && h.Count(recorded, sent[1].ID) == 1 })
		if n := h.Count(batchJobs); n != 1 {
			t.Errorf("%d jobs of small batches while an answer is missing", n)
		}
		h.operator.Let()
		h.Quiet()
		h.wantStatus(sent[0], "3 submitted")
		if n := h.Count(messageJobs); n != 0 {
			t.Errorf("%d jobs are left", n)
		}
		wantOnce(t, 4, h.operator)
		h.sound()
	})
}

// For each COMMIT in turn its answer is lost, and for each exchange the connection, while the operator's answers come
// late.
func TestInFlight_lostCommitAnswer(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		h := open(t, d, options{credits: 100_000})
		want := 0
		for _, fault := range []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict} {
			for nth := 1; nth <= 6; nth++ {
				for _, size := range []int{SmallSize, 130} {
					h.operator.Keeps("233240000001", "233240000003")
					f.At(db.BoundaryCommit, nth, fault)
					c, err := h.send(fmt.Sprint("hello ", fault, nth, size), smstest.Numbers(size)...)
					if err != nil {
						t.Fatal(err)
					}
					want += size
					h.advanceUntil(func() bool { return h.Count(recorded, c.ID) == int64(size-2) })
					h.operator.Let()
					h.work(func() bool { return h.status(c) == CampaignDone })
					h.wantStatus(c, fmt.Sprint(size, " submitted"))
				}
			}
		}
		if n := len(h.operator.All()); n != want {
			t.Errorf("%d messages left for %d", n, want)
		}
		h.sound()
	})
}

func TestDeliver_validityPeriod(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10, valid: 6 * time.Hour})
		h.mustSend("hello", "0241000001")
		h.operator.Script(func(n int, s provider.Segment) provider.Outcome {
			if s.Validity < 6*time.Hour && n == 1 {
				return smstest.Throttled
			}
			return h.operator.Accept()
		})
		h.mustAccept(h.otp("233241234567", 5*time.Minute))
		h.Quiet()
		h.Pass(time.Minute)
		var got []time.Duration
		for _, s := range h.operator.All() {
			got = append(got, s.Validity)
		}
		if want := []time.Duration{6 * time.Hour, 5 * time.Minute, 4 * time.Minute}; !slices.Equal(got, want) {
			t.Errorf("the operator was told to try for %v, expected %v", got, want)
		}
	})
}
