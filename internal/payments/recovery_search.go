package payments

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/route"
)

// While a recovery lasts the database may have forgotten what a provider has
// done. Before a debit, and before the first submission of what was open, every rail
// that could have it is asked for the payment's one reference. A rail that knows
// it has the payment: it is adopted there. Nothing is paid on anybody's silence.

// A recoverySearch asks every rail for what the database may have forgotten.
type recoverySearch struct {
	recovery *recovery.Recovery // nil: the database never goes back in time (tests)
	watch    *recovery.Watch
	rails    *rails
	log      *slog.Logger
}

// recoveryPause is how long it takes until a request, or a job, comes again.
const recoveryPause = 30 * time.Second

// state gives the recovery that lasts, if any.
func (rs *recoverySearch) state(ctx context.Context) (recovery.State, error) {
	if rs.recovery == nil {
		return recovery.State{}, nil
	}
	if err := rs.watch.Sure(ctx); err != nil {
		return recovery.State{}, err
	}
	return rs.recovery.State(ctx)
}

// codeRecovering is the code of what a recovery turns away.
const codeRecovering = "recovering"

// errRecovering turns a request away that may be one of the time that was lost.
func errRecovering(message string, wait time.Duration) *problem.Error {
	e := problem.New(problem.Unavailable, codeRecovering, message)
	e.RetryAfter = max(wait, time.Second).Truncate(time.Second)
	return e
}

// A searchResult is what the rails say of a reference.
type searchResult struct {
	rail    provider.Rail
	known   bool
	way     book.RefundWay   // of a refund that it knows
	outcome provider.Outcome // of the rail that knows it, or that speaks of another payment
	differs bool             // a rail has something else under the reference
	wait    time.Duration    // until a "not known" counts at all rails; zero: it counts
	silent  string           // a rail that did not answer, or that cannot be asked
	unsure  bool             // the one rail there is may have it yet, and gets the same reference again
}

// askAllRails asks every rail that could have a payment, whatever routes, pauses
// and breakers say of it now. Where there is only one, its silence holds nothing up
// unless it is a claim, which is never sent: it gets the same reference again, and
// refuses it where it has it. Its answer counts all the same: it may have another amount, or what
// the wallet does not cover.
func (rs *recoverySearch) askAllRails(ctx context.Context, s recovery.State, pay book.Payment, claimed bool) searchResult {
	var rails []provider.Rail
	var asked []book.Payment // of each of them
	for _, way := range waysOf(pay) {
		about := pay
		about.RefundWay = way
		op, _ := operation(about)
		for _, r := range rs.rails.routes.Rails() {
			if r.Mode == pay.Mode && route.Can(r, op) {
				rails, asked = append(rails, r), append(asked, about)
			}
		}
	}
	gone := s.Gone(pay.Mode)
	alone := len(rails) < 2 && len(gone) == 0 && !claimed
	outcomes := make([]provider.Outcome, len(rails))
	var group sync.WaitGroup
	for i, rail := range rails {
		group.Go(func() { outcomes[i] = rs.rails.questions.ask(ctx, rail, asked[i]) })
	}
	group.Wait()
	var found searchResult
	if len(gone) > 0 {
		found.silent = gone[0]
	}
	for i, o := range outcomes {
		switch {
		case o.Class == provider.Accepted:
			return searchResult{rail: rails[i], known: true, way: asked[i].RefundWay, outcome: o}
		case o.Reason == provider.ReasonMismatch:
			found.rail, found.differs, found.outcome = rails[i], true, o
		case o.NotFound:
			found.wait = max(found.wait, rails[i].VisibleAfter-rs.recovery.Age(s))
		case !s.Skips(rails[i].Name, rails[i].Mode):
			found.silent = rails[i].Name
		}
	}
	if alone {
		found.unsure = found.wait > 0 || found.silent != ""
		found.wait, found.silent = 0, ""
	}
	return found
}

// waysOf are the ways in which a payment may have been sent. A refund may have gone either way in the time that was lost.
func waysOf(pay book.Payment) []book.RefundWay {
	if pay.RefundOf == "" {
		return []book.RefundWay{""}
	}
	return []book.RefundWay{book.RefundByRail, book.RefundByPayout}
}

// conflict keeps what cannot be adopted as it is for the operators, and turns the
// request away.
func (rs *recoverySearch) conflict(ctx context.Context, pay book.Payment, rail, why string) error {
	err := rs.recovery.Note(ctx, recovery.Conflict{Tenant: pay.Tenant, Kind: string(pay.Kind), Reference: pay.Reference,
		ProviderReference: pay.ProviderReference, Rail: rail, Amount: int64(pay.Gross()), Why: why})
	if err != nil {
		return err
	}
	rs.log.Error("recovery: payment completed at provider needs attention", "tenant", pay.Tenant, "kind", string(pay.Kind),
		"reference", pay.Reference, "provider", rail, "why", why)
	return errRecovering("The service is being recovered, and an operator looks at this request. Do not send it under another reference.", recoveryPause)
}

// unfound refuses a question about a payment that is not here: with NotFound, or,
// while a recovery lasts, as one that may only be forgotten.
func (rs *recoverySearch) unfound(ctx context.Context, code, message string) error {
	s, err := rs.state(ctx)
	switch {
	case err != nil:
		return err
	case s.Lasts():
		return errRecovering("The service is being recovered and may have forgotten this transaction. Send the request again with the same reference, or ask again later.", recoveryPause)
	}
	return problem.New(problem.NotFound, code, message)
}

// firstOfRecovery reports whether this process has seen a recovery last for less than a rail's VisibleAfter: a refusal may
// then be of a payment that was sent before it. It is true where the state cannot be read.
func (rs *recoverySearch) firstOfRecovery(ctx context.Context, rail provider.Rail) bool {
	s, err := rs.state(ctx)
	return err != nil || s.Lasts() && (s.Closed() || rs.recovery.Age(s) < rail.VisibleAfter)
}
