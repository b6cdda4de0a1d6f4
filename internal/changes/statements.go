package changes

import (
	"context"
	"fmt"
	"slices"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/roles"
)

// The kinds of changes of exceptions. KindWriteOff moves no money. KindBookFee books the part of a provider's fee
// that exceeds the booked fee. KindSuspend moves differences into suspense, and KindRelease moves them out of it.
// KindAdopt credits a wallet with an unmatched credit at a provider.
const (
	KindWriteOff = "statement.write_off"
	KindBookFee  = "statement.fee"
	KindSuspend  = "statement.suspend"
	KindRelease  = "statement.release"
	KindAdopt    = "statement.adopt"
)

func (a *Changes) exceptionKinds() []Kind {
	rule := Rule{Make: roles.ChangeTreasury, Check: roles.ApproveMoney}
	bulk := func(name, title, did string, work func(r *reconcile.Reconcile, tx *db.Tx, ids []string, digest, request string) error) Kind {
		return written(a, name, title, rule, func(tx *db.Tx, request Request, p selected) ([]audit.Change, error) {
			change := audit.Change{What: fmt.Sprintf("%d exceptions of %s", len(p.IDs), p.Sum), Before: "open", After: did}
			return []audit.Change{change}, work(a.Reconcile, tx, p.IDs, p.Digest, request.ID)
		})
	}
	some := []Field{oneField, sourceField, kindField, mostField}
	return []Kind{
		bulk(KindWriteOff, "Write-off of exceptions", "written off", (*reconcile.Reconcile).WriteOff).by(a.lookSelected("Write off", nil), some...).showing(a.checkSelected),
		bulk(KindBookFee, "Fees of a provider by its statement", "booked", (*reconcile.Reconcile).BookFees).by(a.lookSelected("Book the fee of", a.checkFeeExceptions),
			oneField, sourceField, mostField).showing(a.checkSelected),
		bulk(KindSuspend, "Differences into suspense", "in suspense", (*reconcile.Reconcile).Suspend).by(a.lookSelected("Put into suspense", a.checkSuspend), some...).showing(a.checkSelected),
		{Name: KindRelease, Title: "Differences out of suspense", Rule: rule, Look: a.lookRelease, Check: a.checkRelease, Apply: a.releaseSuspense, Fields: slices.Concat(some,
			[]Field{{Name: "for", Label: "For", Options: releaseSides, Max: 8, Required: true}, walletField})},
		{Name: KindAdopt, Title: "Unmatched credit to a wallet", Rule: rule, Look: a.lookAdopt, Check: a.checkAdopt, Apply: a.adopt,
			Fields: []Field{oneField, sourceField, mostField, {Name: FieldWallet, Label: "Account", Hint: walletField.Hint, Max: 64, Required: true}}},
		a.pairKind(rule), a.pairAllKind(rule), a.evidenceKind(rule), a.endAllKind(rule),
	}
}

func (a *Changes) checkFeeExceptions(_ context.Context, list []reconcile.Exception) error {
	return reconcile.CheckFees(list)
}

// checkSuspend refuses exceptions that cannot be moved into suspense. It also refuses exceptions of a bank
// account that our books do not have.
func (a *Changes) checkSuspend(ctx context.Context, list []reconcile.Exception) error {
	seen := map[string]bool{}
	for _, e := range list {
		source, err := reconcile.ParseSource(e.Source)
		if err == nil && source.Bank() && !seen[e.Source] {
			seen[e.Source] = true
			_, err = a.ourBank(ctx, "source", source.Account)
		}
		if err != nil {
			return err
		}
	}
	return a.Reconcile.CheckSuspend(ctx, list)
}
