package changes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
)

// book takes the reference of an act's maker, or else the act's id, once for its kind.
func (a *Changes) book(tx *db.Tx, act Request, reference string, key ledger.Key, amount int64) error {
	err := a.Ledger.Book(tx, ledger.Booking{Kind: act.Kind, Reference: cmp.Or(reference, act.ID), Account: key, Amount: amount, Act: act.ID})
	if taken := (*ledger.TakenError)(nil); errors.As(err, &taken) {
		return problem.Wrap(err, problem.Duplicate, "reference_taken", fmt.Sprintf("Nothing was moved: the reference %s was taken before, at %s", taken.By.Reference, taken.By.At.UTC().Format(time.RFC3339)))
	}
	return err
}

// checkReference refuses a reference that is too long.
func checkReference(reference string) error {
	if utf8.RuneCountInString(reference) > MaxReference {
		return problem.Field("reference", fmt.Sprintf("must have at most %d characters", MaxReference))
	}
	return nil
}

// under says a reference in an act's sentence.
func under(reference string) string {
	if reference == "" {
		return ""
	}
	return fmt.Sprintf(", reference %q", reference)
}

// waitingAtOnce bounds how many acts that wait are looked at for a reference.
const waitingAtOnce = 1000

// WaitingUnder finds the request of a kind about a tenant that waits under a reference.
func (a *Changes) WaitingUnder(ctx context.Context, kind, tenantID, reference string) (act Request, found bool, err error) {
	list, err := a.Store.List(ctx, Filter{Tenant: tenantID, State: Waiting, Limit: waitingAtOnce})
	for _, act := range list {
		if act.Kind == kind && act.reference() == reference {
			return act, true, nil
		}
	}
	return Request{}, false, err
}
