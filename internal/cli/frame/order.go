package frame

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

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

// order checks a movement of money or credits. Without a reference it uses the id of the request.
func (q *Ask) order(kind, id string) error {
	if err := q.checkOrder(); err != nil {
		return err
	}
	if reference := q.Values["reference"]; reference != "" {
		by, taken, err := q.O.Ledger.Booked(q.E.Ctx, kind, reference)
		if err != nil {
			return err
		}
		if taken {
			return takenBefore(&ledger.TakenError{By: by})
		}
	}
	q.Values["reference"] = cmp.Or(q.Values["reference"], id)
	return nil
}

// checkOrder returns an error for an order with invalid flags.
func (q *Ask) checkOrder() error {
	var bad problem.Fields
	for _, name := range []string{"amount", "credits"} {
		if text, given := q.Values[name]; given && strings.Trim(text, "0.") == "" {
			bad.Add(name, "must be above zero")
		}
	}
	if strings.TrimSpace(q.Reason) == "" {
		bad.Add("reason", "is required")
	}
	reference := q.Values["reference"]
	switch printable := !strings.ContainsFunc(reference, func(r rune) bool { return r < ' ' || r > '~' }); {
	case reference == "" && !q.E.Terminal:
		bad.Add("reference", "is required without a terminal: a repeat with the same reference moves nothing")
	case !printable || len(reference) > maxReference || strings.TrimSpace(reference) != reference:
		bad.Add("reference", fmt.Sprintf("must have at most %d ASCII characters, without spaces around them", maxReference))
	}
	return bad.Err()
}

// confirm shows the sentence and the facts that an approver would see, and asks for yes or no. The facts are informative: the
// transaction of the change checks them again.
func (q *Ask) confirm(kind string) error {
	r, err := q.Changes.Preview(q.E.Ctx, q.O.By, kind, q.Values)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(q.E.Stderr, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, Cell(r.Sentence))
	for _, fact := range r.Facts.List {
		fmt.Fprintf(t, "  %s\t%s\n", Cell(fact.Name), Cell(fact.Value))
	}
	fmt.Fprintf(t, "  Reason\t%s\n", Cell(q.Reason))
	if err := t.Flush(); err != nil {
		return err
	}
	return q.E.Confirm("Continue?")
}

// Worth formats an amount of an asset for people.
func Worth(a ledger.Asset, n int64) string { return a.Text(n) }

// ofOrder explains the error of an order to the operator.
func ofOrder(err error, reference string) error {
	var taken *ledger.TakenError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &taken):
		return takenBefore(taken)
	case problem.From(err).Code == "act_exists":
		return problem.Wrap(err, problem.Duplicate, "reference_taken", fmt.Sprintf("Nothing was moved: another change request with the reference %s waits for approval (makola approvals list)", reference))
	case errors.Is(err, db.ErrAmbiguous):
		return problem.Wrap(err, problem.Unavailable, codeUnknown,
			fmt.Sprintf("The database's answer was lost, so the outcome is unknown. Repeat the command with --reference %q: it moves nothing if this was done", reference))
	}
	return err
}

// takenBefore returns the error for an order whose reference was used before.
func takenBefore(t *ledger.TakenError) error {
	by := t.By
	return problem.Wrap(t, problem.Duplicate, "reference_taken", fmt.Sprintf("Nothing was moved: the reference %[2]s was used for %[1]s before: %[3]s to %[4]s at %[5]s",
		by.Kind, by.Reference, Worth(by.Account.Asset, by.Amount), by.Account.ID, by.At.UTC().Format(time.RFC3339)))
}

// codeUnknown is the code of a problem with an unknown outcome.
const codeUnknown = "outcome_unknown"
