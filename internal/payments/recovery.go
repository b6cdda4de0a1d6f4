package payments

import (
	"context"
	"sync"
	"time"

	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// While a recovery lasts the database may have forgotten what a provider has
// done. Before a debit, and before the first submission of what was open, every rail
// that could have it is asked for the payment's one reference. A rail that knows
// it has the payment: it is adopted there. Nothing is paid on anybody's silence.

const (
	recoveryPause = 30 * time.Second // until a request, or a job, comes again
	mintedDays    = 7                // how many days back a minted reference is looked for
)

// recovering gives the recovery that lasts, if any.
func (p *Payments) recovering(ctx context.Context) (recovery.State, error) {
	if p.recovery == nil {
		return recovery.State{}, nil
	}
	if err := p.watch.Sure(ctx); err != nil {
		return recovery.State{}, err
	}
	return p.recovery.State(ctx)
}

// errRecovering turns a request away that may be one of the time that was lost.
func errRecovering(message string, wait time.Duration) *problem.Error {
	e := problem.New(problem.Unavailable, "recovering", message)
	e.RetryAfter = max(wait, time.Second).Truncate(time.Second)
	return e
}

// A search is what the rails say of a reference.
type search struct {
	rail    provider.Rail
	known   bool
	outcome provider.Outcome // of the rail that knows it, or that speaks of another payment
	differs bool             // a rail has something else under the reference
	wait    time.Duration    // until a "not known" counts at all rails; zero: it counts
	silent  string           // a rail that did not answer, or that cannot be asked
}

// askAllRails asks every rail that could have a payment, whatever routes, pauses
// and breakers say of it now. Where there is only one, its own answer to the same
// reference is enough, unless it is a claim, which is never sent.
func (p *Payments) askAllRails(ctx context.Context, s recovery.State, pay book.Payment, claimed bool) search {
	op, _ := operation(pay)
	var rails []provider.Rail
	for _, r := range p.routes.Rails() {
		if r.Mode == pay.Mode && route.Can(r, op) {
			rails = append(rails, r)
		}
	}
	gone := s.Gone(pay.Mode)
	if len(rails) < 2 && len(gone) == 0 && !claimed {
		// The one rail that can have it gets the same reference again, which it refuses.
		return search{}
	}
	outcomes := make([]provider.Outcome, len(rails))
	var group sync.WaitGroup
	for i, rail := range rails {
		group.Go(func() { outcomes[i] = p.ask(ctx, rail, pay) })
	}
	group.Wait()
	var found search
	if len(gone) > 0 {
		found.silent = gone[0]
	}
	for i, o := range outcomes {
		switch {
		case o.Class == provider.Accepted:
			return search{rail: rails[i], known: true, outcome: o}
		case o.Reason == provider.ReasonMismatch:
			found.rail, found.differs, found.outcome = rails[i], true, o
		case o.NotFound:
			found.wait = max(found.wait, rails[i].VisibleAfter-p.clock.Since(s.BegunAt))
		case !s.Skips(rails[i].Name, rails[i].Mode):
			found.silent = rails[i].Name
		}
	}
	return found
}

// beforeDebit looks for a new request at every rail. One that a rail knows is
// adopted there: it is debited and asked about, never sent. The refusals leave no
// row.
func (p *Payments) beforeDebit(ctx context.Context, a *acceptance) error {
	s, err := p.recovering(ctx)
	if err != nil || !s.Lasts() || a.Payment.Channel == book.ChannelWallet {
		return err
	}
	pay := &a.Payment
	switch {
	case s.Closed():
		return errRecovering("The service is being recovered. Nothing was sent; try again shortly, with the same reference.", recoveryPause)
	case pay.Details.Minted && pay.IdempotencyKey == "" && !s.Allows(pay.Tenant):
		return errRecovering("The service is being recovered. A purchase needs a reference of its own or an Idempotency-Key until that is done.", recoveryPause)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*askTime)
	defer cancel()
	found := p.askAllRails(ctx, s, *pay, a.claimed)
	for day := 1; !found.known && pay.Details.Minted && pay.IdempotencyKey != "" && day <= mintedDays; day++ {
		at := p.clock.Now().AddDate(0, 0, -day)
		if !s.Since.IsZero() && at.AddDate(0, 0, 1).Before(s.Since) {
			break
		}
		earlier := *pay
		earlier.Reference = p.mintedOn(*pay, at)
		earlier.ProviderReference = p.references.make(earlier)
		earlier.AttemptReference = earlier.ProviderReference
		if before := p.askAllRails(ctx, s, earlier, false); before.known || before.differs || before.silent != "" {
			found = before
			*pay = earlier
		}
	}
	switch {
	case found.known:
		pay.Rail, pay.SendingAt, pay.UpstreamID = found.rail.Name, p.clock.Now(), found.outcome.UpstreamID
		a.Adopted = true
		if c := a.Child; c != nil { // the top-up of an earlier day has that day's reference, too
			c.Reference = pay.Reference
			c.ProviderReference = p.references.make(*c)
			c.AttemptReference = c.ProviderReference
		}
		a.tracked.begins(*pay)
		a.tracked.rail, a.tracked.stage, a.tracked.arrived = pay.Rail, stageSent, 1
		a.tracked.openedAt, a.tracked.acceptedAt = p.clock.Now(), p.clock.Now()
		a.tracked.nextAsk = p.clock.Now()
		a.tracked.asking.Store(true)
	case found.differs:
		return p.conflict(ctx, *pay, found.rail.Name, "the provider has another amount or party under the reference: "+found.outcome.Message)
	case found.silent != "":
		return errRecovering("The service is being recovered, and a provider does not answer. Nothing was sent; try again shortly, with the same reference.", recoveryPause)
	case found.wait > 0:
		return errRecovering("The service is being recovered. Nothing was sent; try again shortly, with the same reference.", found.wait)
	}
	if a.claimed && !a.Adopted {
		return errUnclaimed
	}
	a.tracked.searched = true
	return nil
}

// conflict keeps what cannot be adopted as it is for the operators, and turns the
// request away.
func (p *Payments) conflict(ctx context.Context, pay book.Payment, rail, why string) error {
	err := p.recovery.Note(ctx, recovery.Conflict{Tenant: pay.Tenant, Kind: string(pay.Kind), Reference: pay.Reference,
		ProviderReference: pay.ProviderReference, Rail: rail, Amount: int64(pay.Gross()), Why: why})
	if err != nil {
		return err
	}
	p.log.Error("recovery: a payment that a provider has done needs an operator", "tenant", pay.Tenant, "kind", string(pay.Kind),
		"reference", pay.Reference, "provider", rail, "why", why)
	return errRecovering("The service is being recovered, and an operator looks at this request. Do not send it under another reference.", recoveryPause)
}

// beforePost looks for a payment at every rail before its first submission in a
// recovery: the row may be of before, and have gone to another rail since. go on
// says that it may be submitted; else the outcome is the job's.
func (r *run) beforePost(ctx context.Context) (goOn bool, out jobs.Outcome) {
	s, err := r.p.recovering(ctx)
	switch {
	case err != nil:
		r.t.answer()
		r.p.trouble(ctx, err, "whether a recovery lasts could not be read", "payment", r.row.ID)
		return false, jobs.Later(troubleTime)
	case !s.Lasts() || r.t.searched && !s.Closed():
		return true, out
	case s.Closed():
		r.t.answer()
		return false, jobs.Later(recoveryPause)
	}
	found := r.p.askAllRails(ctx, s, r.row, false)
	switch {
	case found.known:
		return false, r.adopt(ctx, found)
	case found.differs:
		r.t.answer()
		return false, r.escalate(ctx, provider.Unknown, provider.ReasonMismatch)
	case found.silent != "":
		r.t.answer()
		return false, jobs.Later(recoveryPause)
	case found.wait > 0:
		r.t.answer()
		return false, jobs.Later(found.wait)
	}
	r.t.searched = true
	return true, out
}

// adopt gives an open payment to the rail that has it.
func (r *run) adopt(ctx context.Context, found search) jobs.Outcome {
	row := r.row
	row.Rail, row.SendingAt = found.rail.Name, r.p.clock.Now()
	if row.Rail != r.row.Rail {
		row.Attempt, row.Posts, row.Unsent = row.Attempt+1, 1, 0
	}
	if ok, out := r.mark(ctx, book.EventAdopted, row, ""); !ok {
		return out
	}
	r.p.log.Warn("recovery: a payment was adopted where a provider has it", "payment", r.row.ID, "provider", row.Rail)
	r.t.searched, r.t.stage, r.t.arrived = true, stageSent, 1
	r.t.acceptedAt = r.p.clock.Now()
	r.rail = found.rail
	return r.apply(ctx, fromQuestion, found.outcome)
}

// errUnclaimed refuses a claim that no provider knows.
var errUnclaimed = problem.New(problem.NotFound, "claim_not_known", "No provider has it")

// claims looks for what operators claim that providers have done. It runs with the
// sweep, on one node, and does nothing unless a recovery is open.
func (p *Payments) claims(ctx context.Context) error {
	s, err := p.recovering(ctx)
	if err != nil || !s.Lasts() || s.Closed() {
		return err
	}
	waiting, err := p.recovery.Waiting(ctx)
	for _, c := range waiting {
		if err == nil {
			err = p.claim(ctx, c)
		}
	}
	return err
}

// claim adopts one payment, or says why not. What a provider does not answer, or
// not yet, waits on.
func (p *Payments) claim(ctx context.Context, c recovery.Claim) error {
	t, err := p.tenants.Get(ctx, c.Tenant)
	if err != nil {
		return err
	}
	pay := asked(idempotency.Caller{Tenant: c.Tenant}, t, book.Kind(c.Kind))
	pay.Reference, pay.Amount, pay.Channel, pay.Account, pay.BankID = c.Reference, money.Pesewas(c.Amount), c.Channel, c.Party, c.Bank
	products := map[book.Kind]tenant.Product{book.KindPayout: tenant.Payout, book.KindCollection: tenant.Collection}
	if product, charged := products[pay.Kind]; charged {
		if pay.Charges, pay.Plan, err = p.tenants.Fee(ctx, t.ID, product, pay.Channel, pay.Amount, p.clock.Now()); err != nil {
			return err
		}
	}
	_, err = p.accept(ctx, &acceptance{Acceptance: book.Acceptance{Payment: pay}, claimed: true})
	if err == nil {
		return p.recovery.Judged(ctx, c, recovery.ClaimAdopted, "")
	}
	switch e := problem.From(err); e.Kind {
	case problem.Duplicate:
		return p.recovery.Judged(ctx, c, recovery.ClaimRefused, "it is in the books")
	case problem.NotFound, problem.Invalid:
		return p.recovery.Judged(ctx, c, recovery.ClaimRefused, e.Message)
	case problem.Unavailable: // not yet, no answer, or a conflict that an operator ends
		return nil
	}
	return err
}

// unfound refuses a question about a payment that is not here: with NotFound, or,
// while a recovery lasts, as one that may only be forgotten.
func (p *Payments) unfound(ctx context.Context, code, message string) error {
	s, err := p.recovering(ctx)
	switch {
	case err != nil:
		return err
	case s.Lasts():
		return errRecovering("The service is being recovered and may have forgotten this transaction. Send the request again with the same reference, or ask again later.", recoveryPause)
	}
	return problem.New(problem.NotFound, code, message)
}

// firstOfRecovery says whether a recovery began less than V of a rail ago: a
// refusal may then be of what the life before has sent. A state that cannot be
// read counts as one.
func (p *Payments) firstOfRecovery(ctx context.Context, rail provider.Rail) bool {
	s, err := p.recovering(ctx)
	return err != nil || s.Lasts() && (s.Closed() || p.clock.Since(s.BegunAt) < rail.VisibleAfter)
}
