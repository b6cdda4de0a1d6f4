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

// FaultKind is one way in which a provider misbehaves.
type FaultKind string

// The faults. Those of the first group affect any request, and those of the second requests that move money. With the
// third group a provider contradicts itself (see Contradictions). The fourth group affects status queries, and the
// fifth offers. The last group affects the message centre. There, a request is a bind or a submit_sm, and a callback
// is a receipt.
const (
	AnswerLost   FaultKind = "answer_lost"  // processed, then the connection drops
	RequestLost  FaultKind = "request_lost" // the connection drops, not processed
	Slow         FaultKind = "slow"         // processed, answered after Delay
	ErrorBefore  FaultKind = "error_before" // 500, not processed
	ErrorAfter   FaultKind = "error_after"  // processed, then 500
	Malformed    FaultKind = "malformed"    // processed, answered with an unreadable response
	Outage       FaultKind = "outage"       // 503, not processed
	Throttle     FaultKind = "throttle"     // 429, not processed
	Unauthorized FaultKind = "unauthorized" // 401, not processed
	Forbidden    FaultKind = "forbidden"    // 403 in HTML, not processed

	CallbackDuplicate FaultKind = "callback_duplicate"
	CallbackEarly     FaultKind = "callback_early" // before the response to the request
	CallbackLate      FaultKind = "callback_late"  // Delay after settling
	CallbackMissing   FaultKind = "callback_missing"
	CallbackForged    FaultKind = "callback_forged" // false content and wrong signature, before the true one
	CallbackStale     FaultKind = "callback_stale"  // a contradicting one follows the true one
	Reverse           FaultKind = "reverse"         // a success is reversed after Delay
	FailLater         FaultKind = "fail"            // accepted, then failed
	RefuseOutright    FaultKind = "refuse"          // refused at once
	Stuck             FaultKind = "stuck"           // stays pending until resolved by hand
	StatementOmit     FaultKind = "statement_omit"  // absent from the statement
	StatementOff      FaultKind = "statement_off"   // 0.01 more in the statement

	// The faults below change the lines of an order in the statement, and nothing else.
	StatementTwice    FaultKind = "statement_twice"    // a second line, a minute later
	StatementFee      FaultKind = "statement_fee"      // a fee of 0.50 more
	StatementReversed FaultKind = "statement_reversed" // taken back a minute later
	StatementNextDay  FaultKind = "statement_next_day" // a minute after the next midnight
	StatementForeign  FaultKind = "statement_foreign"  // with a credit that belongs to no order
	StatementCharge   FaultKind = "statement_charge"   // with a charge that belongs to no order

	// RefuseAfter: the book has the movement, which continues, and the response is the refusal in Answer.
	RefuseAfter FaultKind = "refuse_after"
	// SuccessFailedSuccess: the movement succeeds, fails after Delay, and succeeds again after another Delay. The
	// book has each status, and a callback reports each.
	SuccessFailedSuccess FaultKind = "success_failed_success"
	// FailedSuccessFailed: the movement fails, succeeds after Delay, and fails again after another Delay.
	FailedSuccessFailed FaultKind = "failed_success_failed"
	// StatusHang: the status query gets no response. The connection stays open until the client gives up, or for
	// Delay.
	StatusHang FaultKind = "status_hang"
	// StatusLag: a movement younger than Delay is reported as unknown.
	StatusLag FaultKind = "status_lag"
	// StatusAnswer: the response to the query is Answer, whatever the book contains. It may also be used for a
	// lookup, such as wallet_name.
	StatusAnswer FaultKind = "status_answer"
	// StatusOther: the response is about another payment, with another reference, party and amount.
	StatusOther FaultKind = "status_other"
	// StatusUnfulfilled: a successful sale is reported as paid and not fulfilled.
	StatusUnfulfilled FaultKind = "status_unfulfilled"

	// StatusNotFound: the movement is reported as unknown, as by a provider that loses data.
	StatusNotFound    FaultKind = "status_not_found"
	StatusWrongAmount FaultKind = "status_wrong_amount" // the response has the amount of another payment

	OffersChange FaultKind = "offers_change" // a number is offered other packages at other prices

	Silent     FaultKind = "silent"      // processed, never answered, the connection stays open
	QueueFull  FaultKind = "queue_full"  // ESME_RMSGQFUL, not processed
	Unbind     FaultKind = "unbind"      // processed and answered, then the message centre unbinds
	OddReceipt FaultKind = "odd_receipt" // fields that are too long, impossible dates, other spellings
)

var anyFaults = []FaultKind{AnswerLost, RequestLost, Slow, ErrorBefore, ErrorAfter, Malformed, Outage, Throttle, Unauthorized, Forbidden}
var moveFaults = []FaultKind{CallbackDuplicate, CallbackEarly, CallbackLate, CallbackMissing, CallbackForged, CallbackStale,
	Reverse, FailLater, RefuseOutright, Stuck, StatementOmit, StatementOff, RefuseAfter, SuccessFailedSuccess, FailedSuccessFailed,
	StatementTwice, StatementFee, StatementReversed, StatementNextDay, StatementForeign, StatementCharge}
