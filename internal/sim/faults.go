package sim

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/clock"
)

// FaultKind names one way in which a provider misbehaves.
type FaultKind string

// The faults. The first group affects any request, the second requests that move money. The third group makes a
// provider contradict itself (see Contradictions). The fourth affects status queries, the fifth offers. The last
// affects the message centre, where a request is a bind or a submit_sm, and a callback is a receipt.
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

	// RefuseAfter: the book has the movement, which continues, and the response is the refusal in Answer.
	RefuseAfter FaultKind = "refuse_after"
	// SuccessFailedSuccess: succeeds, fails Delay later, and succeeds again Delay after that. The book has each
	// status, and a callback reports each.
	SuccessFailedSuccess FaultKind = "success_failed_success"
	// FailedSuccessFailed: fails, is a success Delay later, and failed again
	// Delay after that.
	FailedSuccessFailed FaultKind = "failed_success_failed"
	// StatusHang: the question gets no answer, and the connection stays until
	// the client gives up, or for Delay.
	StatusHang FaultKind = "status_hang"
	// StatusLag: a movement younger than Delay is reported as not known.
	StatusLag FaultKind = "status_lag"
	// StatusAnswer: the question is answered with Answer, whatever the book has. It
	// may name an operation that looks something up, such as wallet_name.
	StatusAnswer FaultKind = "status_answer"
	// StatusOther: the response is about another payment, with another reference, party and amount.
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
var messageFaults = []FaultKind{Silent, QueueFull, Unbind, OddReceipt}

// moneyOnly are those that mean nothing to a message.
var moneyOnly = slices.Concat(statusFaults, []FaultKind{Reverse, StatementOmit, StatementOff, OffersChange, RefuseAfter, SuccessFailedSuccess, FailedSuccessFailed})

// Contradictions lists the faults of a provider whose reports contradict its movements. No single report of it may
// move money.
func Contradictions() []FaultKind {
	return []FaultKind{RefuseAfter, SuccessFailedSuccess, FailedSuccessFailed, Reverse,
		StatusNotFound, StatusHang, StatusLag, StatusAnswer, StatusOther, StatusWrongAmount, StatusUnfulfilled}
}

// RefusalAnswers returns Answers worth trying for refuse and refuse_after: those
// of gateways and refusals under HTTP 500, and a provider's own.
func RefusalAnswers(own ...string) []string {
	return append([]string{"", "400:html", "400:empty", "404:html", "404:empty", "405:html", "413:html", "200:9999", "400:9999", "500:empty", "502:html"}, own...)
}

// StatusAnswers returns useful Answers for status_answer: those of gateways, and the given ones of a provider. None
// of them reports an unknown reference or a payment.
func StatusAnswers(own ...string) []string {
	return append([]string{"404:html", "404:empty", "200:html", "200:empty", "200:9999", "400:empty", "500:empty", "503:html"}, own...)
}

// answered are the faults that take an Answer.
var answered = []FaultKind{RefuseAfter, RefuseOutright, StatusAnswer}

// FaultKinds lists every fault.
func FaultKinds() []FaultKind {
	return slices.Concat(anyFaults, moveFaults, statusFaults, offersFaults, messageFaults)
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
	OpRecipient      = "recipient" // of transfers: what has to be done before one
	OpVoucher        = "voucher"   // of a payer, which completes a collection
	OpBind           = "bind"      // of SMPP
	OpSubmit         = "submit"    // submit_sm
	OpText           = "text"      // a text over HTTP
	OpTextState      = "text_state"
)

var operations = []string{OpToken, OpCollect, OpCollectStatus, OpDisburse, OpDisburseStatus, OpTopUp, OpTopUpStatus,
	OpOffers, OpBundle, OpBundleStatus, OpWalletName, OpBankName, OpBalance, OpRecipient, OpVoucher, OpBind, OpSubmit, OpText, OpTextState}

// messageOps are the operations of a message centre and of providers of texts.
var messageOps = []string{OpBind, OpSubmit, OpText, OpTextState}

func moves(op string) bool {
	return op == OpCollect || op == OpDisburse || op == OpTopUp || op == OpBundle
}

