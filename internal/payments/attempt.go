package payments

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
)

// cacheTime is how long after acceptance a payment's row is cached between runs.
const cacheTime = 4 * time.Second

// An attempt is the memory of this node about an open payment between the runs of its job. All of it may be lost: the
// row stores what must survive. Only one run uses an attempt at a time; other goroutines use only rail, queryNext and
// reply.
type attempt struct {
	id         string
	references [2]string     // keys in live; under its lock
	holder     book.RailName // the rail whose callbacks may be about the payment; under the lock of live
	cachedRow  *book.Payment // last row written or read, for the next run; nil: read it
	// number and submissions are the values in the row when this process last wrote or read it. If the row now has
	// other values, another process has changed it.
	number, submissions int
	sendingAt           time.Time
	observed
	// upstreamID is the provider's id, from an answer that did not settle the payment.
	upstreamID string

	since     moment   // time of the first failed submission
	tried     []string // rails of earlier attempts
	resends   int      // number of failed submissions
	takenOver bool     // the attempt was built from the row: another process may have started it
	// searched is set in a recovery after a search at all rails. Then no rail has the payment, or it was
	// adopted.
	searched bool

	queries   int // scheduled status queries so far
	nextQuery moment
	lastHint  moment // when a hint last triggered an early query
	// submittableAt is when this process stored that a submission may start. It is zero if another process stored it.
	submittableAt moment

	// unwritten is a settlement whose write failed and is retried.
	unwritten *book.Settlement

	// The queue reads the next three fields at any time.
	tenant    string
	rail      string      // the first rail, which may differ from the row's rail later
	queryNext atomic.Bool // the next run queries the status

	reply atomic.Pointer[reply] // nil if no request waits or it was answered

	begun bool // the payment is committed, so its job may run; under the lock of live
}

// A reply passes the result of a submission to the waiting request.
type reply struct {
	waiter  atomic.Int32  // state of the request
	given   chan struct{} // closed when the result is available
	refusal *book.Payment // set before given is closed if the provider refused
}

// States of the waiting request: it waits, it returned without a result, or it waits while a refusal is stored.
const (
	requestWaits int32 = iota
	requestGone
	requestRefused
)

// newAttempt returns the attempt of a payment that was not sent. written is when this process wrote its row.
func newAttempt(row book.Payment, written moment) *attempt {
	a := &attempt{observed: observed{stage: stageUnsent}, tenant: row.Tenant, rail: row.Rail, submittableAt: written}
	a.begins(row)
	return a
}

// openedAttempt returns the attempt of an open payment for which no client request waits. An adopted payment is polled
// instead of sent.
func openedAttempt(row book.Payment, c *clock.Clock) *attempt {
	wall, now := readingOf(c)
	a := newAttempt(row, written(row, wall, now))
	if !row.SendingAt.IsZero() {
		a.stage, a.arrived, a.sentAt = stageMaybeSent, 1, now
	}
	return a
}

// written returns when this process wrote the row. It returns zero if that is longer ago than leaveTime. The first
// submission then stores SendingAt before it starts.
func written(row book.Payment, wall time.Time, now moment) moment {
	age := wall.Sub(row.CreatedAt)
	if age < 0 || age >= leaveTime {
		return 0
	}
	return now.Add(-age)
}

// begins stores the row for the first run.
func (a *attempt) begins(row book.Payment) {
	a.id, a.references, a.holder = row.ID, referencesOf(row), holderOf(row)
	a.cachedRow = &row
	a.saw(row)
}

// saw stores the attempt and submission numbers of a row.
func (a *attempt) saw(row book.Payment) {
	a.number, a.submissions, a.sendingAt = row.Attempt, row.Submissions, row.SendingAt
}

// isOf reports whether the row still has the attempt and submission numbers that this process saw last.
func (a *attempt) isOf(row book.Payment) bool {
	return row.Attempt == a.number && row.Submissions == a.submissions && row.SendingAt.Equal(a.sendingAt)
}

// cacheRow caches the row for the next run, but only during cacheTime. Most payments end within seconds, and the rows of
// older payments would fill the memory.
func (a *attempt) cacheRow(row book.Payment, now moment) {
	if a.writtenWithin(cacheTime, now) {
		a.cachedRow = &row
	}
}

