package payments

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/route"
)

// A restored database may lack payments that a provider has. In a recovery every rail is therefore searched for a
// payment's reference before the debit, and before the first submission of an open payment. If a rail knows the
// reference, it has the payment, which is then adopted there. A rail that does not answer never allows a payment.

// A recoverySearch searches all rails for payments that the database may lack.
type recoverySearch struct {
	recovery *recovery.Recovery // nil in tests without a restore
	watch    *recovery.Watch
	rails    *rails
	log      *slog.Logger
}

// recoveryPause is the time until a request or job is retried.
const recoveryPause = 30 * time.Second

// state returns the current recovery, if any.
func (rs *recoverySearch) state(ctx context.Context) (recovery.State, error) {
	if rs.recovery == nil {
		return recovery.State{}, nil
	}
	if err := rs.watch.Sure(ctx); err != nil {
		return recovery.State{}, err
	}
	return rs.recovery.State(ctx)
}

// codeRecovering is the code of requests that a recovery refuses.
const codeRecovering = "recovering"

// errRecovering refuses a request that may repeat a request from before the restore.
func errRecovering(message string, wait time.Duration) *problem.Error {
	e := problem.New(problem.Unavailable, codeRecovering, message)
	e.RetryAfter = max(wait, time.Second).Truncate(time.Second)
	return e
}

// A searchResult combines the answers of all rails about a reference.
type searchResult struct {
	rail      provider.Rail
	known     bool
	way       book.RefundWay   // way of a refund that the rail knows
	outcome   provider.Outcome // of the rail that knows the reference, or that has another payment under it
	differs   bool             // a rail has another payment under the reference
	wait      time.Duration    // until not-found answers of all rails count as proof; zero: they count now
	silent    string           // a rail that did not answer
	maybeSent bool             // the only rail may have the payment; it gets the same reference again
}

// queryAllRails queries every rail that could have a payment, including paused and failing rails. If there is only
// one rail, its silence does not block the payment, because that rail gets the same reference again and refuses a
// duplicate. Silence does block a claim, because a claim is never sent. An answer of the only rail always counts,
// because it may have another amount under the reference.
func (rs *recoverySearch) queryAllRails(ctx context.Context, s recovery.State, pay book.Payment, claimed bool) searchResult {
	var rails []provider.Rail
	var asked []book.Payment // the payment whose reference the rails are queried for
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
	alone := len(rails) < 2 && len(gone) == 0 && !claimed &&
		!slices.ContainsFunc(rails, func(r provider.Rail) bool { return requestIn(asked[0], r.MayDouble) })
	outcomes := make([]provider.Outcome, len(rails))
	var group sync.WaitGroup
	for i, rail := range rails {
		group.Go(func() { outcomes[i] = rs.rails.queries.status(ctx, rail, asked[i]) })
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
			found.wait = max(found.wait, rails[i].SearchableAfter()-rs.recovery.Age(s))
		case !s.Skips(rails[i].Name, rails[i].Mode):
			found.silent = rails[i].Name
		}
	}
	if alone {
		found.maybeSent = found.wait > 0 || found.silent != ""
		found.wait, found.silent = 0, ""
	}
	return found
}

// waysOf returns the ways in which a refund may have been sent. A refund whose record was lost may have been sent in
// either way.
func waysOf(pay book.Payment) []book.RefundWay {
	if pay.RefundOf == "" {
		return []book.RefundWay{""}
	}
	return []book.RefundWay{book.RefundByRail, book.RefundByPayout}
}

// conflict stores a conflict about a payment that cannot be adopted, for operators, and refuses the request.
func (rs *recoverySearch) conflict(ctx context.Context, pay book.Payment, rail, why string) error {
	err := rs.recovery.Note(ctx, recovery.Conflict{Tenant: pay.Tenant, Kind: string(pay.Kind), Reference: pay.Reference,
		ProviderReference: pay.ProviderReference, Rail: rail, Amount: int64(pay.Gross()), Why: why})
	if err != nil {
		return err
	}
	rs.log.Error("recovery: payment completed at provider needs attention", "tenant", pay.Tenant, "kind", string(pay.Kind),
		"reference", pay.Reference, "provider", rail, "why", why)
	return errRecovering("The service is being recovered, and an operator reviews this request. Do not send it under another reference.", recoveryPause)
}

// unfound returns NotFound for an unknown payment. In a recovery it returns Unavailable, because the payment may
// exist and only be missing from the restored database.
func (rs *recoverySearch) unfound(ctx context.Context, code, message string) error {
	s, err := rs.state(ctx)
	switch {
	case err != nil:
		return err
	case s.Lasts():
		return errRecovering("The service is being recovered and may lack this transaction. Send the request again with the same reference, or query it later.", recoveryPause)
	}
	return problem.New(problem.NotFound, code, message)
}

// firstOfRecovery reports whether the recovery is younger than the rail's SearchableAfter. In this time a refusal
// may be about a payment that was sent before the restore. It returns true if the recovery state cannot be read.
func (rs *recoverySearch) firstOfRecovery(ctx context.Context, rail provider.Rail) bool {
	s, err := rs.state(ctx)
	return err != nil || s.Lasts() && (s.Closed() || rs.recovery.Age(s) < rail.SearchableAfter())
}
