// Package provider defines the roles of a payment provider (collect, disburse, refund, resolve a name, top up, sell bundles,
// report the float, read a callback), and Outcome, the result of every call.
//
// An Outcome is never a Go error, because an error invites the most expensive mistake of this trade: "it failed, so
// give the money back". A payment that was not proven unsent, and was not refused with a documented code, is Unknown,
// and Unknown is the zero value. Client, the one HTTP client of all adapters, decides once and by its own socket
// whether a request was written at all. Adapters live in folders below this one. Each implements one provider's protocol
// without databases, tenants or ledgers.
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
	// Unknown: the provider may or may not have acted. It holds the money,
	// and only a status answer or an operator ends it. It is the zero value
	// so that a forgotten field can never give money back.
	Unknown Class = iota
	// Accepted: the provider has it; State is its progress.
	Accepted
	// Rejected: a refusal. Clear and Unposted are its strength. After the refusal of a request that left, the
	// provider is queried before the refusal counts.
	Rejected
	// NotSent: proven by our own socket, not one byte of the request was
	// written.
	NotSent
	// Barred: turned away by 401, 403 or 429. The request is tried again like
	// one that was NotSent, but it was written: the answer proves nothing.
	Barred
)

// String names the class as stored and shown.
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

// ParseClass reads what String wrote; anything else is Unknown.
func ParseClass(s string) Class {
	for _, c := range []Class{Accepted, Rejected, NotSent, Barred} {
		if c.String() == s {
			return c
		}
	}
	return Unknown
}

// State is how far an accepted request is. It means something only when the
// class is Accepted.
type State int

const (
	// Pending: the provider has not finished.
	Pending State = iota
	// Success: the money moved.
	Success
	// Failed: the money did not move and will not.
	Failed
)

// String names the state as stored and shown.
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

// Outcome is the result of a provider call.
//
// A status query returns only Accepted or Unknown: the fate of a query proves nothing about the payment, so it is
// never Rejected, NotSent or Barred.
type Outcome struct {
	Class Class
	State State
	// UpstreamID is the provider's own id; operators see it, customers do not.
	UpstreamID string
	// Reason is our stable code (see Sentence); empty on success.
	Reason string
	// Code and Message are the provider's own, Message cut to 200 characters.
	Code, Message string
	// Fee and Commission are in pesewas, as the provider booked them. They are set only if FeeKnown is true.
	Fee, Commission money.Pesewas
	FeeKnown        bool
	// Name is the other party's registered name where the answer carries it.
	Name string
	// Clear marks a Rejected in the provider's own envelope, with a code that it documents as a final refusal, and
	// with our reference if it names one. Any other refusal of a request that left is bare: a gateway's page, an
	// empty 400, an undocumented code.
	Clear bool
	// Unposted marks a Rejected that the adapter made itself: nothing was sent.
	Unposted bool
	// Duplicate: the provider's distinct answer that it already has this
	// reference. The class is then Accepted and the payment is to be asked for.
	Duplicate bool
	// NotFound: the provider's documented response for an unknown reference. A bare 404 is not one. Never final by
	// itself.
	NotFound bool
	// Unpaid: Accepted and Pending with a status that the provider uses for open and for failed payments (Hubtel's
	// Unpaid).
	Unpaid bool
	// Echo is the provider's data under the reference.
	Echo *Echo
	// RetryAfter is the pause that the provider asked for; zero if none.
	RetryAfter time.Duration
}

// Final reports whether the provider has reported a final state.
func (o Outcome) Final() bool { return o.Class == Accepted && o.State != Pending }

// Echo is the payment as the provider repeats it in a status response. A missing text is empty. AmountTold reports
// whether Amount (pesewas) was there; an unreadable amount is -1 and matches nothing.
type Echo struct {
	Reference  string
	Amount     money.Pesewas
	AmountTold bool
	Currency   string // ISO 4217; "GHS" whenever it is the currency configured for the rail
	Party      string // MSISDN or bank account
}

