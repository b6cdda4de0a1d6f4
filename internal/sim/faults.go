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
// requests that move money, the third are of a provider that contradicts itself
// (see Contradictions), the fourth on status queries, the fifth on offers, the
// last at the message centre, where a request is a bind or a submit_sm and a
// callback is a receipt.
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

	// RefuseAfter: the movement is in the book and goes its way, and the answer
	// is a refusal; Answer says which one.
	RefuseAfter FaultKind = "refuse_after"
	// SuccessFailedSuccess: succeeds, is failed Delay later, and a success again
	// Delay after that. Each word is the book's, and called back.
	SuccessFailedSuccess FaultKind = "success_failed_success"
	// FailedSuccessFailed: fails, is a success Delay later, and failed again
	// Delay after that.
	FailedSuccessFailed FaultKind = "failed_success_failed"
	// StatusHang: the question gets no answer, and the connection stays until
	// the client gives up, or for Delay.
	StatusHang FaultKind = "status_hang"
	// StatusLag: what is younger than Delay is answered as not known.
	StatusLag FaultKind = "status_lag"
	// StatusAnswer: the question is answered with Answer, whatever the book has. It
	// may name an operation that looks something up, such as wallet_name.
	StatusAnswer FaultKind = "status_answer"
	// StatusOther: the answer speaks of another's payment: another reference,
	// party and amount.
	StatusOther FaultKind = "status_other"
	// StatusUnfulfilled: a sale that succeeded reads paid and not fulfilled.
	StatusUnfulfilled FaultKind = "status_unfulfilled"

	// StatusNotFound: not known, as of a provider that forgets.
	StatusNotFound    FaultKind = "status_not_found"
	StatusWrongAmount FaultKind = "status_wrong_amount" // the echo is another payment's

	OffersChange FaultKind = "offers_change" // a number is offered other packages, at other prices

	Silent     FaultKind = "silent"      // done, never answered, the connection stays
	QueueFull  FaultKind = "queue_full"  // ESME_RMSGQFUL, nothing done
	Unbind     FaultKind = "unbind"      // done and answered, then the message centre unbinds
	OddReceipt FaultKind = "odd_receipt" // over-long fields, odd dates, other spellings
)

var anyFaults = []FaultKind{AnswerLost, RequestLost, Slow, ErrorBefore, ErrorAfter, Malformed, Outage, Throttle, Unauthorized, Forbidden}
var moveFaults = []FaultKind{CallbackDuplicate, CallbackEarly, CallbackLate, CallbackMissing, CallbackForged, CallbackStale,
	Reverse, FailLater, RefuseOutright, Stuck, StatementOmit, StatementOff, RefuseAfter, SuccessFailedSuccess, FailedSuccessFailed}
var statusFaults = []FaultKind{StatusNotFound, StatusWrongAmount, StatusHang, StatusLag, StatusAnswer, StatusOther, StatusUnfulfilled}
var offersFaults = []FaultKind{OffersChange}
var smscFaults = []FaultKind{Silent, QueueFull, Unbind, OddReceipt}

// moneyOnly are those that mean nothing to a message.
var moneyOnly = slices.Concat(statusFaults, []FaultKind{Reverse, StatementOmit, StatementOff, OffersChange, RefuseAfter, SuccessFailedSuccess, FailedSuccessFailed})

// Contradictions lists the faults of a provider that says one thing and does
// another: no word of it alone is worth money.
func Contradictions() []FaultKind {
	return []FaultKind{RefuseAfter, SuccessFailedSuccess, FailedSuccessFailed, Reverse,
		StatusNotFound, StatusHang, StatusLag, StatusAnswer, StatusOther, StatusWrongAmount, StatusUnfulfilled}
}

