package delivery

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// acceptTogether accepts campaigns of one tenant in one transaction. Large campaigns are staged before, as by acceptStaged.
func (l *admissionCommit) acceptTogether(ctx context.Context, list []*admission, also func(tx *db.Tx) error) error {
	balance, err := l.ledger.Balance(ctx, list[0].tenant.SMSCredits())
	if err != nil {
		return err
	}
	if cost := costOf(list); balance < cost {
		return Shortage{balance, cost}.Err()
	}
	perhaps := false // after a lost answer to COMMIT the chunks may belong to campaigns
	if err = l.stageLarge(ctx, list); err == nil {
		err = l.admitTogether(ctx, list, also)
		perhaps = problem.Is(err, problem.Unavailable)
	}
	if err != nil && !perhaps {
		for _, a := range list {
			if len(a.chunks) > 0 && a.chunks[0].State == chunkStaged { // some of its chunks may be missing
				l.unstage(ctx, a)
			}
		}
	}
	if problem.Is(err, problem.InsufficientCredits) { // the refusal concerns only one campaign
		if balance, lost := l.ledger.Balance(ctx, list[0].tenant.SMSCredits()); lost == nil {
			return Shortage{balance, costOf(list)}.Err()
		}
	}
	return err
}

// stageLarge stages the large campaigns of a list, until one fails.
func (l *admissionCommit) stageLarge(ctx context.Context, list []*admission) error {
	for _, a := range list {
		if a.campaign.Recipients > stagedAbove {
			if err := l.stage(ctx, a); err != nil {
				return err
			}
		}
	}
	return nil
}

func costOf(list []*admission) (credits int64) {
	for _, a := range list {
		credits += a.campaign.Cost()
	}
	return credits
}

// admitTogether charges and stores all campaigns in one transaction, or none.
func (l *admissionCommit) admitTogether(ctx context.Context, list []*admission, also func(tx *db.Tx) error) error {
	landed := func(tx *db.Tx) (bool, error) {
		var one int64
		return tx.One(campaignThere, []any{list[0].campaign.Tenant, list[0].campaign.ID}, &one)
	}
	return l.db.WriteRecognising(ctx, landed, func(tx *db.Tx) error {
		verdicts, err := l.admitIn(ctx, tx, list)
		if err != nil {
			return err
		}
		for _, v := range verdicts {
			if v.Err != nil {
				return v.Err
			}
			if v.Value.known { // an earlier attempt committed them all
				return nil
			}
		}
		return also(tx)
	})
}
