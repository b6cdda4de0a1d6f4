package payments

import (
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
)

// A work is what this node remembers of an open payment between the runs of its
// job. All of it may be lost: the row says what must not be forgotten. Only one
// run of the job uses it at a time; rail, asking and reply alone are for others.
type work struct {
	pay    *Payment // nil while it is packed, between two runs
	packed packed
	standing
	since   time.Time // the first POST that could not be sent
	tried   []string  // rails of earlier attempts
	resends int       // POSTs that could not be sent so far
	taken   bool      // it stands where the row says: another process may have begun with it
	// searched: in a recovery no rail knew the payment, or one has it and it was adopted.
	searched bool

	asks     int // questions asked by the schedule
	nextAsk  time.Time
	lastHint time.Time // when a hint last moved a question forward

	// decided is a final word that could not be written down yet.
	decided *settlement

	// For the queue, which reads them at any time.
	tenant string
	rail   string      // at the start
	asking atomic.Bool // the next run asks

	reply atomic.Pointer[reply] // nil: nobody waits, or the answer was given
}

// A reply is what the request that waits for a submission hears of it.
type reply struct {
	waiter  atomic.Int32  // who may still speak to the request
	given   chan struct{} // closed when there is an answer
	refusal *Payment      // set before given is closed where the provider refused
}

// The states of waiter: the request waits, it went with what it had, or it is
// to be told of a refusal that is being written down.
const (
	waiterThere int32 = iota
	waiterGone
	waiterTold
)

// newWork begins with a payment that was not sent.
func newWork(p Payment) *work {
	return &work{pay: &p, standing: standing{stage: stageUnsent}, tenant: p.Tenant, rail: p.Rail}
}

// awaited gives it a request that waits.
func (w *work) awaited() *reply {
	r := &reply{given: make(chan struct{})}
	w.reply.Store(r)
	return r
}

// is says what its payment is now.
func (w *work) is(p Payment) { w.pay = &p }

// answer lets the request that waits for the submission go.
func (w *work) answer() {
	if r := w.reply.Swap(nil); r != nil {
		close(r.given)
	}
}

// isAnswered says that nobody waits for the submission: the request has its answer,
// or went with what it had while the provider's call goes on.
func (w *work) isAnswered() bool {
	r := w.reply.Load()
	return r == nil || r.waiter.Load() == waiterGone
}

// left forgets an open payment whose job is not in this node's memory any more. Who
// comes to it again begins with the row.
func (p *Payments) left(job jobs.Job) {
	w := p.live.byID(job.Subject)
	if w == nil {
		return
	}
	w.answer()
	w.rise()
	p.drop(*w.pay)
}

// rest leaves a work until its next run.
func (w *work) rest() { w.packed, w.pay = pack(w.pay), nil }

// rise begins a run of it.
func (w *work) rise() {
	if w.pay == nil {
		w.packed, w.pay = "", w.packed.unpack()
	}
}

// live are the open payments that this node works on.
type live struct {
	mu          sync.Mutex
	ids         map[string]*work
	byReference map[string]string // ids
	asked       askedFor
}

func (l *live) init() {
	l.ids, l.byReference = map[string]*work{}, map[string]string{}
}

// enter puts a payment's first work, and answers the one that there is: its job may be
// found in the table and run before the transaction that accepted it hears of its COMMIT.
func (l *live) enter(w *work) *work {
	l.mu.Lock()
	defer l.mu.Unlock()
	if there := l.ids[w.pay.ID]; there != nil {
		return there
	}
	l.set(w)
	return w
}

// accepted puts the work of a payment that is committed. Where somebody works on it already
// the request that waits goes with what it has.
func (l *live) accepted(w *work) {
	if l.enter(w) != w {
		w.answer()
	}
}

func (l *live) put(w *work) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(w)
}

func (l *live) set(w *work) {
	l.ids[w.pay.ID] = w
	l.byReference[w.pay.ProviderReference] = w.pay.ID
	l.byReference[w.pay.AttemptReference] = w.pay.ID
}

func (l *live) drop(p Payment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ids, p.ID)
	delete(l.byReference, p.ProviderReference)
	delete(l.byReference, p.AttemptReference)
}

// drop forgets a payment that is final, or that another node follows now.
func (p *Payments) drop(pay Payment) {
	p.live.drop(pay)
	p.questions.forget(pay)
}

func (l *live) byID(id string) *work {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids[id]
}

// known finds the id of the open payment that a provider calls reference.
func (l *live) known(reference string) (id string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, ok = l.byReference[reference]
	return id, ok
}

// jobKind is the kind of the one job that an open payment has. Its id and its
// subject are the payment's.
const jobKind = "payment"

// How many payments a node works on at once, and how many of one rail it sends
// and asks about. A rail that does not answer leaves room for the others, and
// questions that it does not answer leave room for what is to be sent.
const (
	workers      = 1024
	sendsPerRail = 384
	asksPerRail  = 128
)

// A payload is what a job's row says; the rest is in the payment's.
type payload struct {
	Version int    `json:"v"`
	Tenant  string `json:"tenant"`
	Kind    Kind   `json:"kind"`
	Rail    string `json:"rail"`
	At      int64  `json:"at"` // microseconds: when the payment opened
}

func payloadOf(p Payment, at time.Time) json.RawMessage {
	b, err := json.Marshal(payload{Version: 1, Tenant: p.Tenant, Kind: p.Kind, Rail: p.Rail, At: db.Micros(at)})
	if err != nil {
		panic("payments: a payload of strings does not encode: " + err.Error())
	}
	return b
}

// asking is what the line of a rail's questions has behind the rail's name.
const asking = " asking"

// perLine is how many jobs of one line run at once.
func perLine(line string) int {
	if strings.HasSuffix(line, asking) {
		return asksPerRail
	}
	return sendsPerRail
}

// spareTurns is the part of what a rail is sent at once that one tenant leaves to the
// others: a burst of one customer's airtime, however slow the rail, is in nobody's way.
const spareTurns = 8

// perTurn is how many jobs of one line a tenant has at once.
func perTurn(line string) int {
	most := perLine(line)
	if strings.HasSuffix(line, asking) {
		return most // a question is short: taking turns is enough
	}
	return most - most/spareTurns
}

// jobTenant says whose a job is. The work of one that was adopted does not know it.
func jobTenant(j jobs.Job) string {
	if w, ok := j.Memo.(*work); ok {
		return w.tenant
	}
	var p payload
	if err := json.Unmarshal(j.Payload, &p); err != nil {
		return ""
	}
	return p.Tenant
}

// jobLine sorts jobs by rail, questions apart.
func jobLine(j jobs.Job) string {
	if w, ok := j.Memo.(*work); ok {
		if w.asking.Load() {
			return w.rail + asking
		}
		return w.rail
	}
	var p payload
	if err := json.Unmarshal(j.Payload, &p); err != nil {
		return ""
	}
	return p.Rail
}
