package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/problem"
)

// FaultKind names one way in which a provider misbehaves.
type FaultKind string

// The faults. Those of the first group act on any request, the second on
// requests that move money, the third on status queries, the fourth on offers,
// the last at the message centre, where a request is a bind or a submit_sm and
// a callback is a receipt.
const (
	AnswerLost   FaultKind = "answer_lost"  // done, then the connection drops
	RequestLost  FaultKind = "request_lost" // the connection drops, nothing done
	Slow         FaultKind = "slow"         // done, answered after Delay
	ErrorBefore  FaultKind = "error_before" // 500, nothing done
	ErrorAfter   FaultKind = "error_after"  // done, then 500
	Malformed    FaultKind = "malformed"    // done, answered with rubbish
	Outage       FaultKind = "outage"       // 503, nothing done
	Throttle     FaultKind = "throttle"     // 429, nothing done
	Unauthorized FaultKind = "unauthorized" // 401, nothing done
	Forbidden    FaultKind = "forbidden"    // 403 in HTML, nothing done

	CallbackDuplicate FaultKind = "callback_duplicate"
	CallbackEarly     FaultKind = "callback_early" // before the answer to the request
	CallbackLate      FaultKind = "callback_late"  // Delay after settling
	CallbackMissing   FaultKind = "callback_missing"
	CallbackForged    FaultKind = "callback_forged" // a lie, wrongly signed, before the true one
	CallbackStale     FaultKind = "callback_stale"  // a contradicting one follows the true one
	Reverse           FaultKind = "reverse"         // a success is taken back Delay later
	FailLater         FaultKind = "fail"            // accepted, then failed
	RefuseOutright    FaultKind = "refuse"          // an outright no
	Stuck             FaultKind = "stuck"           // stays pending until resolved by hand
	StatementOmit     FaultKind = "statement_omit"  // absent from the statement
	StatementOff      FaultKind = "statement_off"   // 0.01 more in the statement

	StatusNotFound    FaultKind = "status_not_found"    // the provider's read side lags
	StatusWrongAmount FaultKind = "status_wrong_amount" // the echo is another payment's

	OffersChange FaultKind = "offers_change" // a number is offered other packages, at other prices

	Silent     FaultKind = "silent"      // done, never answered, the connection stays
	QueueFull  FaultKind = "queue_full"  // ESME_RMSGQFUL, nothing done
	Unbind     FaultKind = "unbind"      // done and answered, then the message centre unbinds
	OddReceipt FaultKind = "odd_receipt" // over-long fields, odd dates, other spellings
)

var anyFaults = []FaultKind{AnswerLost, RequestLost, Slow, ErrorBefore, ErrorAfter, Malformed, Outage, Throttle, Unauthorized, Forbidden}
var moveFaults = []FaultKind{CallbackDuplicate, CallbackEarly, CallbackLate, CallbackMissing, CallbackForged, CallbackStale,
	Reverse, FailLater, RefuseOutright, Stuck, StatementOmit, StatementOff}
var statusFaults = []FaultKind{StatusNotFound, StatusWrongAmount}
var offersFaults = []FaultKind{OffersChange}
var smscFaults = []FaultKind{Silent, QueueFull, Unbind, OddReceipt}

// moneyOnly are those that mean nothing to a message.
var moneyOnly = []FaultKind{Reverse, StatementOmit, StatementOff, StatusNotFound, StatusWrongAmount, OffersChange}

// FaultKinds lists every fault.
func FaultKinds() []FaultKind {
	return slices.Concat(anyFaults, moveFaults, statusFaults, offersFaults, smscFaults)
}

// The operations, as faults name them.
const (
	OpToken          = "token"
	OpCollect        = "collect"
	OpCollectStatus  = "collect_status"
	OpDisburse       = "disburse"
	OpDisburseStatus = "disburse_status"
	OpTopUp          = "topup"
	OpTopUpStatus    = "topup_status"
	OpOffers         = "offers"
	OpBundle         = "bundle"
	OpBundleStatus   = "bundle_status"
	OpWalletName     = "wallet_name"
	OpBankName       = "bank_name"
	OpBalance        = "balance"
	OpBind           = "bind"   // of SMPP
	OpSubmit         = "submit" // submit_sm
)

var operations = []string{OpToken, OpCollect, OpCollectStatus, OpDisburse, OpDisburseStatus, OpTopUp, OpTopUpStatus,
	OpOffers, OpBundle, OpBundleStatus, OpWalletName, OpBankName, OpBalance, OpBind, OpSubmit}

func moves(op string) bool {
	return op == OpCollect || op == OpDisburse || op == OpTopUp || op == OpBundle
}

