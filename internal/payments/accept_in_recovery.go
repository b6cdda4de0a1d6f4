package payments

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
)

// mintedDays is how many days back a minted reference is looked for.
const mintedDays = 7

// errUnclaimed refuses a claim that no provider knows.
var errUnclaimed = problem.New(problem.NotFound, "claim_not_known", "No provider has it")

// beforeDebit looks for a new request at every rail. One that a rail knows is
// adopted there: it is debited and asked about, never sent. The refusals leave no
// row.
func (p *Payments) beforeDebit(ctx context.Context, a *acceptance) error {
	s, err := p.recovered.state(ctx)
	if err != nil || !s.Lasts() || a.Payment.Channel == book.ChannelWallet {
		if err == nil && a.claimed { // as a new payment it would be sent
			return errRecovering("No recovery lasts any more. A claim is looked for while one does.", recoveryPause)
		}
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
	found := p.recovered.askAllRails(ctx, s, *pay, a.claimed)
	for day := 1; !found.known && pay.Details.Minted && pay.IdempotencyKey != "" && day <= mintedDays; day++ {
		at := p.clock.Now().AddDate(0, 0, -day)
		if !s.Since.IsZero() && at.AddDate(0, 0, 1).Before(s.Since) {
			break
		}
		earlier := *pay
		earlier.Reference = p.references.mintedOn(*pay, at)
		earlier.ProviderReference = p.references.make(earlier)
		earlier.AttemptReference = earlier.ProviderReference
		if before := p.recovered.askAllRails(ctx, s, earlier, false); before.known || before.differs || before.silent != "" {
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
		now := momentOf(p.clock)
		a.tracked.openedAt, a.tracked.sentAt, a.tracked.acceptedAt, a.tracked.nextAsk = now, now, now, now
		a.tracked.asking.Store(true)
	case found.differs:
		return p.recovered.conflict(ctx, *pay, found.rail.Name, "the provider has another amount or party under the reference: "+found.outcome.Message)
	case found.silent != "":
		return errRecovering("The service is being recovered, and a provider does not answer. Nothing was sent; try again shortly, with the same reference.", recoveryPause)
	case found.wait > 0:
		return errRecovering("The service is being recovered. Nothing was sent; try again shortly, with the same reference.", found.wait)
	}
	if a.claimed && !a.Adopted {
		return errUnclaimed
	}
	if a.Adopted { // a conflict about it, from before the wallet covered it, is over
		a.Also = all([]func(*db.Tx) error{a.Also, func(tx *db.Tx) error {
			return p.recovered.recovery.Settled(tx, pay.Tenant, string(pay.Kind), pay.Reference)
		}})
	}
	a.unsure = found.unsure
	a.tracked.searched = true
	return nil
}