// RefusalAnswers gives the Answers worth trying for refuse and refuse_after at a
// provider: every code that it documents, those that it does not, what gateways
// say, and refusals under HTTP 500.
func RefusalAnswers(provider string) []string {
	common := []string{"", "400:html", "400:empty", "404:html", "404:empty", "405:html", "413:html", "200:9999", "400:9999", "500:empty", "502:html"}
	switch provider {
	case MTN:
		return append(common, "400:NOT_ALLOWED", "500:NOT_ALLOWED", "NOT_ALLOWED_TARGET_ENVIRONMENT", "500:NOT_ALLOWED_TARGET_ENVIRONMENT",
			"INVALID_CALLBACK_URL_HOST", "INVALID_CURRENCY", "500:INVALID_CURRENCY", "PAYER_NOT_FOUND", "500:PAYER_NOT_FOUND", "PAYEE_NOT_FOUND",
			"500:PAYEE_NOT_FOUND", "NOT_ENOUGH_FUNDS", "500:NOT_ENOUGH_FUNDS", "PAYER_LIMIT_REACHED", "PAYEE_NOT_ALLOWED_TO_RECEIVE",
			"404:RESOURCE_NOT_FOUND", "500:INTERNAL_PROCESSING_ERROR", "503:SERVICE_UNAVAILABLE", "409:CONFLICT")
	case Hubtel:
		return append(common, "2000", "2001", "2050", "2051", "2200", "2201", "3050", "4000", "400:4000", "4010", "400:4010", "4070", "4075", "4101",
			"400:4101", "4103", "4105", "5000", "400:5000", "0005", "500:2001", "500:4075")
	}
	return common
}

// StatusAnswers gives the Answers worth trying for status_answer at a provider.
// None of them says that a reference is not known, or speaks of a payment.
func StatusAnswers(provider string) []string {
	common := []string{"404:html", "404:empty", "200:html", "200:empty", "200:9999", "400:empty", "500:empty", "503:html"}
	switch provider {
	case MTN:
		return append(common, "500:RESOURCE_NOT_FOUND", "400:PAYER_NOT_FOUND", "500:PAYEE_NOT_FOUND", "404:NOT_ALLOWED")
	case Hubtel:
		return append(common, "200:2001", "200:0000", "200:0005", "200:5000", "200:4101", "404:4004", "400:4000", "500:3000")
	}
	return common
}

// answered are the faults that take an Answer.
var answered = []FaultKind{RefuseAfter, RefuseOutright, StatusAnswer}

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
	// Delay of what is slow, late or lags, and between the words of who changes
	// them; zero: 10 s, and an hour for status_hang.
	Delay time.Duration
	// Answer of refuse, refuse_after and status_answer, as STATUS:WHAT or WHAT:
	// an HTTP status with a code in the provider's own envelope, html, or empty,
	// such as 3050, 400:html, 404:empty or 500:NOT_ENOUGH_FUNDS. Without one it
	// is the provider's ordinary refusal; of status_answer it is 404:html.
	Answer string
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
	if f.Answer != "" && !slices.Contains(answered, f.Kind) {
		return problem.Field("answer", fmt.Sprintf("belongs to %v", answered))
	}
	if _, _, ok := splitAnswer(f.Answer); !ok {
		return problem.Field("answer", "must be a code, html or empty, with an HTTP status before it or not, such as 3050 or 400:html")
	}
	switch {
	case f.Delay > 0:
	case f.Kind == StatusHang:
		f.Delay = time.Hour
	default:
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

// hit is the set of faults that strike one request, one of each kind.
type hit []Fault

func (h hit) has(k FaultKind) bool {
	return slices.ContainsFunc(h, func(f Fault) bool { return f.Kind == k })
}

// of gives the fault of a kind; the zero one when it does not strike.
func (h hit) of(k FaultKind) Fault {
	for _, f := range h {
		if f.Kind == k {
			return f
		}
	}
	return Fault{}
}

// next takes the faults that strike the next request of this operation, one of
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
		h = append(h, a.Fault)
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
	status := strings.HasSuffix(op, "_status") || a.Kind == StatusAnswer && a.Operation == op && !moves(op)
	if slices.Contains(moveFaults, a.Kind) && !moves(op) || slices.Contains(statusFaults, a.Kind) && !status ||
		slices.Contains(offersFaults, a.Kind) && op != OpOffers {
		return false
	}
	switch a.Operation {
	case "*", op:
		return true
	case "":
		switch a.Kind {
		case Outage, Throttle, Unauthorized, Forbidden, OffersChange:
			return true
		}
		return status && slices.Contains(statusFaults, a.Kind) || moves(op)
	}
	return false
}

// strikesSMSC is strikes at the message centre. A fault that takes the service away acts on binds
// and submits, a lack of rights on binds, every other one on submits.
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
