// Package provider defines the roles of a payment provider (collect, disburse, refund, resolve a name, top up, sell bundles, report
// the float, read a callback), and Outcome, the result of every call.
//
// An Outcome is never a Go error. Callers often treat an error as a failure, and would return the money of a payment that was made.
// Every payment is Unknown unless it was certainly not sent, or was refused with a documented code. Unknown is the zero value. All
// adapters use the same HTTP Client. It reports from its own socket whether a request was written at all. Adapters live in folders
// below this one. Each implements one provider's protocol without databases, tenants or ledgers.
package provider

import (
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
)

// Class is the certainty about a request to a provider after the call.
type Class int

const (
	// Unknown: the provider may or may not have acted. The money stays on hold until a status response or an operator
	// decides. Unknown is the zero value, so that a forgotten field can never give money back.
	Unknown Class = iota
	// Accepted: the provider has the request; State is its progress.
	Accepted
	// Rejected: the provider refused the request. Clear and Unposted show how certain this is. If the request left
	// this machine, a status query must confirm the refusal.
	Rejected
	// NotSent: our own socket proves that not one byte of the request was written.
	NotSent
	// Barred: the provider answered 401, 403 or 429. The request is tried again as after NotSent. Unlike after
	// NotSent, the request was written, so the answer does not prove that the provider ignored it.
	Barred
)

// String returns the name of the class as it is stored and shown.
func (c Class) String() string {
	switch c {
	case Accepted:
		return "accepted"
	case Rejected:
		return "rejected"
	case NotSent:
		return "not_sent"
	case Barred:
		return "barred"
	default:
		return "unknown"
	}
}

// ParseClass parses the result of String. It returns Unknown for any other text.
func ParseClass(s string) Class {
	for _, c := range []Class{Accepted, Rejected, NotSent, Barred} {
		if c.String() == s {
			return c
		}
	}
	return Unknown
}

// State is the progress of an accepted request. It is valid only if the class is Accepted.
type State int

const (
	// Pending: the provider has not finished.
	Pending State = iota
	// Success: the money moved.
	Success
	// Failed: the money did not move and will not.
	Failed
)

// String returns the name of the state as it is stored and shown.
func (s State) String() string {
	switch s {
	case Success:
		return "success"
	case Failed:
		return "failed"
	default:
		return "pending"
	}
}

// Outcome is the result of a call to a provider.
//
// The class of a status query is only ever Accepted or Unknown, because a query that fails proves nothing about the
// payment.
type Outcome struct {
	Class Class
	State State
	// UpstreamID is the provider's own id. Operators see it, customers do not.
	UpstreamID string
	// Reason is our stable code (see Sentence). It is empty on success.
	Reason string
	// Code and Message come from the provider. Message is cut to 200 characters.
	Code, Message string
	// Fee and Commission are in pesewas, as the provider booked them. They are valid only if FeeKnown is true.
	Fee, Commission money.Pesewas
	FeeKnown        bool
	// Name is the other party's registered name, if the response contains it.
	Name string
	// Clear marks a Rejected that certainly comes from the provider. The response has the provider's format and a
	// code that the provider documents as a final refusal. If the response contains a reference, it is ours. Other
	// refusals, such as a gateway's page, an empty 400 or an undocumented code, are not Clear.
	Clear bool
	// Unposted marks a Rejected that the adapter itself decided, without sending a request.
	Unposted bool
	// Duplicate: the provider answered distinctly that it already has this reference. The class is then Accepted, and
	// a status query must follow.
	Duplicate bool
	// NotFound: the provider's documented response for an unknown reference. A 404 without the provider's own format
	// is no such response. NotFound never makes a payment final by itself.
	NotFound bool
	// Unpaid: Accepted and Pending with a status that the provider uses for open and for failed payments (Hubtel's
	// Unpaid).
	Unpaid bool
	// AwaitsVoucher: Accepted and Pending, and the provider asked for a voucher of the payer (VoucherTaker).
	AwaitsVoucher bool
	// Echo is the payment that the provider stores under the reference.
	Echo *Echo
	// RetryAfter is the pause that the provider asked for, or zero.
	RetryAfter time.Duration
}

// Final reports whether the provider has reported a final state.
func (o Outcome) Final() bool { return o.Class == Accepted && o.State != Pending }

// Echo is the payment as the provider repeats it in a status response. A missing text is empty. AmountTold reports
// whether the response has an amount. Amount is in pesewas; an unreadable amount is -1, which matches nothing.
type Echo struct {
	Reference  string
	Amount     money.Pesewas
	AmountTold bool
	Currency   string // ISO 4217; "GHS" if it is the rail's configured currency
	Party      string // MSISDN or bank account
}

// Expect is the payment as we submitted it. An empty Currency means GHS.
type Expect struct {
	Reference string
	Amount    money.Pesewas
	Currency  string
	Party     string
}