// Fault is one misbehaviour to come. An empty Provider means all of them. An
// empty Operation means every operation that the fault is about: requests that
// move money, status queries for the status faults, everything for an outage,
// throttling, 401 and 403. "*" means everything. The message centre is struck
// only by faults that name it or one of its operations: payments and messages
// do not use up each other's.
type Fault struct {
	Provider  string
	Operation string
	Kind      FaultKind
	Count     int           // how many requests; zero: one, or any number while For lasts
	Every     int           // strikes every so-manieth request only; zero: each
	For       time.Duration // how long; zero: until Count is used up
	Delay     time.Duration // of slow, late and reverse; zero: 10 s
}

// faults is the registry of what is to go wrong.
type faults struct {
	clock *clock.Clock
	armed atomic.Bool
	mu    sync.Mutex
	list  []*armedFault
}

type armedFault struct {
	Fault
	left  int // -1: any number
	seen  int // requests that it is about
	until time.Time
}

func newFaults(c *clock.Clock) *faults { return &faults{clock: c} }

// Inject arms a fault.
func (s *Sim) Inject(f Fault) error {
	if f.Provider != "" && f.Provider != SMSC && s.wires[f.Provider].serve == nil {
		return problem.Field("provider", "must be one of the simulated providers")
	}
	if f.Operation != "" && f.Operation != "*" && !slices.Contains(operations, f.Operation) {
		return problem.Field("operation", "must be one of "+strings.Join(operations, ", "))
	}
	if !slices.Contains(FaultKinds(), f.Kind) {
		return problem.Field("fault", fmt.Sprintf("must be one of %v", FaultKinds()))
	}
	if f.Provider == SMSC && slices.Contains(moneyOnly, f.Kind) {
		return problem.Field("fault", "means nothing at the message centre")
	}
	if f.Count < 0 || f.For < 0 || f.Delay < 0 || f.Every < 0 {
		return problem.Field("count", "must not be negative")
	}
	if f.Delay == 0 {
		f.Delay = 10 * time.Second
	}
	s.faults.arm(f)
	return nil
}

// ClearFaults disarms everything.
func (s *Sim) ClearFaults() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.list = nil
	s.faults.armed.Store(false)
}

func (f *faults) arm(fault Fault) {
	a := &armedFault{Fault: fault, left: fault.Count}
	if fault.For > 0 {
		a.until = f.clock.Now().Add(fault.For)
		if a.left == 0 {
			a.left = -1
		}
	} else if a.left == 0 {
		a.left = 1
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, a)
	f.armed.Store(true)
}

// hit is the set of faults that strike one request.
type hit struct {
	kinds []FaultKind
	delay time.Duration
}

func (h hit) has(k FaultKind) bool { return slices.Contains(h.kinds, k) }

// Next takes the faults that strike the next request of this operation, one of
// each kind.
func (f *faults) next(provider, op string) hit {
	var h hit
	if !f.armed.Load() {
		return h
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	f.list = slices.DeleteFunc(f.list, func(a *armedFault) bool { return !a.until.IsZero() && !now.Before(a.until) })
	for _, a := range f.list {
		if a.left == 0 || !a.strikes(provider, op) || h.has(a.Kind) {
			continue
		}
		if a.seen++; a.Every > 1 && a.seen%a.Every != 0 {
			continue
		}
		h.kinds = append(h.kinds, a.Kind)
		h.delay = max(h.delay, a.Delay)
		if a.left > 0 {
			a.left--
		}
	}
	f.list = slices.DeleteFunc(f.list, func(a *armedFault) bool { return a.left == 0 })
	f.armed.Store(len(f.list) > 0)
	return h
}

func (a *armedFault) strikes(provider, op string) bool {
	if a.Provider != "" && a.Provider != provider {
		return false
	}
	if provider == SMSC {
		return a.strikesSMSC(op)
	}
	if slices.Contains(smscFaults, a.Kind) {
		return false
	}
	status := strings.HasSuffix(op, "_status")
	if slices.Contains(moveFaults, a.Kind) && !moves(op) || slices.Contains(statusFaults, a.Kind) && !status ||
		slices.Contains(offersFaults, a.Kind) && op != OpOffers {
		return false
	}
	switch a.Operation {
	case "*", op:
		return true
	case "":
		switch a.Kind {
		case Outage, Throttle, Unauthorized, Forbidden, StatusNotFound, StatusWrongAmount, OffersChange:
			return true
		}
		return moves(op)
	}
	return false
}

// strikesSMSC is strikes at the message centre. What takes the service away
// acts on binds and submits, a lack of rights on binds, all else on submits.
func (a *armedFault) strikesSMSC(op string) bool {
	if a.Provider != SMSC && a.Operation != op && !slices.Contains(smscFaults, a.Kind) {
		return false
	}
	switch a.Operation {
	case "*", op:
		return true
	case "":
		switch a.Kind {
		case Outage:
			return true
		case Unauthorized, Forbidden:
			return op == OpBind
		}
		return op == OpSubmit
	}
	return false
}

// Faults lists what is armed.
func (s *Sim) Faults() []Fault {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	list := make([]Fault, len(s.faults.list))
	for i, a := range s.faults.list {
		list[i] = a.Fault
		list[i].Count = max(a.left, 0)
	}
	return list
}
