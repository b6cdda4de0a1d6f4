package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
)

// orderFlags are what every command takes that moves money or credits on an operator's word.
type orderFlags struct {
	Reference string `name:"reference" placeholder:"TEXT" help:"Yours, such as the bank slip's number. A command takes each once: a repeat moves nothing and exits with 5. Needed where no terminal can ask."`
	Reason    string `name:"reason" required:"" placeholder:"TEXT" help:"Why, for the audit log."`
}

// maxReference is the longest reference of an order, in characters.
const maxReference = 64

// alikeFor is how long a second order of the same kind, target and amount is asked about.
const alikeFor = 24 * time.Hour

// An order is a movement of money or credits that an operator asks for.
type order struct {
	orderFlags
	kind     string // of the change request, whose references are taken once
	tenant   string // whom it concerns; empty for the house
	sentence string // "Put GHS 5.00 into the wallet of Adom Stores"
	sides    []side // whose balances it changes; the first one is its target
}

// A side is an account whose balance an order changes.
type side struct {
	name   string // "wallet of Adom Stores"
	key    ledger.Key
	amount int64 // pesewas or credits; below zero what is taken
}

// balance is a side's as a person counts it: a float's account is below zero while the provider holds money for us.
func (s side) balance(n int64) int64 {
	if s.key.ID.IsFloat() {
		return -n
	}
	return n
}

// An ordered is an order that may be done: what was to be asked was answered.
type ordered struct {
	order
	o  *opened
	id string // of the change request
}

// order checks an order, shows it and asks for a yes where a person sits at a terminal. The figures that it
// reads are for the person alone: the transaction of the movement decides by itself.
func (o *opened) order(e *env, w order) (*ordered, error) {
	if err := w.check(e); err != nil {
		return nil, err
	}
	if w.Reference != "" {
		by, taken, err := o.ledger.Booked(e.ctx, w.kind, w.Reference)
		if err != nil {
			return nil, err
		}
		if taken {
			return nil, takenBefore(&ledger.TakenError{By: by})
		}
	}
	id := newID()
	if w.Reference == "" {
		w.Reference = id
	}
	if e.terminal {
		if err := o.ask(e, w); err != nil {
			return nil, err
		}
	}
	return &ordered{w, o, id}, nil
}

// check refuses what cannot be an order.
func (w order) check(e *env) error {
	var bad problem.Fields
	if w.sides[0].amount == 0 {
		bad.Add("amount", "must be above zero")
	}
	if strings.TrimSpace(w.Reason) == "" {
		bad.Add("reason", "is required")
	}
	switch printable := !strings.ContainsFunc(w.Reference, func(r rune) bool { return r < ' ' || r > '~' }); {
	case w.Reference == "" && !e.terminal:
		bad.Add("reference", "is required where no terminal can ask: with it a repeat of the command moves nothing")
	case !printable || len(w.Reference) > maxReference || strings.TrimSpace(w.Reference) != w.Reference:
		bad.Add("reference", fmt.Sprintf("must have at most %d letters, digits and signs of ASCII, and no space around them", maxReference))
	}
	return bad.Err()
}

// ask shows an order with the balances before and after it, and takes a yes or a no.
func (o *opened) ask(e *env, w order) error {
	t := tabwriter.NewWriter(e.stderr, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, cell(w.sentence))
	for _, s := range w.sides {
		n, err := o.ledger.Balance(e.ctx, s.key)
		if err != nil {
			return err
		}
		before := s.balance(n)
		if s.key.ID.Floored() && before+s.amount < 0 {
			return problem.New(problem.InsufficientFunds, "insufficient_balance", fmt.Sprintf("The %s has only %s", cell(s.name), worth(s.key.Asset, before)))
		}
		fmt.Fprintf(t, "  %s\tnow %s\tthen %s\n", cell(s.name), worth(s.key.Asset, before), worth(s.key.Asset, before+s.amount))
	}
	fmt.Fprintf(t, "  reference\t%s\n  reason\t%s\n", cell(w.Reference), cell(w.Reason))
	if err := t.Flush(); err != nil {
		return err
	}
	alike, found, err := o.ledger.BookedAlike(e.ctx, ledger.Booking{Kind: w.kind, Reference: w.Reference, Account: w.sides[0].key, Amount: w.sides[0].amount}, o.clock.Now().Add(-alikeFor))
	if err != nil {
		return err
	}
	question := "Do it?"
	if found {
		question = fmt.Sprintf("The same was done %s ago under the reference %s. Do it once more?", o.clock.Since(alike.At).Round(time.Second), cell(alike.Reference))
	}
	return e.confirm(question)
}

// worth writes a number of an asset for a person.
func worth(a ledger.Asset, n int64) string { return a.Text(n) }

// do requests the order's change under its reference, and prints what is there once it is applied. A repeat requests the same change
// as the one that waits under the reference.
func (w *ordered) do(e *env, output string, a *changes.Changes, show func(context.Context) error, request func(id, reference string) (changes.Request, error)) error {
	if w.o.by.Machine == "" { // else nothing that waits for approval stands in the way, as in an emergency
		waiting, found, err := a.WaitingUnder(e.ctx, w.kind, w.tenant, w.Reference)
		if err != nil {
			return err
		}
		if found {
			w.id = waiting.ID
		}
	}
	r, err := request(w.id, w.Reference)
	return w.done(w.o.asked(e, output, r, err, show))
}

// done says in an operator's words what became of an order whose transaction ended with err.
func (w *ordered) done(err error) error {
	var taken *ledger.TakenError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &taken):
		return takenBefore(taken)
	case problem.From(err).Code == "act_exists":
		return problem.Wrap(err, problem.Duplicate, "reference_taken", fmt.Sprintf("Nothing was moved: something else waits under the reference %s (makola acts list)", w.Reference))
	case errors.Is(err, db.ErrAmbiguous):
		return problem.Wrap(err, problem.Unavailable, codeUnknown,
			fmt.Sprintf("The database's answer was lost, and it is not known whether this was done. Repeat it with --reference %q: that moves nothing if it was", w.Reference))
	}
	return err
}

// takenBefore is the refusal of a repeat.
func takenBefore(t *ledger.TakenError) error {
	by := t.By
	return problem.Wrap(t, problem.Duplicate, "reference_taken", fmt.Sprintf("Nothing was moved: %s took the reference %s before, for %s of %s, at %s",
		by.Kind, by.Reference, worth(by.Account.Asset, by.Amount), by.Account.ID, by.At.UTC().Format(time.RFC3339)))
}

// errDeclined is the end of a command whose question was answered with no.
var errDeclined = errors.New("nothing was done")

// confirm asks for a yes. Everything else is a no, and so is an interrupt.
func (e *env) confirm(question string) error {
	fmt.Fprint(e.stderr, question, " [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(e.stdin).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-e.ctx.Done():
		fmt.Fprintln(e.stderr)
	case said := <-answer:
		if said == "y" || said == "yes" {
			return nil
		}
	}
	return errDeclined
}

// interactive says whether a person can read a question and answer it.
func interactive(in io.Reader, out io.Writer) bool { return terminal(in) && terminal(out) }
