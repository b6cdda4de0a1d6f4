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

// A restored database may lack payments that a provider has. In a recovery every rail is therefore searched for the
// payment's reference before a debit and before the first submission of an open payment. A rail that knows the
// reference has the payment, which is adopted there. A rail's silence never allows a payment.

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

// errRecovering refuses a request that may repeat one from before the restore.
func errRecovering(message string, wait time.Duration) *problem.Error {
	e := problem.New(problem.Unavailable, codeRecovering, message)
	e.RetryAfter = max(wait, time.Second).Truncate(time.Second)
	return e
}

// A searchResult is the combined answer of the rails about a reference.
type searchResult struct {
	rail      provider.Rail
	known     bool
	way       book.RefundWay   // way of a refund that the rail knows
	outcome   provider.Outcome // of the rail that knows it, or that has another payment
	differs   bool             // a rail has another payment under the reference
	wait      time.Duration    // until a not-found answer counts at all rails; zero: it counts
	silent    string           // a rail without an answer
	maybeSent bool             // the only rail may have it, and gets the same reference again
}

// queryAllRails queries every rail that could have a payment, also paused and failing ones. A single rail's silence
// does not block a payment, because the rail gets the same reference again and refuses a duplicate. It does block a
// claim, which is never sent. The rail's answer counts all the same: its amount may differ.
func (rs *recoverySearch) queryAllRails(ctx context.Context, s recovery.State, pay book.Payment, claimed bool) searchResult {
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

// waysOf returns the ways by which a payment may have been sent. The lost record of a refund may have had either way.
func waysOf(pay book.Payment) []book.RefundWay {
	if pay.RefundOf == "" {
		return []book.RefundWay{""}
	}
	return []book.RefundWay{book.RefundByRail, book.RefundByPayout}
}

// conflict stores a payment that cannot be adopted for operators, and refuses the request.
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

// unfound returns NotFound for an unknown payment. In a recovery it returns Unavailable, because the restored
// database may only lack it.
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

// firstOfRecovery reports whether the recovery has lasted less than a rail needs to show a submission. A refusal may then concern
// a payment sent before the restore. It is true if the state cannot be read.
func (rs *recoverySearch) firstOfRecovery(ctx context.Context, rail provider.Rail) bool {
	s, err := rs.state(ctx)
	return err != nil || s.Lasts() && (s.Closed() || rs.recovery.Age(s) < rail.SearchableAfter())
}
