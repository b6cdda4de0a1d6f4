package sim

import (
	"strings"
	"time"

	"github.com/makola/makola/internal/money"
)

// Order is a request to a provider to move money.
type Order struct {
	Provider    string        `json:"provider"`
	Kind        Kind          `json:"kind"`
	Reference   string        `json:"reference"` // as it was received
	Amount      money.Pesewas `json:"amount"`
	Party       string        `json:"party"` // MSISDN as 233..., or bank account
	CallbackURL string        `json:"callback_url,omitempty"`
	Text        string        `json:"text,omitempty"` // shown on the handset
	// Fee is the provider's charge, and Commission our share of it.
	Fee        money.Pesewas `json:"fee,omitempty"`
	Commission money.Pesewas `json:"commission,omitempty"`
	// Resource is the path at which the order was received, if the provider has several. It is empty in books of
	// older versions.
	Resource string `json:"resource,omitempty"`
	// Wire is data that the provider's package needs for its responses. The book does not read it.
	Wire string `json:"wire,omitempty"`

	// Refunds is the reference of the collection that the order gives back. The sum of all such orders is at most the
	// collection's amount.
	Refunds string `json:"refunds,omitempty"`

	// Fixed, if not nil, is the plan of the order. It replaces the plan of the number.
	Fixed *Plan `json:"-"`
}

// Entry is an order in the book.
type Entry struct {
	Number int64 `json:"number"` // counts from 1; the provider's ids are derived from it
	Order
	Plan     Plan      `json:"plan,omitzero"`
	At       time.Time `json:"at"`
	Due      time.Time `json:"due,omitzero"` // when it settles by itself
	Status   Status    `json:"status"`
	Reason   Reason    `json:"reason,omitempty"`
	Settled  time.Time `json:"settled,omitzero"`
	Reversed bool      `json:"reversed,omitempty"` // was a success and was reversed
	// Answer is the customer's answer on the handset: approved, declined, wrong_pin.
	Answer string `json:"answer,omitempty"`

	group *group // the entry is durable when this group is
}

type settleRecord struct {
	Provider     string    `json:"provider"`
	Reference    string    `json:"reference"`
	Status       Status    `json:"status"`
	Reason       Reason    `json:"reason,omitempty"`
	At           time.Time `json:"at"`
	Reversed     bool      `json:"reversed,omitempty"`
	Contradicted bool      `json:"turned,omitempty"` // set for a change to the opposite of a final status
	Answer       string    `json:"answer,omitempty"`
}

type floatRecord struct {
	Provider string        `json:"provider"`
	Amount   money.Pesewas `json:"amount"` // the change
	At       time.Time     `json:"at,omitzero"`
}

// effect returns the change of our float at the provider when the entry succeeds. A sale takes its whole amount, as
// Hubtel's AmountDebited shows. The commission goes to another account.
func (e *Entry) effect() money.Pesewas {
	if e.Kind == Collection {
		return e.Amount - e.Fee
	}
	return -e.Amount - e.Fee
}

// dueBy reports whether the time at which the entry settles by itself has passed.
func (e *Entry) dueBy(now time.Time) bool {
	return e.Status == Pending && !e.Due.IsZero() && !e.Due.After(now)
}

// User is an API user of a client, created in a provider's sandbox.
type User struct {
	ID   string `json:"id"`
	Host string `json:"host,omitempty"` // host to which callbacks may be sent; empty: any
	Key  string `json:"key,omitempty"`  // empty: no key was requested yet
}

// record is one line of the journal.
type record struct {
	Enter  *Entry        `json:"enter,omitempty"`
	Settle *settleRecord `json:"settle,omitempty"`
	Float  *floatRecord  `json:"float,omitempty"`
	User   *User         `json:"user,omitempty"`
}

// plan returns the plan of an order: Fixed, or the plan of its number.
func (o Order) plan() Plan {
	p := PlanFor(o.Kind, o.Party)
	if o.Fixed != nil {
		p = *o.Fixed
	}
	if p.Then == "" {
		p.Then = Success
	}
	return p
}

func key(provider, reference string) string { return provider + "/" + Plain(reference) }

// Plain returns a reference without its hyphens and in lower case.
func Plain(reference string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSpace(reference), "-", ""))
}

// The accounts of a provider, each with its own statement. A provider with one balance has only the second account.
const (
	AccountCollection   = "collection"
	AccountDisbursement = "disbursement"
)

// LineType is the type of a statement's line.
type LineType string

// The types.
const (
	LineMovement LineType = "movement" // the movement of an order
	LineReversal LineType = "reversal" // the reversal of an order
	LineDeposit  LineType = "deposit"  // a change of the float through the control interface
	LineForeign  LineType = "foreign"  // a movement by a person who placed no order
	LineCharge   LineType = "charge"   // a charge of the provider, without an order
)

// Line is one line of a provider's statement.
type Line struct {
	Number  int64 // from 1, unique among the lines of the account that have no order
	Copy    int   // 0 for the first line of an order, then 1, 2, ...
	Type    LineType
	Entry   Entry // set for movements and reversals
	At      time.Time
	Amount  money.Pesewas // positive: money came in
	Fee     money.Pesewas
	Balance money.Pesewas // after it
}

// move is one change of a float, in the order of the book.
type move struct {
	at       time.Time
	provider string
	entry    *Entry        // nil: a deposit
	back     bool          // whether the move reverses the entry
	deposit  money.Pesewas // whether the move has no entry
}
