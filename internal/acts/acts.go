// Package acts does what people of the installation and of tenants ask for that moves money, or says who may. Each kind is one file: who may make and who
// may check it, what it says to people, and how it is done in one transaction with the end of its act (package approval) and
// its entry in the audit log. So an act is done once, whatever breaks off.
package acts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/approval"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// Deps is what acts are done with.
type Deps struct {
	Approval *approval.Store
	Ledger   *ledger.Ledger
	Tenants  *tenant.Store
	// Fund puts money into a tenant's wallet, and Adjust corrects one.
	Fund, Adjust Mover
}

// Mover moves money into a tenant's wallet, or out of it below zero; also runs in the transaction that moves it.
type Mover func(ctx context.Context, tenant string, amount money.Pesewas, reason, actor string, also ...func(*db.Tx) error) error

// Acts does acts. It is safe for concurrent use.
type Acts struct{ Deps }

// New makes an Acts.
func New(d Deps) *Acts { return &Acts{d} }

// finish ends an act in the transaction that does it; changes are what it changes, in the units of people.
type finish func(tx *db.Tx, changes []audit.Change) error

// kind is one kind of act.
type kind struct {
	does string // for the policy, such as "Putting money into a wallet"
	rule approval.Rule
	do   func(a *Acts, ctx context.Context, act approval.Act, actor string, end finish) error
}

// kinds are those that there are, by the names under which they are stored.
func kinds() map[string]kind {
	return map[string]kind{
		KindFund:   walletKind("Putting money into a wallet", func(a *Acts) Mover { return a.Deps.Fund }),
		KindAdjust: walletKind("Correcting a wallet", func(a *Acts) Mover { return a.Deps.Adjust }),
		KindPolicy: policyKind(),
	}
}

// Rule says who may make and check acts of a kind.
func Rule(name string) (approval.Rule, bool) {
	k, known := kinds()[name]
	return k.rule, known
}

// maxReason is how many characters a reason may have.
const maxReason = 500

// draft is what somebody asks for.
type draft struct {
	id, kind, tenant, sentence, reason string
	amount                             money.Pesewas
	payload                            any
}

// make writes an act down, and does it where it needs no check.
func (a *Acts) make(ctx context.Context, by approval.By, d draft) (approval.Act, error) {
	if u, err := uuid.Parse(d.id); err != nil || u.String() != d.id {
		return approval.Act{}, problem.Field("id", "is not one of a form of ours: open it again")
	}
	reason := strings.TrimSpace(d.reason)
	if reason == "" || len(reason) > maxReason {
		return approval.Act{}, problem.Field("reason", fmt.Sprintf("is required, with at most %d characters", maxReason))
	}
	text, err := json.Marshal(d.payload)
	if err != nil {
		return approval.Act{}, err
	}
	if by.Place != identity.Installation && d.tenant != by.Place { // a tenant's people act about their own account
		return approval.Act{}, problem.New(problem.NotFound, "tenant_not_found", "Account not found")
	}
	k := kinds()[d.kind]
	act, err := a.Approval.Make(ctx, by, k.rule, approval.Act{ID: d.id, Kind: d.kind, Tenant: d.tenant, Payload: text, Sentence: d.sentence, Reason: reason, Amount: d.amount})
	if err != nil || act.Needs > 0 || act.State != approval.Waiting {
		return act, err
	}
	done, err := a.do(ctx, by, k, act)
	if err != nil && problem.From(err).Code == approval.CodeEnded { // by the same form, at the same moment
		return a.Approval.Get(ctx, act.ID)
	}
	return done, err
}

// Approve approves an act that is what its digest says and, with the last approval that it needs, does it. The act that it
// answers says what became of it.
func (a *Acts) Approve(ctx context.Context, by approval.By, id, digest string) (approval.Act, error) {
	act, err := a.Get(ctx, by.Place, id)
	if err != nil {
		return act, err
	}
	k, known := kinds()[act.Kind]
	if !known {
		return act, problem.New(problem.InProgress, "kind_unknown", "This server does not know acts of this kind: it is older than the one that took it")
	}
	act.Digest = digest
	last := len(act.Checks)+1 >= act.Needs
	for range 2 { // somebody else may check at the same moment
		if !last {
			if err = a.Approval.Approve(ctx, by, k.rule, act); !errors.Is(err, approval.ErrLast) {
				return a.after(ctx, act, err)
			}
		}
		var done approval.Act
		if done, err = a.do(ctx, by, k, act); !errors.Is(err, approval.ErrMore) {
			return done, err
		}
		last = false
	}
	return act, err
}

// Get finds an act of a place.
func (a *Acts) Get(ctx context.Context, place, id string) (approval.Act, error) {
	act, err := a.Approval.Get(ctx, id)
	if err == nil && act.Place != place {
		return approval.Act{}, problem.New(problem.NotFound, "act_not_found", "There is no such act")
	}
	return act, err
}

// after reads an act anew.
func (a *Acts) after(ctx context.Context, act approval.Act, err error) (approval.Act, error) {
	if err != nil {
		return act, err
	}
	return a.Approval.Get(ctx, act.ID)
}

// refusals are the kinds of problems by which a domain refuses an act for good.
var refusals = []problem.Kind{problem.Invalid, problem.NotFound, problem.Forbidden, problem.InsufficientFunds, problem.InsufficientCredits, problem.Duplicate, problem.Refused, problem.Gone}

// do does an act. What its own end refuses leaves it as it is; what the domain refuses makes it failed.
func (a *Acts) do(ctx context.Context, by approval.By, k kind, act approval.Act) (approval.Act, error) {
	var ended error // of the last run of the transaction
	err := k.do(a, ctx, act, by.Visitor.Person.Email, func(tx *db.Tx, changes []audit.Change) error {
		ended = a.Approval.Finish(tx, by, k.rule, act, changes)
		return ended
	})
	switch {
	case err == nil:
		return a.after(ctx, act, nil)
	case ended != nil:
		return act, err
	case errors.Is(err, db.ErrAmbiguous):
		return act, problem.Wrap(err, problem.Unavailable, "outcome_unknown", "The database's answer was lost. Open the act: it says whether it was done.")
	}
	var refused *problem.Error
	if !errors.As(err, &refused) || !slices.Contains(refusals, refused.Kind) {
		return act, err
	}
	if err := a.Approval.Fail(ctx, by, k.rule, act, refused.Message); err != nil {
		return act, err
	}
	return a.after(ctx, act, nil)
}

// Reject ends an act that waits, by somebody who may check it.
func (a *Acts) Reject(ctx context.Context, by approval.By, id, digest, why string) (approval.Act, error) {
	act, err := a.Get(ctx, by.Place, id)
	if err != nil {
		return act, err
	}
	act.Digest = digest
	return a.after(ctx, act, a.Approval.Reject(ctx, by, kinds()[act.Kind].rule, act, why))
}

// Withdraw ends an act that waits, by its maker.
func (a *Acts) Withdraw(ctx context.Context, by approval.By, id, digest string) (approval.Act, error) {
	act, err := a.Get(ctx, by.Place, id)
	if err != nil {
		return act, err
	}
	act.Digest = digest
	return a.after(ctx, act, a.Approval.Withdraw(ctx, by, act))
}