var statusFaults = []FaultKind{StatusNotFound, StatusWrongAmount, StatusHang, StatusLag, StatusAnswer, StatusOther, StatusUnfulfilled}
var offersFaults = []FaultKind{OffersChange}
var messageFaults = []FaultKind{Silent, QueueFull, Unbind, OddReceipt}

// moneyOnly has the faults that do not apply to messages.
var moneyOnly = slices.Concat(statusFaults, []FaultKind{Reverse, StatementOmit, StatementOff, OffersChange, RefuseAfter, SuccessFailedSuccess, FailedSuccessFailed,
	StatementTwice, StatementFee, StatementReversed, StatementNextDay, StatementForeign, StatementCharge})

// Contradictions returns the faults with which a provider's reports contradict its movements. With them, no single
// report may move money.
func Contradictions() []FaultKind {
	return []FaultKind{RefuseAfter, SuccessFailedSuccess, FailedSuccessFailed, Reverse,
		StatusNotFound, StatusHang, StatusLag, StatusAnswer, StatusOther, StatusWrongAmount, StatusUnfulfilled}
}

// RefusalAnswers returns useful Answers for refuse and refuse_after: those of gateways, refusals below HTTP 500, and
// a provider's own.
func RefusalAnswers(own ...string) []string {
	return append([]string{"", "400:html", "400:empty", "404:html", "404:empty", "405:html", "413:html", "200:9999", "400:9999", "500:empty", "502:html"}, own...)
}

// StatusAnswers returns useful Answers for status_answer: those of gateways, and a provider's own. None of them
// reports an unknown reference or a payment.
func StatusAnswers(own ...string) []string {
	return append([]string{"404:html", "404:empty", "200:html", "200:empty", "200:9999", "400:empty", "500:empty", "503:html"}, own...)
}

// answered has the faults that use Answer.
var answered = []FaultKind{RefuseAfter, RefuseOutright, StatusAnswer}

// FaultKinds returns all faults.
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
	OpRecipient      = "recipient" // of transfers: a recipient must be created first
	OpVoucher        = "voucher"   // a payer's voucher, which completes a collection
	OpBind           = "bind"      // SMPP bind
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

// Fault is one armed fault. An empty Provider means all providers. An empty Operation means all operations of the
// fault's kind. These are status queries for the status faults, all requests for an outage, throttling, 401 and 403,
// and otherwise requests that move money. "*" means all operations.
//
// Only faults that name the message centre or one of its operations affect it. Payments and messages therefore do not
// use up each other's faults.
type Fault struct {
	Provider  string
	Operation string
	Kind      FaultKind
	Count     int           // number of affected requests; zero: one, or any number while For lasts
	Every     int           // only every nth request is affected; zero: each
	For       time.Duration // how long the fault is armed; zero: until Count is used up
	// Delay is the delay of slow, late and lagging faults, and the time between the changes of a status. Zero means
	// 10 s, or an hour for status_hang.
	Delay time.Duration
	// Answer is the response of refuse, refuse_after and status_answer, as STATUS:BODY or BODY. The body is a code in
	// the provider's own format, html, or empty, such as 3050, 400:html, 404:empty or 500:NOT_ENOUGH_FUNDS. The
	// default is the provider's ordinary refusal, and 404:html for status_answer.
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
	seen  int // number of requests to which it could apply
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

// Hit has the faults that affect one request, at most one of each kind.
type Hit []Fault

// Has reports whether h has a fault of this kind.
func (h Hit) Has(k FaultKind) bool {
	return slices.ContainsFunc(h, func(f Fault) bool { return f.Kind == k })
}

// Of returns the fault of a kind, or the zero Fault.
func (h Hit) Of(k FaultKind) Fault {
	for _, f := range h {
		if f.Kind == k {
			return f
		}
	}
	return Fault{}
}

// next returns the faults that affect the next request of an operation, one of each kind, and counts the request.
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

// strikesMessages is strikes for a message centre. An outage affects binds and submits, a refused credential affects
// binds, and every other fault affects submits.
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

// Bend applies the faults of a request to the plan of its order.
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
		case StatementTwice, StatementFee, StatementReversed, StatementNextDay, StatementForeign, StatementCharge:
			p.Line = string(k)
		}
	}
}

// splitAnswer parses a fault's Answer. status is 0 if the Answer has none.
func splitAnswer(s string) (status int, what string, ok bool) {
	head, tail, two := strings.Cut(s, ":")
	if !two {
		return 0, s, true
	}
	status, err := strconv.Atoi(head)
	return status, tail, err == nil && status >= 200 && status <= 599 && tail != ""
}