// Expect is the payment as we asked for it. Currency empty means GHS.
type Expect struct {
	Reference string
	Amount    money.Pesewas
	Currency  string
	Party     string
}

// Mismatch reports whether a status response is about another payment than the queried one. Such a response is
// Unknown and goes to an operator. A missing field does not count as a mismatch. But a final state that repeats
// nothing at all, or a success without its amount, is not accepted.
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

// SameReference compares two ProviderReferences as providers render them:
// hyphens and case are the provider's own taste.
func SameReference(a, b string) bool { return PlainReference(a) == PlainReference(b) }

// PlainReference is a ProviderReference as 32 lower-case hex characters, the
// form of providers that take letters and digits only.
func PlainReference(s string) string {
	return strings.ToLower(strings.ReplaceAll(s, "-", ""))
}

// sameParty compares two accounts; a wallet may be written locally or
// internationally.
func sameParty(a, b string) bool {
	if strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) {
		return true
	}
	x, errA := msisdn.Parse(a)
	y, errB := msisdn.Parse(b)
	return errA == nil && errB == nil && x == y
}

// Limit is the smallest and the largest amount that a rail takes for an operation on a channel, in pesewas. A zero Max is
// none. "*" is every operation or channel.
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

// Requests is a set of the kinds of requests that move money.
type Requests struct {
	Collect, Disburse, Refund bool
	Sell                      bool // airtime and data packages
}

// AllRequests returns the set of every kind.
func AllRequests() Requests { return Requests{Collect: true, Disburse: true, Refund: true, Sell: true} }

// AccountNeeds are what a rail's collections need of the account that collects.
type AccountNeeds struct {
	Email    bool             // an e-mail address
	Vouchers []msisdn.Network // networks on which the payer's voucher completes a collection (see VoucherTaker)
}

// Met reports whether a rail can collect on a channel for an account with an e-mail address, or with vouchers switched on.
func (n AccountNeeds) Met(channel string, email, voucher bool) bool {
	return (email || !n.Email) && (voucher || !slices.Contains(n.Vouchers, msisdn.Network(channel)))
}

// unmeasured is the time for which a recovery waits for a rail whose VisibleAfter nobody has measured.
const unmeasured = time.Hour

// SearchableAfter returns the time after a submission from which a recovery believes that the rail does not have it.
func (r Rail) SearchableAfter() time.Duration {
	if r.VisibleAfter > 0 {
		return r.VisibleAfter
	}
	return unmeasured
}

// Rail is one provider in one mode with the roles that it can play; a role
// that it cannot play is nil.
type Rail struct {
	Name string // "mtn", "hubtel"
	Mode string // "test" or "live"
	// MayRepeat has the requests of which the provider refuses a duplicate reference with a distinct code, so the same
	// reference may be submitted again.
	MayRepeat Requests
	// MayDouble has the requests that the provider is not known to refuse under a used reference. A recovery never
	// submits them unless the provider reported that it does not have the reference.
	MayDouble Requests
	// VisibleAfter is the time after a submission during which a status query may not find it yet. A "not known"
	// counts from then on. Zero means that nobody has measured it: then a "not known" alone never returns money.
	VisibleAfter time.Duration
	// UnpaidAfter is the age from which an Unpaid can mean a failure; zero if the provider has no such status.
	UnpaidAfter time.Duration

	// NotKnownSettings has, by kind of query (collect, disburse, topup, bundle), the setting for the response by
	// which the provider reports an unknown reference. It is nil if the provider documents that response.
	NotKnownSettings map[string]string

	Collector   Collector
	Needs       AccountNeeds // of collections
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
	Accounts    Accounts // at the provider, by what moves their money
	Limits      []Limit  // of amounts
	// Banks gives the provider's code for each of our bank ids.
	Banks map[string]string
}
