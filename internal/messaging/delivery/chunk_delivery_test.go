package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/messaging/otp"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/smstest"
)

func TestRefund_unacceptedOnce(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 1_000})
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			if s.To[len(s.To)-1] == '7' {
				return smstest.Refused
			}
			return h.operator.Accept()
		})
		c := h.mustSend(strings.Repeat("a", 161), smstest.Numbers(250)...) // 25 of the numbers end in 7
		h.WantBalance(1_000 - 2*225)
		for _, m := range h.messages(c) {
			if bad := strings.HasSuffix(m.Recipient, "7"); bad != (m.Status == StatusRejected) || bad && m.Error == "" {
				t.Fatalf("%+v", m)
			}
		}
		if found := h.campaign(c); found.Refunded != 25 || found.Status != CampaignDone {
			t.Errorf("%+v", found)
		}
		h.Pass(receiptWindow + 24*time.Hour)
		h.WantBalance(1_000 - 2*225)
		h.sound()
	})
}

func TestRefund_unknownAfterReceiptWindow(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Script(func(int, provider.Segment) provider.Outcome { return smstest.Silence })
		c := h.mustSend("hello", "0241000001", "0241000002", "0241000003")
		h.wantStatus(c, "3 unknown")
		h.WantBalance(7)
		// If an operator reports on a number, it has accepted the message, whatever the id is.
		h.Pass(time.Minute)
		h.receipt("an id that nobody told us", "233241000002", delivered)
		h.Pass(47*time.Hour + 30*time.Minute)
		h.wantStatus(c, "1 unknown, 1 delivered, 1 unknown")
		h.WantBalance(7)
		h.Pass(time.Hour)
		h.wantStatus(c, "1 failed, 1 delivered, 1 failed")
		h.WantBalance(9)
		h.Pass(receiptWindow)
		h.WantBalance(9)
		if n := len(h.operator.All()); n != 3 {
			t.Errorf("%d messages left for 3", n)
		}
		h.sound()
	})
}

// A receipt that comes at the end of the receipt window is still matched before the refund.
func TestRefund_receiptAtEndOfWindow(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Script(func(int, provider.Segment) provider.Outcome { return smstest.Silence })
		c := h.mustSend("hello", "0241000001", "0241000002")
		if err := h.queue.Stop(t.Context()); err != nil { // the test runs the sweep itself
			t.Fatal(err)
		}
		sweep := func(after time.Duration) {
			h.clock.Advance(after)
			if err := h.retention().sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		sweep(receiptWindow - time.Second)
		h.receipt("an id that nobody told us", "233241000001", delivered)
		sweep(unmatchedMatchAfter)
		h.wantStatus(c, "2 unknown")
		h.WantBalance(8)
		sweep(time.Minute)
		h.wantStatus(c, "1 delivered, 1 failed")
		h.WantBalance(9)
		h.sound()
	})
}

func TestDeliver_throttledIsRetried(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 500})
		h.operator.Script(func(n int, s provider.Segment) provider.Outcome {
			if s.To[len(s.To)-1] == '3' && h.clock.Now().Before(smstest.Morning.Add(5*time.Second)) {
				return smstest.Throttled
			}
			return h.operator.Accept()
		})
		c := h.mustSend("hello", smstest.Numbers(120)...)
		if n := len(h.operator.All()); n != 120 {
			t.Errorf("%d messages were offered at first, expected 120", n)
		}
		for range 10 {
			h.Pass(time.Second)
		}
		h.wantStatus(c, "120 submitted")
		if s := h.status(c); s != CampaignDone {
			t.Errorf("the campaign is %s", s)
		}
		accepted := map[string]int{}
		for _, s := range h.operator.All() {
			if s.Outcome.Class == provider.Accepted {
				accepted[s.To]++
			}
		}
		for to, n := range accepted {
			if n != 1 {
				t.Errorf("%s was sent %d messages", to, n)
			}
		}
		h.WantBalance(380)
		h.sound()
	})
}

func TestDeliver_unacceptedInTimeFails(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Script(func(int, provider.Segment) provider.Outcome { return smstest.Throttled })
		c := h.mustSend("hello", "0241000001", "0241000002")
		h.wantStatus(c, "2 queued")
		h.WantBalance(8)
		for at := time.Duration(0); at < resubmitFor-time.Minute; at += time.Minute {
			h.Pass(time.Minute)
		}
		h.wantStatus(c, "2 queued")
		h.Pass(2 * time.Minute)
		h.wantStatus(c, "2 failed")
		h.WantBalance(10)
		h.sound()
	})
}