// referencesOf returns the references that a provider may use: the ProviderReference of the payment and of its
// attempt.
func referencesOf(row book.Payment) [2]string {
	return [2]string{row.ProviderReference, row.AttemptReference}
}

func holderOf(row book.Payment) book.RailName {
	return book.RailName{Provider: row.Rail, Mode: row.Mode}
}

// hintedTooSoon returns how long a run that a hint started must wait before it queries. Hints cause at most one query
// in hintTime.
func (a *attempt) hintedTooSoon(now moment) time.Duration {
	if a.stage == stageUnsent || now >= a.nextQuery {
		return 0
	}
	if next := a.lastHint.Add(hintTime); !a.lastHint.IsZero() && now < next {
		return min(next.Sub(now), a.nextQuery.Sub(now))
	}
	a.lastHint = now
	return 0
}

// writtenWithin reports whether this process stored less than d ago that a submission may start.
func (a *attempt) writtenWithin(d time.Duration, now moment) bool {
	return !a.submittableAt.IsZero() && now.Sub(a.submittableAt) < d
}

// awaited adds a reply for a waiting request and returns it.
func (a *attempt) awaited() *reply {
	r := &reply{given: make(chan struct{})}
	a.reply.Store(r)
	return r
}

// answer releases the request that waits for the submission.
func (a *attempt) answer() {
	if r := a.reply.Swap(nil); r != nil {
		close(r.given)
	}
}

// isAnswered reports that no request waits for the submission: it was answered, or it timed out during the provider's
// call.
func (a *attempt) isAnswered() bool {
	r := a.reply.Load()
	return r == nil || r.waiter.Load() == requestGone
}

// live are the open payments that this node follows.
type live struct {
	mu          sync.Mutex
	ids         map[string]*attempt
	byReference map[string]string // ids
}

func (l *live) init() {
	l.ids, l.byReference = map[string]*attempt{}, map[string]string{}
}

// expect adds the attempt of a payment that is about to be committed. Until begin is called, only begin and enter
// find the attempt.
func (l *live) expect(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids[a.id] = a
}

// unexpect removes an attempt whose payment was not committed or has no job.
func (l *live) unexpect(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids[a.id] == a && !a.begun {
		delete(l.ids, a.id)
	}
}

// begin starts the attempt of a committed payment. It uses the expected attempt, or else the result of made. It does
// nothing if a run from the job table has already started the attempt.
func (l *live) begin(row book.Payment, made func() *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.ids[row.ID]
	if a == nil {
		a = made()
	}
	if !a.begun {
		a.begins(row)
		l.setLocked(a)
	}
}

// enter adds an attempt that was built from a row, or returns the attempt that was started before. It releases the
// request that waits for an expected attempt, because the job from the table started before the commit returned.
func (l *live) enter(a *attempt) *attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	there := l.ids[a.id]
	if there != nil && there.begun {
		return there
	}
	if there != nil {
		there.answer()
	}
	l.setLocked(a)
	return a
}

// put indexes a payment by the references of its row.
func (l *live) put(a *attempt, row book.Payment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropLocked(a)
	a.references, a.holder = referencesOf(row), holderOf(row)
	l.setLocked(a)
}

// moved stores the new rail of a rerouted payment. From then on only callbacks of this rail bring its queries
// forward.
func (l *live) moved(a *attempt, row book.Payment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.holder = holderOf(row)
}

func (l *live) setLocked(a *attempt) {
	l.ids[a.id], a.begun = a, true
	for _, reference := range a.references {
		l.byReference[reference] = a.id
	}
}

func (l *live) drop(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.ids[id]; a != nil {
		l.dropLocked(a)
	}
}

func (l *live) dropLocked(a *attempt) {
	delete(l.ids, a.id)
	for _, reference := range a.references {
		if l.byReference[reference] == a.id {
			delete(l.byReference, reference)
		}
	}
}

// byID returns the started attempt of an open payment, or nil.
func (l *live) byID(id string) *attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.ids[id]; a != nil && a.begun {
		return a
	}
	return nil
}

// find returns the id of the open payment with this reference at the rail that has it.
func (l *live) find(reference string, by book.RailName) (id string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, ok = l.byReference[reference]
	a := l.ids[id]
	return id, ok && a != nil && a.holder == by
}