// Mismatch reports whether a status response is about a payment other than the queried one. Such a response is
// Unknown and goes to an operator. A missing field does not count as a mismatch. However, a final state that repeats
// no field, or a success without its amount, counts as a mismatch.
func Mismatch(o Outcome, want Expect) bool {
	if o.Class != Accepted {
		return false
	}
	e := o.Echo
	if e == nil || (e.Reference == "" && !e.AmountTold && e.Party == "") {
		return o.Final()
	}
	if want.Currency == "" {
		want.Currency = "GHS"
	}
	switch {
	case o.State == Success && !e.AmountTold:
	case e.Reference != "" && !SameReference(e.Reference, want.Reference):
	case e.AmountTold && e.Amount != want.Amount:
	case e.Currency != "" && !strings.EqualFold(e.Currency, want.Currency):
	case e.Party != "" && !sameParty(e.Party, want.Party):
	default:
		return false
	}
	return true
}

// SameReference compares two ProviderReferences. It ignores hyphens and case, because providers may change both.
func SameReference(a, b string) bool { return PlainReference(a) == PlainReference(b) }

// PlainReference returns a ProviderReference as 32 lower-case hex characters. Some providers accept only letters and
// digits.
func PlainReference(s string) string {
	return strings.ToLower(strings.ReplaceAll(s, "-", ""))
}

// sameParty compares two accounts. A wallet's number may be in local or international form.
func sameParty(a, b string) bool {
	if strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) {
		return true
	}
	x, errA := msisdn.Parse(a)
	y, errB := msisdn.Parse(b)
	return errA == nil && errB == nil && x == y
}

// Limit is the smallest and the largest amount in pesewas that a rail accepts for an operation on a channel. A Max of
// zero means that there is no largest amount. "*" matches every operation or channel.
type Limit struct {
	Operation, Channel string
	Min, Max           money.Pesewas
}

// Takes reports whether the rail's limits allow an amount.
func (r Rail) Takes(operation, channel string, amount money.Pesewas) bool {
	for _, l := range r.Limits {
		about := (l.Operation == "*" || l.Operation == operation) && (l.Channel == "*" || l.Channel == channel)
		if about && (amount < l.Min || l.Max > 0 && amount > l.Max) {
			return false
		}
	}
	return true
}

// Requests is a set of kinds of requests that move money.
type Requests struct {
	Collect, Disburse, Refund bool
	Sell                      bool // airtime and data packages
}

// AllRequests returns the set of all kinds.
func AllRequests() Requests { return Requests{Collect: true, Disburse: true, Refund: true, Sell: true} }

// AccountNeeds describes what an account must have so that a rail can collect for it.
type AccountNeeds struct {
	Email    bool             // an e-mail address
	Vouchers []msisdn.Network // networks on which a voucher of the payer completes a collection (see VoucherTaker)
	// VoucherStarts: a voucher may start the collection at the provider. It is sent only after the provider asked for one
	// (Outcome.AwaitsVoucher), because only counted submissions may start a payment.
	VoucherStarts bool
}

// Met reports whether a rail can collect on a channel. email is set if the account has an e-mail address, and voucher
// if it uses vouchers.
func (n AccountNeeds) Met(channel string, email, voucher bool) bool {
	return (email || !n.Email) && (voucher || !slices.Contains(n.Vouchers, msisdn.Network(channel)))
}

// unmeasured is the value of SearchableAfter for a rail whose VisibleAfter was not measured.
const unmeasured = time.Hour

// SearchableAfter returns the time after a submission from which, in a recovery, a not-found answer proves that the
// rail does not have the payment.
func (r Rail) SearchableAfter() time.Duration {
	if r.VisibleAfter > 0 {
		return r.VisibleAfter
	}
	return unmeasured
}

// Rail is one provider in one mode. It has the roles that the provider supports; the others are nil.
type Rail struct {
	Name string // "mtn", "hubtel"
	Mode string // "test" or "live"
	// MayRepeat has the requests for which the provider refuses a duplicate reference with a distinct code. Such a
	// request may be submitted again with the same reference.
	MayRepeat Requests
	// MayDouble has the requests for which we do not know that the provider refuses a used reference. A recovery
	// submits such a request only if the provider reported that it does not have the reference.
	MayDouble Requests
	// VisibleAfter is the time after a submission during which a status query may not find it yet. From then on a
	// not-found answer counts. Zero means that the time was not measured. A not-found answer then never returns money
	// by itself.
	VisibleAfter time.Duration
	// UnpaidAfter is the age from which the status Unpaid can mean a failure. It is zero if the provider has no such
	// status.
	UnpaidAfter time.Duration

	// NotKnownSettings names, by kind of query (collect, disburse, topup, bundle), the setting for the response with
	// which the provider reports an unknown reference. It is nil if the provider documents that response.
	NotKnownSettings map[string]string

	Collector   Collector
	Needs       AccountNeeds // conditions of collections
	Vouchers    VoucherTaker
	Disburser   Disburser
	Refunder    Refunder
	WalletNames NameResolver
	BankNames   BankResolver
	BankList    BankLister
	TopUpper    TopUpper
	Bundles     BundleSeller
	Floats      FloatReader
	Callbacks   CallbackParser
	Accounts    Accounts // accounts at the provider that the rail uses
	Limits      []Limit  // limits of amounts
	// Banks has the provider's codes by our bank ids.
	Banks map[string]string
}