func TestDeliver_oneAcceptedSegment(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			if s.Part == 2 {
				return smstest.Refused
			}
			return h.operator.Accept()
		})
		c := h.mustSend(strings.Repeat("a", 161), "0241000001")
		h.wantStatus(c, "1 submitted")
		h.WantBalance(8)
		h.receipt("id-000001", "233241000001", delivered)
		h.wantStatus(c, "1 rejected") // a message with half its segments counts as rejected
		h.WantBalance(8)
		h.Pass(2 * receiptWindow)
		h.WantBalance(8)
		h.sound()
	})
}

func TestDeliver_restKeepsReference(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.operator.Script(func(n int, s provider.Segment) provider.Outcome {
			if s.Part == 2 && n < 3 {
				return smstest.Throttled
			}
			return h.operator.Accept()
		})
		c, err := h.send(strings.Repeat("a", 161), "0241000001")
		if err != nil {
			t.Fatal(err)
		}
		h.work(func() bool { return h.status(c) == CampaignDone })
		got := h.operator.All()
		if len(got) != 4 || got[0].Part != 1 || got[1].Group != got[0].Group || got[3].Group != got[0].Group {
			t.Errorf("offered: %+v", got)
		}
		h.wantStatus(c, "1 submitted")
		h.receipt("id-000001", "233241000001", delivered)
		h.wantStatus(c, "1 submitted")
		h.receipt("id-000002", "233241000001", delivered)
		h.wantStatus(c, "1 delivered")
		h.sound()
	})
}

// work advances the clock until a condition is true, for handlers that wait by the clock.
func (h *fixture) work(until func() bool) {
	h.t.Helper()
	clocktest.Await(h.t, "what the clock brings", func() bool {
		if until() {
			return true
		}
		h.clock.Advance(500 * time.Millisecond)
		return false
	})
	h.Quiet()
}

func TestDeliver_longMessagesToOneNumber(t *testing.T) {
	h := open(t, dbtest.Open(t, db.SQLite), options{credits: 1_000})
	for range 100 {
		h.mustSend(strings.Repeat("a", 161), "0241000001")
	}
	seen := map[byte]int{}
	for _, s := range h.operator.All() {
		if s.Part == 1 {
			seen[byte(s.Group)]++ // the header of a segment has one octet for the group
		}
	}
	if len(seen) != 100 {
		t.Errorf("100 messages in a row have %d different numbers", len(seen))
	}
}

func TestStop_refundsUnsent(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 5_000})
		seen := make(chan struct{})
		goOn := make(chan struct{})
		var once sync.Once
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			once.Do(func() { close(seen) })
			<-goOn
			return h.operator.Accept()
		})
		c, err := h.send("hello", smstest.Numbers(2_500)...)
		if err != nil {
			t.Fatal(err)
		}
		<-seen
		h.stop(c)
		close(goOn)
		h.Quiet()
		sent := len(h.operator.All())
		if sent == 0 || sent > 3*sliceSize {
			t.Errorf("%d of 2500 messages left although the campaign was stopped in its first slices", sent)
		}
		h.WantBalance(5_000 - int64(sent))
		if s := h.status(c); s != CampaignStopped {
			t.Errorf("the campaign is %s", s)
		}
		tally := map[Status]int{}
		for _, m := range h.messages(c) {
			tally[m.Status]++
		}
		if tally[StatusSubmitted] != sent || tally[StatusFailed] != 2_500-sent {
			t.Errorf("%v for %d that were sent", tally, sent)
		}
		h.sound()
	})
}

func TestStop_withoutConnection(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100})
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			if s.To == "233240000001" {
				return smstest.Throttled
			}
			return h.operator.Accept()
		})
		waiting := h.mustSend("hello", smstest.Numbers(3)...) // one of the three is throttled
		h.operator.SetReady(fmt.Errorf("no operator"))
		blocked := h.mustSend("hello", smstest.Numbers(20)...)
		h.Pass(time.Minute)
		h.wantStatus(waiting, "1 submitted, 1 queued, 1 submitted")
		h.wantStatus(blocked, "20 queued")
		h.WantBalance(77)
		for _, c := range []Campaign{waiting, blocked} {
			h.stop(c)
		}
		for range 5 {
			h.Pass(noBindPause)
		}
		h.wantStatus(waiting, "1 submitted, 1 failed, 1 submitted")
		h.wantStatus(blocked, "20 failed")
		h.WantBalance(98)
		h.sound()
	})
}

