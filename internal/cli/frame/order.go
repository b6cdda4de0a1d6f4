package frame

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
)

// OrderFlags are the flags of every command that moves money or credits.
type OrderFlags struct {
	Reference string `name:"reference" placeholder:"TEXT" help:"Your reference, such as a bank slip's number. A repeat with the same reference moves nothing and exits with 5. Required without a terminal."`
	Reason    string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// maxReference is the longest reference of an order, in characters.
const maxReference = 64

// alikeFor is how long a second order of the same kind, target and amount is asked about.
const alikeFor = 24 * time.Hour

// An Order is a movement of money or credits that an operator asks for.
type Order struct {
	OrderFlags
	Kind     string // of the change request, whose references are taken once
	Tenant   string // whom it concerns; empty for the house
	Sentence string // "Put GHS 5.00 into the wallet of Adom Stores"
	Sides    []Side // whose balances it changes; the first one is its target
}

// A Side is an account whose balance an order changes.
type Side struct {
	Name   string // "wallet of Adom Stores"
	Key    ledger.Key
	Amount int64 // pesewas or credits; negative if taken out
}

// balance is a side's as a person counts it: the account of a float or a bank is below zero while there
// is money for us.
func (s Side) balance(n int64) int64 {
	if s.Key.ID.IsHeld() {
		return -n
	}
	return n
}

// An ordered is a checked and confirmed order.
type ordered struct {
	Order
	o  *Opened
	id string // of the change request
}

// Order checks an order, shows it and asks for confirmation on a terminal. The balances that it shows are
// informative: the transaction of the movement checks them again.
func (o *Opened) Order(e *Env, w Order) (*ordered, error) {
	if err := w.check(e); err != nil {
		return nil, err
	}
	if w.Reference != "" {
		by, taken, err := o.Ledger.Booked(e.Ctx, w.Kind, w.Reference)
		if err != nil {
			return nil, err
		}
		if taken {
			return nil, takenBefore(&ledger.TakenError{By: by})
		}
	}
	id := NewID()
	if w.Reference == "" {
		w.Reference = id
	}
	if e.Terminal {
		if err := o.ask(e, w); err != nil {
			return nil, err
		}
	}
	return &ordered{w, o, id}, nil
}

// check refuses what cannot be an order.
func (w Order) check(e *Env) error {
	var bad problem.Fields
	if w.Sides[0].Amount == 0 {
		bad.Add("amount", "must be above zero")
	}
	if strings.TrimSpace(w.Reason) == "" {
		bad.Add("reason", "is required")
	}
	switch printable := !strings.ContainsFunc(w.Reference, func(r rune) bool { return r < ' ' || r > '~' }); {
	case w.Reference == "" && !e.Terminal:
		bad.Add("reference", "is required without a terminal: a repeat with the same reference moves nothing")
	case !printable || len(w.Reference) > maxReference || strings.TrimSpace(w.Reference) != w.Reference:
		bad.Add("reference", fmt.Sprintf("must have at most %d ASCII characters, without spaces around them", maxReference))
	}
	return bad.Err()
}

// ask shows an order with the balances before and after it, and takes a yes or a no.
func (o *Opened) ask(e *Env, w Order) error {
	t := tabwriter.NewWriter(e.Stderr, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, Cell(w.Sentence))
	for _, s := range w.Sides {
		n, err := o.Ledger.Balance(e.Ctx, s.Key)
		if err != nil {
			return err
		}
		before := s.balance(n)
		if s.Key.ID.Floored() && before+s.Amount < 0 {
			return problem.New(problem.InsufficientFunds, "insufficient_balance", fmt.Sprintf("The %s has only %s", Cell(s.Name), Worth(s.Key.Asset, before)))
		}
		fmt.Fprintf(t, "  %s\tnow %s\tthen %s\n", Cell(s.Name), Worth(s.Key.Asset, before), Worth(s.Key.Asset, before+s.Amount))
	}
	fmt.Fprintf(t, "  reference\t%s\n  reason\t%s\n", Cell(w.Reference), Cell(w.Reason))
	if err := t.Flush(); err != nil {
		return err
	}
	alike, found, err := o.Ledger.BookedAlike(e.Ctx, ledger.Booking{Kind: w.Kind, Reference: w.Reference, Account: w.Sides[0].Key, Amount: w.Sides[0].Amount}, o.Clock.Now().Add(-alikeFor))
	if err != nil {
		return err
	}
	question := "Do it?"
	if found {
		question = fmt.Sprintf("The same was done %s ago with the reference %s. Do it again?", o.Clock.Since(alike.At).Round(time.Second), Cell(alike.Reference))
	}
	return e.Confirm(question)
}

// Worth writes a number of an asset for a person.
func Worth(a ledger.Asset, n int64) string { return a.Text(n) }

// Do requests the change of the order under its reference, and calls show once it is applied. A repeat uses the
// request that already waits under the reference.
func (w *ordered) Do(e *Env, output string, a *changes.Changes, show func() error, request func(id, reference string) (changes.Request, error)) error {
	if w.o.By.Machine == "" { // a request of the machine's user needs no approval, so a waiting request does not block it
		waiting, found, err := a.WaitingUnder(e.Ctx, w.Kind, w.Tenant, w.Reference)
		if err != nil {
			return err
		}
		if found {
			w.id = waiting.ID
		}
	}
	r, err := request(w.id, w.Reference)
	return w.done(w.o.Asked(e, output, r, err, show))
}

// done explains the error of an order to the operator.
func (w *ordered) done(err error) error {
	var taken *ledger.TakenError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &taken):
		return takenBefore(taken)
	case problem.From(err).Code == "act_exists":
		return problem.Wrap(err, problem.Duplicate, "reference_taken", fmt.Sprintf("Nothing was moved: another change request with the reference %s waits for approval (makola approvals list)", w.Reference))
	case errors.Is(err, db.ErrAmbiguous):
		return problem.Wrap(err, problem.Unavailable, codeUnknown,
			fmt.Sprintf("The database's answer was lost, so the outcome is unknown. Repeat the command with --reference %q: it moves nothing if this was done", w.Reference))
	}
	return err
}

// takenBefore is the refusal of a repeat.
func takenBefore(t *ledger.TakenError) error {
	by := t.By
	return problem.Wrap(t, problem.Duplicate, "reference_taken", fmt.Sprintf("Nothing was moved: the reference %[2]s was used for %[1]s before: %[3]s to %[4]s at %[5]s",
		by.Kind, by.Reference, Worth(by.Account.Asset, by.Amount), by.Account.ID, by.At.UTC().Format(time.RFC3339)))
}

// codeUnknown is the code of a problem with an unknown outcome.
const codeUnknown = "outcome_unknown"