// Fault is one armed fault. An empty Provider means every provider. An empty Operation means every operation of the
// kind: requests that move money, status queries for the status faults, and all requests for an outage, throttling,
// 401 and 403. "*" means every operation.
//
// The message centre is affected only by faults that name it or one of its operations. So payments and messages do
// not use up each other's faults.
type Fault struct {
	Provider  string
	Operation string
	Kind      FaultKind
	Count     int           // how many requests; zero: one, or any number while For lasts
	Every     int           // strikes every so-manieth request only; zero: each
	For       time.Duration // how long; zero: until Count is used up
	// Delay of slow, late and lagging faults, and between the changes of a status. Zero is 10 s, and an hour for
	// status_hang.
	Delay time.Duration
	// Answer of refuse, refuse_after and status_answer, as STATUS:BODY or BODY. The body is a code in the provider's
	// own envelope, html, or empty, such as 3050, 400:html, 404:empty or 500:NOT_ENOUGH_FUNDS. The default is the
	// provider's ordinary refusal, and 404:html for status_answer.
	Answer string
}

// faults is the registry of armed faults.
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

// Hit is the set of faults that strike one request, one of each kind.
type Hit []Fault

// Has reports whether a fault of a kind strikes.
func (h Hit) Has(k FaultKind) bool {
	return slices.ContainsFunc(h, func(f Fault) bool { return f.Kind == k })
}

// Of gives the fault of a kind; the zero one when it does not strike.
func (h Hit) Of(k FaultKind) Fault {
	for _, f := range h {
		if f.Kind == k {
			return f
		}
	}
	return Fault{}
}

// next takes the faults that strike the next request of this operation, one of
// each kind.
func (f *faults) next(provider, op string) Hit {
	var h Hit
	if !f.armed.Load() {
		return h
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	f.list = slices.DeleteFunc(f.list, func(a *armedFault) bool { return !a.until.IsZero() && !now.Before(a.until) })
	for _, a := range f.list {
		if a.left == 0 || !a.strikes(provider, op) || h.Has(a.Kind) {
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
	if slices.Contains(messageOps, op) {
		return a.strikesMessages(op)
	}
	if slices.Contains(messageFaults, a.Kind) {
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

// strikesMessages is strikes at a message centre. A fault that takes the service away acts on binds
// and submits, a lack of rights on binds, every other one on submits.
func (a *armedFault) strikesMessages(op string) bool {
	if a.Provider == "" && a.Operation != op && !slices.Contains(messageFaults, a.Kind) {
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
		return op == OpSubmit || op == OpText
	}
	return false
}

// Bend lets the faults of a request change what its order comes to.
func (h Hit) Bend(p *Plan) {
	for _, f := range h {
		switch k := f.Kind; k {
		case CallbackDuplicate:
			p.Twice = true
		case CallbackEarly:
			p.Early, p.Wait = true, false
		case CallbackLate:
			p.CallAfter = h.Of(k).Delay
		case CallbackMissing:
			p.NoCallback = true
		case CallbackForged:
			p.Forged = true
		case CallbackStale:
			p.Stale = true
		case Reverse:
			p.FlipAfter, p.Flips = h.Of(k).Delay, 1
		case SuccessFailedSuccess:
			p.Then, p.Reason, p.FlipAfter, p.Flips = Success, "", h.Of(k).Delay, 2
		case FailedSuccessFailed:
			p.Then, p.Reason, p.FlipAfter, p.Flips = Failed, Internal, h.Of(k).Delay, 2
		case FailLater:
			p.Then, p.Reason = Failed, Internal
		case RefuseOutright:
			p.Refuse = Refused
		case Stuck:
			p.Wait, p.Delay = true, 0
		case StatementOmit:
			p.Omit = true
		case StatementOff:
			p.Off = 1
		}
	}
}

// splitAnswer reads a fault's Answer; the status is 0 where it names none.
func splitAnswer(s string) (status int, what string, ok bool) {
	head, tail, two := strings.Cut(s, ":")
	if !two {
		return 0, s, true
	}
	status, err := strconv.Atoi(head)
	return status, tail, err == nil && status >= 200 && status <= 599 && tail != ""
}