func TestDeliver_waitsForConnection(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 2_000})
		h.operator.SetReady(fmt.Errorf("no operator"))
		small, large := h.mustSend("hello", "0241234567"), h.mustSend("hello", smstest.Numbers(1_200)...)
		h.Pass(time.Hour)
		h.wantStatus(small, "1 queued")
		h.wantStatus(large, "1200 queued")
		if n := len(h.operator.All()); n != 0 {
			t.Errorf("%d messages left", n)
		}
		h.operator.SetReady(nil)
		h.Pass(noBindPause)
		h.wantStatus(small, "1 submitted")
		h.wantStatus(large, "1200 submitted")
		h.sound()
	})
}

// A node is taken for dead while a slice is in flight, and another node takes over. Then the first node gets its
// answers, and its steps are refused.
func TestTakeover_unknownUnlessResend(t *testing.T) {
	for _, engine := range dbtest.Engines() {
		t.Run(engine.String(), func(t *testing.T) {
			for _, resend := range []bool{false, true} {
				d := dbtest.Open(t, engine)
				h := open(t, d, options{credits: 1_000, resend: resend})
				begun, goOn := make(chan struct{}), make(chan struct{})
				h.operator.Script(func(int, provider.Segment) provider.Outcome {
					h.operator.Last++
					if h.operator.Last == 150 {
						close(begun)
						<-goOn
					}
					return provider.Outcome{Class: provider.Accepted, UpstreamID: fmt.Sprintf("old-%06d", h.operator.Last)}
				})
				c, err := h.send("hello", smstest.Numbers(450)...)
				if err != nil {
					t.Fatal(err)
				}
				<-begun // the first slice is recorded, and the second is at the operator
				kill(t, d, "one")
				other := node(t, d, options{node: "two", resend: resend, at: h.clock})
				other.Quiet()
				close(goOn)
				h.Quiet()
				want := "100 submitted, 100 unknown, 250 submitted"
				if resend {
					want = "450 submitted"
				}
				h.wantStatus(c, want)
				twice := map[string]int{}
				for _, s := range append(h.operator.All(), other.operator.All()...) {
					twice[s.To]++
				}
				doubles := 0
				for _, n := range twice {
					doubles += n - 1
				}
				if len(twice) != 450 || !resend && doubles > 0 || doubles > sliceSize {
					t.Errorf("%d recipients, %d doubles", len(twice), doubles)
				}
				h.sound()
				// A receipt for a message of the dead node is matched by the number, not by the id.
				h.Pass(time.Minute)
				h.receipt("old-000120", "233240000119", delivered)
				other.Pass(2 * sweepEvery)
				if !resend {
					h.wantStatus(c, "100 submitted, 19 unknown, 1 delivered, 80 unknown, 250 submitted")
				}
				other.Pass(receiptWindow)
				want = "100 submitted, 19 failed, 1 delivered, 80 failed, 250 submitted"
				if resend {
					want = "450 submitted"
				}
				h.wantStatus(c, want)
				h.sound()
			}
		})
	}
}

func TestShutdown_losesNoMessage(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10_000})
		seen := make(chan struct{})
		var once sync.Once
		h.operator.Script(func(int, provider.Segment) provider.Outcome {
			once.Do(func() { close(seen) })
			return h.operator.Accept()
		})
		c, err := h.send("hello", smstest.Numbers(2_000)...)
		if err != nil {
			t.Fatal(err)
		}
		<-seen
		hurry, cancel := context.WithCancel(t.Context())
		cancel()
		_ = h.queue.Stop(hurry) // returns an error, because handlers were cancelled
		other := node(t, d, options{node: "two", at: h.clock, rail: h.operator})
		other.Quiet()
		other.Pass(noBindPause)
		h.wantStatus(c, "2000 submitted")
		if n := len(h.operator.All()); n != 2_000 {
			t.Errorf("%d messages left for 2000", n)
		}
		h.sound()
	})
}

