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
	Reference   string        `json:"reference"` // as it came over the wire
	Amount      money.Pesewas `json:"amount"`
	Party       string        `json:"party"` // MSISDN as 233..., or bank account
	CallbackURL string        `json:"callback_url,omitempty"`
	Text        string        `json:"text,omitempty"` // shown on the handset
	// Fee is the provider's charge, and Commission our share of it.
	Fee        money.Pesewas `json:"fee,omitempty"`
	Commission money.Pesewas `json:"commission,omitempty"`
	// Resource is the path of the wire side that took the order, where one
	// provider has several; empty in a book that is older.
	Resource string `json:"resource,omitempty"`
	// Wire is data of the provider's package for its answers. The book does not read it.
	Wire string `json:"wire,omitempty"`

	// Refunds is the reference of the collection that the order gives back; all
	// such orders together are at most its amount.
	Refunds string `json:"refunds,omitempty"`

	// Fixed, when not nil, is the wire side's own plan, whatever the number is.
	Fixed *Plan `json:"-"`
}

// Entry is an order in the book.
type Entry struct {
	Number int64 `json:"number"` // counts from 1; upstream ids are made of it
	Order
	Plan     Plan      `json:"plan,omitzero"`
	At       time.Time `json:"at"`
	Due      time.Time `json:"due,omitzero"` // when it settles by itself
	Status   Status    `json:"status"`
	Reason   Reason    `json:"reason,omitempty"`
	Settled  time.Time `json:"settled,omitzero"`
	Reversed bool      `json:"reversed,omitempty"` // was a success, then taken back
	// Answer is the customer's answer on the handset: approved, declined, wrong_pin.
	Answer string `json:"answer,omitempty"`

	group *group // durable when this is
}

type settleRecord struct {
	Provider     string    `json:"provider"`
	Reference    string    `json:"reference"`
	Status       Status    `json:"status"`
	Reason       Reason    `json:"reason,omitempty"`
	At           time.Time `json:"at"`
	Reversed     bool      `json:"reversed,omitempty"`
	Contradicted bool      `json:"turned,omitempty"` // the opposite of a final status
	Answer       string    `json:"answer,omitempty"`
}

type floatRecord struct {
	Provider string        `json:"provider"`
	Amount   money.Pesewas `json:"amount"` // the change
}

// effect returns the change that a successful entry makes to our float at the provider. A sale takes its whole amount
// out, as Hubtel's AmountDebited shows. The commission is not paid into the same account.
func (e *Entry) effect() money.Pesewas {
	if e.Kind == Collection {
		return e.Amount - e.Fee
	}
	return -e.Amount - e.Fee
}

// dueBy reports whether the entry should have settled by itself by now.
func (e *Entry) dueBy(now time.Time) bool {
	return e.Status == Pending && !e.Due.IsZero() && !e.Due.After(now)
}

// User is a client's account that a provider's sandbox made.
type User struct {
	ID   string `json:"id"`
	Host string `json:"host,omitempty"` // that callbacks may go to; empty: any
	Key  string `json:"key,omitempty"`  // empty: none was asked for yet
}

// record is one line of the journal.
type record struct {
	Enter  *Entry        `json:"enter,omitempty"`
	Settle *settleRecord `json:"settle,omitempty"`
	Float  *floatRecord  `json:"float,omitempty"`
	User   *User         `json:"user,omitempty"`
}

// plan returns the plan of an order: the fixed one, or that of its number.
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
