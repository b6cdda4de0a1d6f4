package payments

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
)

// keptTime is how long after its acceptance a payment's row is kept between runs.
const keptTime = 4 * time.Second

// An attempt is an open payment as this node remembers it between the runs of its
// job. All of it may be lost: the row says what must not be forgotten. Only one run of the job uses it at a time; rail,
// asking and reply alone are for others.
type attempt struct {
	id         string
	references [2]string     // by which live finds it; under the lock of live
	holder     book.RailName // whose words about it count; under the lock of live
	kept       *book.Payment // the row as it was last written or read, for the next run; nil: it is read
	// The submission that this process made or read last. A row with another one was changed by another process.
	number, posts int
	sendingAt     time.Time
	observed
	// upstreamID is the provider's own id, from an answer that has settled nothing.
	upstreamID string

	since   moment   // the first submission that could not be sent
	tried   []string // rails of earlier attempts
	resends int      // submissions that could not be sent so far
	taken   bool     // it stands where the row says: another process may have begun with it
	// searched: in a recovery no rail knew the payment, or one has it and it was adopted.
	searched bool

	asks     int // questions asked by the schedule
	nextAsk  moment
	lastHint moment // when a hint last moved a question forward
	// mayLeave is when this process wrote that a submission may begin. It is zero where another process did.
	mayLeave moment

	// unwritten is a settlement that could not be written down yet.
	unwritten *book.Settlement

	// For the queue, which reads them at any time.
	tenant string
	rail   string      // at the start
	asking atomic.Bool // the next run asks

	reply atomic.Pointer[reply] // nil: no request waits, or the answer was given

	begun bool // the payment is committed, and its job may run; under the lock of live
}

// A reply is what the request that waits for a submission hears of it.
type reply struct {
	waiter  atomic.Int32  // who may still speak to the request
	given   chan struct{} // closed when there is an answer
	refusal *book.Payment // set before given is closed where the provider refused
}

// The states of waiter: the request waits, it went with what it had, or it is
// to be told of a refusal that is being written down.
const (
	waiterThere int32 = iota
	waiterGone
	waiterTold
)

// newAttempt begins with a payment that was not sent. written is the moment at which this process wrote its row.
func newAttempt(row book.Payment, written moment) *attempt {
	a := &attempt{observed: observed{stage: stageUnsent}, tenant: row.Tenant, rail: row.Rail, mayLeave: written}
	a.begins(row)
	return a
}

// openedAttempt begins with a payment that opens without a request of its own. One that a provider has already,
// adopted in a recovery, is asked about.
func openedAttempt(row book.Payment, c *clock.Clock) *attempt {
	wall, now := readingOf(c)
	a := newAttempt(row, written(row, wall, now))
	if !row.SendingAt.IsZero() {
		a.stage, a.arrived, a.sentAt = stageUnsure, 1, now
	}
	return a
}

// written returns the moment at which a row of this process was accepted. The zero moment, where that is not a moment
// ago, makes the first submission write a mark.
func written(row book.Payment, wall time.Time, now moment) moment {
	age := wall.Sub(row.CreatedAt)
	if age < 0 || age >= leaveTime {
		return 0
	}
	return now.Add(-age)
}

// begins sets the row of the first run.
func (a *attempt) begins(row book.Payment) {
	a.id, a.references, a.holder = row.ID, referencesOf(row), holderOf(row)
	a.kept = &row
	a.saw(row)
}

// saw notes the submission of a row.
func (a *attempt) saw(row book.Payment) {
	a.number, a.posts, a.sendingAt = row.Attempt, row.Posts, row.SendingAt
}

// isOf reports whether a row has the submission that this process knows.
func (a *attempt) isOf(row book.Payment) bool {
	return row.Attempt == a.number && row.Posts == a.posts && row.SendingAt.Equal(a.sendingAt)
}

// keep leaves the row to the next run. Most payments end in their first seconds,
// with a callback; older ones wait for long, and their rows would fill the memory.
func (a *attempt) keep(row book.Payment, now moment) {
	if a.writtenWithin(keptTime, now) {
		a.kept = &row
	}
}

// referencesOf is what a provider may call a payment: its ProviderReference, and its
// attempt's.
func referencesOf(row book.Payment) [2]string {
	return [2]string{row.ProviderReference, row.AttemptReference}
}

func holderOf(row book.Payment) book.RailName {
	return book.RailName{Provider: row.Rail, Mode: row.Mode}
}

// hintedTooSoon says how long a run waits that a hint has woken before the next
// question is due: a hint moves a question forward once in hintTime.
func (a *attempt) hintedTooSoon(now moment) time.Duration {
	if a.stage == stageUnsent || now >= a.nextAsk {
		return 0
	}
	if next := a.lastHint.Add(hintTime); !a.lastHint.IsZero() && now < next {
		return min(next.Sub(now), a.nextAsk.Sub(now))
	}
	a.lastHint = now
	return 0
}

// writtenWithin reports whether this process wrote less than d ago that a submission may begin.
func (a *attempt) writtenWithin(d time.Duration, now moment) bool {
	return !a.mayLeave.IsZero() && now.Sub(a.mayLeave) < d
}

// awaited gives it a request that waits.
func (a *attempt) awaited() *reply {
	r := &reply{given: make(chan struct{})}
	a.reply.Store(r)
	return r
}

// answer lets the request that waits for the submission go.
func (a *attempt) answer() {
	if r := a.reply.Swap(nil); r != nil {
		close(r.given)
	}
}

// isAnswered says that no request waits for the submission: the request has its answer,
// or went with what it had while the provider's call goes on.
func (a *attempt) isAnswered() bool {
	r := a.reply.Load()
	return r == nil || r.waiter.Load() == waiterGone
}

// live are the open payments that this node works on.
type live struct {
	mu          sync.Mutex
	ids         map[string]*attempt
	byReference map[string]string // ids
}

func (l *live) init() {
	l.ids, l.byReference = map[string]*attempt{}, map[string]string{}
}

// expect puts the attempt of a payment that is about to be committed. Only begin finds it.
func (l *live) expect(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids[a.id] = a
}

// unexpect removes an attempt whose payment was not committed, or has no job.
func (l *live) unexpect(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids[a.id] == a && !a.begun {
		delete(l.ids, a.id)
	}
}

// begin begins the attempt of a payment that is committed: the expected one, else the one that made returns. It does nothing
// where the job of the payment was found in the table, and has begun before.
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

// enter puts an attempt that is known from its row alone, and returns the one that has begun before. The request
// of an expected one goes with what it has: its job was found in the table before the transaction that accepted the
// payment returned.
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

// put finds a payment by the references of its row from now on.
func (l *live) put(a *attempt, row book.Payment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropLocked(a)
	a.references, a.holder = referencesOf(row), holderOf(row)
	l.setLocked(a)
}

// moved says that a payment was given to the rail of its row.
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

// byID returns the attempt of an open payment that has begun; nil: there is none.
func (l *live) byID(id string) *attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.ids[id]; a != nil && a.begun {
		return a
	}
	return nil
}

// known finds the id of the open payment that a provider, which holds it, calls reference.
func (l *live) known(reference string, by book.RailName) (id string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, ok = l.byReference[reference]
	a := l.ids[id]
	return id, ok && a != nil && a.holder == by
}