// For each COMMIT in turn its answer is lost, and for each exchange the connection.
func TestDeliver_lostCommitAnswer(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		h := open(t, d, options{credits: 100_000})
		h.operator.Script(func(n int, s provider.Segment) provider.Outcome {
			switch s.To[len(s.To)-1] {
			case '3':
				return smstest.Refused
			case '4':
				return smstest.Silence
			case '5':
				if n == 1 {
					return smstest.Throttled
				}
			}
			return h.operator.Accept()
		})
		want := 0
		for _, boundary := range []db.Boundary{db.BoundaryCommit, db.BoundaryExchange} {
			for _, fault := range []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict} {
				for nth := 1; nth <= 6; nth++ {
					for _, size := range []int{SmallSize, 110} {
						f.At(boundary, nth, fault)
						c, err := h.send(fmt.Sprint("hello ", boundary, fault, nth, size), smstest.Numbers(size)...)
						if err != nil {
							t.Fatal(err)
						}
						want += size
						h.work(func() bool { return h.status(c) == CampaignDone })
					}
				}
			}
		}
		first := 0
		for _, s := range h.operator.All() {
			if s.Outcome.Class != provider.NotSent {
				first++
			}
		}
		if first != want {
			t.Errorf("%d messages left for %d", first, want)
		}
		h.sound()
	})
}

func TestDeliver_databaseDownAtAnswer(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		h := open(t, d, options{credits: 1_000})
		away := 0
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			if s.To == "233240000099" { // the last message of the slice: the answers are not stored yet
				f.Decide(func(db.Boundary) db.Fault {
					if away++; away < 30 {
						return db.FaultBefore
					}
					return db.FaultNone
				})
			}
			return h.operator.Accept()
		})
		c, err := h.send("hello", smstest.Numbers(300)...)
		if err != nil {
			t.Fatal(err)
		}
		h.work(func() bool {
			var left int64
			_, err := d.ReadOne(t.Context(), "SELECT left_over FROM campaigns WHERE id = $1", []any{c.ID}, &left)
			return err == nil && left == 0 // the database may still be unreachable
		})
		h.wantStatus(c, "300 submitted") // no message is unknown, because the operator's answers were stored
		if n := len(h.operator.All()); n != 300 {
			t.Errorf("%d messages left for 300", n)
		}
		h.sound()
	})
}

func TestDeliver_byNodeWithConnection(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 2_000})
		h.operator.SetReady(provider.ErrElsewhere)
		other := node(t, d, options{node: "two", at: h.clock})
		small, large := h.mustSend("hello", "0241234567"), h.mustSend("hello", smstest.Numbers(1_200)...)
		password := h.mustAccept(h.otp("233241234567", otp.DefaultExpiry))
		clocktest.Await(t, "1,202 messages to be handed over", func() bool { return len(other.operator.All()) >= 1_202 })
		other.Quiet()
		h.wantStatus(small, "1 submitted")
		h.wantStatus(large, "1200 submitted")
		if n := len(h.operator.All()); n != 0 {
			t.Errorf("%d messages left by the node without a connection", n)
		}
		code := ""
		for _, s := range other.operator.All() {
			if after, found := strings.CutPrefix(s.Text, "Code "); found {
				code = after
			}
		}
		if _, err := h.codes.Verify(t.Context(), idempotency.Caller{Tenant: "shop"}, password.ID, "233241234567", code); err != nil {
			t.Errorf("the code %s that the other node wrote is refused: %v", code, err)
		}
		h.sound()
	})
}

func TestDeliver_lostConnectionPassesWork(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 2_000})
		h.operator.Script(func(int, provider.Segment) provider.Outcome {
			o := h.operator.Accept()
			if h.operator.Last == 50 {
				h.operator.SetReady(provider.ErrElsewhere)
			}
			return o
		})
		c := h.mustSend("hello", smstest.Numbers(1_200)...)
		if n := len(h.operator.All()); n == 0 || n == 1_200 {
			t.Fatalf("%d messages left before the connection was lost", n)
		}
		other := node(t, d, options{node: "two", at: h.clock})
		other.Quiet()
		h.wantStatus(c, "1200 submitted")
		if n := len(h.operator.All()) + len(other.operator.All()); n != 1_200 {
			t.Errorf("%d messages left for 1200", n)
		}
		h.sound()
	})
}

func TestDeliver_otpOvertakesCampaign(t *testing.T) {
	h := open(t, dbtest.Open(t, db.SQLite), options{credits: 100_000})
	goOn, sent := make(chan struct{}), make(chan struct{})
	// The operator answers no submit of a campaign.
	blocking := &blockingRail{otp: sent, goOn: goOn}
	h2 := nodeWith(t, h, blocking)
	for range bulkWorkers + 1 { // each campaign keeps one worker busy
		if _, err := h2.send("hello", smstest.Numbers(SmallSize+1)...); err != nil {
			t.Fatal(err)
		}
	}
	h2.mustAccept(h2.otp("233501234567", otp.DefaultExpiry))
	select {
	case <-sent:
	case <-time.After(smstest.Patience):
		t.Error("the one-time password waits behind the campaign")
	}
	close(goOn)
	h2.Quiet()
	h2.sound()
}

// blockingRail blocks every submit until goOn is closed, except those to one number.
type blockingRail struct {
	otp, goOn chan struct{}
	mu        sync.Mutex
	n         int
}

func (b *blockingRail) Whole(string, msisdn.MSISDN) bool { return false }

func (b *blockingRail) Ready(msisdn.Network) error { return nil }

func (b *blockingRail) Submit(_ context.Context, s provider.Segment, done func(provider.Outcome)) {
	if s.To == "233501234567" {
		close(b.otp)
	} else {
		<-b.goOn
	}
	b.mu.Lock()
	b.n++
	id := fmt.Sprint("b", b.n)
	b.mu.Unlock()
	done(provider.Outcome{Class: provider.Accepted, UpstreamID: id})
}

func TestStep_oldTurnIsRefused(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		for _, size := range []int{1, SmallSize + 1} { // the turn is in the campaign's row or in the chunk's row
			oldTurn(t, d, size)
		}
	})
}

func oldTurn(t *testing.T, d *db.DB, size int) {
	name := fmt.Sprint("shop-", size)
	h := node(t, d, options{node: name})
	h.customer(name, 100)
	h.operator.SetReady(provider.ErrElsewhere)
	first, second := h.mustSend("hello", smstest.Numbers(size)...), h.mustSend("hello", smstest.Numbers(size)...)
	read := func(c Campaign) *work {
		t.Helper()
		var w *work
		err := d.Read(t.Context(), func(tx *db.Tx) (err error) {
			w, err = h.runner.owner.readWork(tx, chunkPayload{1, c.Tenant, c.ID, 0, size <= SmallSize}, "")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	mark := func(w *work) *step {
		return &step{job: &chunkJob{id: "none", left: 1}, work: w, turn: w.turn, next: newTurn(), claim: w.claim(h.clock.Now(), sliceSize), claimedAt: h.clock.Now()}
	}
	here, there, other := read(first), read(first), read(second)
	mine := mark(here)
	if v, err := h.runner.steps.advance(t.Context(), []*step{mine}); err != nil || v[0].Err != nil {
		t.Fatal(v, err)
	}
	// One batch has a step of an earlier owner and a step of the present owner.
	theirs := mark(other)
	v, err := h.runner.steps.advance(t.Context(), []*step{mark(there), theirs})
	if err != nil || !errors.Is(v[0].Err, errTakenOver) || v[1].Err != nil {
		t.Errorf("an old turn: %v, %v", v, err)
	}
	// If a step is repeated after a lost answer, the repetition changes nothing.
	if v, err := h.runner.steps.advance(t.Context(), []*step{mine}); err != nil || v[0].Err != nil {
		t.Errorf("the same step again: %v, %v", v, err)
	}
	begun := "SELECT CAST(coalesce(sum(begun), 0) AS INTEGER) FROM chunks WHERE tenant = $1"
	if size <= SmallSize {
		begun = "SELECT CAST(coalesce(sum(recipients), 0) AS INTEGER) FROM campaigns WHERE tenant = $1 AND turn > 0"
	}
	if n := h.Count(begun, name); n != int64(2*size) {
		t.Errorf("%d messages are marked, expected %d", n, 2*size)
	}
	// The last step of a campaign does not lock the row before its write. A last step with an old turn is still
	// refused, and a valid step of the same batch is committed. Its repetition changes nothing.
	end := &step{job: &chunkJob{id: "none", left: 1}, work: other, turn: theirs.next, next: newTurn(), last: true}
	for place := range size {
		submitted := other.message(place, StatusSubmitted, h.clock.Now())
		submitted.Accepted = 1
		end.results = append(end.results, result{message: submitted})
	}
	stale := &step{job: &chunkJob{id: "none", left: 1}, work: there, turn: there.turn, next: newTurn(), last: true}
	if v, err = h.runner.steps.advance(t.Context(), []*step{stale, end}); err != nil || !errors.Is(v[0].Err, errTakenOver) || v[1].Err != nil {
		t.Errorf("the end of an old turn: %v, %v", v, err)
	}
	if v, err = h.runner.steps.advance(t.Context(), []*step{end}); err != nil || v[0].Err != nil {
		t.Errorf("the same end again: %v, %v", v, err)
	}
	h.wantStatus(second, fmt.Sprint(size, " submitted"))
	if s := h.status(second); s != CampaignDone {
		t.Errorf("the campaign is %s", s)
	}
	h.sound()
}
