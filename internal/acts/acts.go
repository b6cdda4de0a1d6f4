// Package acts does what people of the installation and of tenants ask for that moves money, or says who may. Each domain
// has a file of kinds: who may make and who may check one, what it says to people, and how it is done in one transaction with the end of its act (package approval) and
// its entry in the audit log. So an act is done once, whatever breaks off.
//
// An act has a place (package approval): a tenant's people ask for what concerns their own account, under the same kinds. A
// secret that is shown once, the text of a key or the link of an invitation, is made when its act is done and waits, sealed,
// for the act's maker (secret.go). An act that only takes something away is light: it needs no check where no line says
// otherwise.
//
// Files:
//
//	acts.go        an act made, checked and done, whatever its kind
//	bookings.go    an order about money booked once under its reference: of wallets, floats, credits and transfers
//	secret.go      what an act makes that is shown once to its maker or its approver, sealed until then
//	wallet.go      money funded to a wallet or adjusted in it
//	transfer.go    between two wallets, and what a wallet owes
//	float.go       money at a provider
//	credits.go     SMS credits sold and refunded
//	payment.go     what an unknown or contradicted payment came to
//	payout.go      a payout that waits for approval
//	policy.go      the lines that say which acts and payouts are checked, and by whom
//	tenant.go      accounts: settings, limits, payout addresses
//	key.go         API keys and the secret of webhooks
//	people.go      invitations, roles, persons disabled
//	sender.go      sender IDs reviewed or brought over
//	fees.go        what a payment costs
//	provider.go    an operation of a provider paused or resumed
//	route.go       which provider serves what
//	catalogue.go   networks, services, banks and prefixes
//	campaign.go    a campaign stopped
//	job.go         a dead letter run again
//	reopen.go      a range of numbers that is closed to one-time passwords, opened
package acts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/approval"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
	"github.com/makola/makola/internal/webhook"
)

// Deps is what acts are done with.
type Deps struct {
	Approval *approval.Store
	Ledger   *ledger.Ledger
	Tenants  *tenant.Store
	Access   *access.Access
	People   *identity.Identity
	Senders  *senderid.Store
	Webhooks *webhook.Webhooks
	// Seal keeps what an act made and is shown to its maker once; nil: it is given to whoever does the act alone.
	Seal      *config.Sealer
	Treasury  *treasury.Treasury
	Payments  *payments.Payments
	Messaging *messaging.Messaging
	Routes    *route.Table
	Jobs      *jobs.Queue
}

// Acts does acts. It is safe for concurrent use.
type Acts struct{ Deps }

// New makes an Acts.
func New(d Deps) *Acts { return &Acts{d} }

// finish ends an act in the transaction that does it; changes are what it changes, in the units of people. secret is what
// the act made and is shown once, such as the text of a key: for its maker and, where there is a second one, for its approver.
type finish func(tx *db.Tx, changes []audit.Change, secret ...string) error

// kind is one kind of act.
type kind struct {
	does string // for the policy, such as "Putting money into a wallet"
	rule approval.Rule
	do   func(a *Acts, ctx context.Context, act approval.Act, actor string, end finish) error
	// undone ends an act of the kind that is not done, with what that means for what it is about; end ends the act in the
	// transaction. nil: it means nothing.
	undone func(a *Acts, ctx context.Context, act approval.Act, end func(*db.Tx) error) error
}

// kinds are those that there are, by the names under which they are stored.
func kinds() map[string]kind {
	return map[string]kind{
		KindFund:     walletKind("Putting money into a wallet", (*treasury.Treasury).Fund),
		KindAdjust:   walletKind("Correcting a wallet", (*treasury.Treasury).Adjust),
		KindAddFloat: floatKind(),
		KindPolicy:   policyKind(),

		KindSellCredits:   creditsKind("Giving SMS credits to an account", 1, (*messaging.Messaging).SellCredits),
		KindRefundCredits: creditsKind("Taking SMS credits back", -1, (*messaging.Messaging).TakeCredits),
		KindFees:          feesKind(),
		KindPause:         switchKind("Pausing a provider", false), KindResume: switchKind("Letting a paused provider go on", true),
		KindCreateSender: createSenderKind(), KindReopen: reopenKind(),
		KindRoute: routeKind(), KindRerun: rerunKind(),
		KindCatalogue: catalogueKind("Changing the catalogue", false), KindBankCode: catalogueKind("Changing a provider's code of a bank", false), KindPrefix: catalogueKind("Changing whose numbers a range is", true),
		KindTransfer: transferKind(), KindRecover: recoverKind(),
		KindStopCampaign: stopKind(),
		KindSendPayout:   payoutKind(),
		KindResolve:      resolveKind(), KindContradict: contradictKind(), KindDecide: decideKind(),

		KindCreateTenant: createTenantKind(), KindTenant: settingsKind("Changing an account", identity.MakeTenants),
		KindBlock:     settingsKind("Blocking an account or letting it go on", identity.BlockTenants),
		KindSettings:  settingsKind("Changing the account's own settings", identity.MakeSettings),
		KindAddresses: settingsKind("Changing the addresses of payouts", identity.MakeAddresses),
		KindCreateKey: createKeyKind(), KindRotateKey: rotateKeyKind(), KindRevokeKey: revokeKeyKind(), KindSetKey: setKeyKind(),
		KindRotateSecret:  rotateSecretKind(),
		KindApproveSender: reviewKind("Approving a sender ID", senderid.Approved), KindRejectSender: reviewKind("Rejecting a sender ID", senderid.Rejected),
		KindInvite: inviteKind(), KindRole: roleKind(), KindDisable: disableKind(), KindEnable: enableKind(), KindReset: resetKind(),
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
	light                              bool // it needs no check where no line says otherwise
}

// make writes an act down, and does it where it needs no check.
func (a *Acts) make(ctx context.Context, by approval.By, d draft) (approval.Act, error) {
	if u, err := uuid.Parse(d.id); err != nil || u.String() != d.id {
		return approval.Act{}, problem.Field("id", "is not one of a form of ours: open it again")
	}
	reason := strings.TrimSpace(d.reason)
	if reason == "" || utf8.RuneCountInString(reason) > maxReason {
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
	k.rule.Light = k.rule.Light || d.light
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
	k, err := knownKind(act)
	if err != nil {
		return act, err
	}
	act.Digest = digest
	last := act.Approvals()+1 >= act.Needs
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

// knownKind gives the kind of an act, and refuses one that this server does not know.
func knownKind(act approval.Act) (kind, error) {
	k, known := kinds()[act.Kind]
	if !known {
		return kind{}, problem.New(problem.InProgress, "kind_unknown", "This server does not know acts of this kind: it is older than the one that took it")
	}
	return k, nil
}

// Get finds an act of a place.
func (a *Acts) Get(ctx context.Context, place, id string) (approval.Act, error) {
	act, err := a.Approval.Get(ctx, id)
	if err == nil && act.Place != place {
		err = problem.New(problem.NotFound, "act_not_found", "There is no such act")
	}
	if err != nil {
		return approval.Act{}, err
	}
	k, known := kinds()[act.Kind]
	if !known {
		return act, nil
	}
	return a.Approval.Counted(ctx, k.rule, act)
}

// after reads an act anew.
func (a *Acts) after(ctx context.Context, act approval.Act, err error) (approval.Act, error) {
	if err != nil {
		return act, err
	}
	return a.Approval.Get(ctx, act.ID)
}

// written makes a kind whose work is done in a transaction of its own; work makes no secret.
func written[P any](does string, rule approval.Rule, work func(a *Acts, tx *db.Tx, act approval.Act, p P) (changes []audit.Change, err error)) kind {
	return secretly(does, rule, func(*Acts, P) (string, error) { return "", nil }, func(a *Acts, tx *db.Tx, act approval.Act, p P, _ string) ([]audit.Change, []string, error) {
		changes, err := work(a, tx, act, p)
		return changes, nil, err
	})
}

// secretly is written for a kind that makes a secret. prepare runs once before the transaction, which may run twice.
func secretly[P, S any](does string, rule approval.Rule, prepare func(a *Acts, p P) (S, error), work func(a *Acts, tx *db.Tx, act approval.Act, p P, s S) (changes []audit.Change, made []string, err error)) kind {
	return kind{does: does, rule: rule, do: func(a *Acts, ctx context.Context, act approval.Act, _ string, end finish) error {
		var p P
		if err := json.Unmarshal(act.Payload, &p); err != nil {
			return fmt.Errorf("acts: the payload of %s: %w", act.ID, err)
		}
		s, err := prepare(a, p)
		if err != nil {
			return err
		}
		return a.Approval.Write(ctx, func(tx *db.Tx) error {
			changes, made, err := work(a, tx, act, p, s)
			if err != nil {
				return err
			}
			return end(tx, changes, made...)
		})
	}}
}

// errChanged is the refusal of an act about what is not as its maker saw it.
func errChanged(what string) error {
	return problem.New(problem.Invalid, "changed_since", what+" was changed since this was made")
}

// refusals are the kinds of problems by which a domain refuses an act for good.
var refusals = []problem.Kind{problem.Invalid, problem.NotFound, problem.Forbidden, problem.InsufficientFunds, problem.InsufficientCredits, problem.Duplicate, problem.Refused, problem.Gone}

// do does an act. An act whose end is refused stays as it is; one that the domain refuses becomes
// failed.
func (a *Acts) do(ctx context.Context, by approval.By, k kind, act approval.Act) (approval.Act, error) {
	var ended error // of the last run of the transaction
	ran, made := false, []string(nil)
	err := k.do(a, ctx, act, by.Visitor.Person.Email, func(tx *db.Tx, changes []audit.Change, secret ...string) error {
		ran = true
		ended = a.Approval.Finish(tx, by, k.rule, act, changes)
		if ended == nil && len(secret) > 0 {
			made = secret
			a.keep(tx, act, made)
		}
		return ended
	})
	if err == nil && !ran { // a verb that takes a repeat for done
		err = problem.New(problem.Duplicate, "done_before", "Nothing was left to do: it was done before")
	}
	switch {
	case err == nil:
		done, err := a.after(ctx, act, nil)
		if len(made) > 0 && act.Maker == by.Visitor.Person.ID {
			done.Secret, done.Code = made[0], strings.Join(made[1:], "")
		}
		return done, err
	case ended != nil:
		return act, err
	case errors.Is(err, db.ErrAmbiguous):
		return act, problem.Wrap(err, problem.Unavailable, "outcome_unknown", "The database's answer was lost. Open the act: it says whether it was done.")
	}
	var refused *problem.Error
	if !errors.As(err, &refused) || !slices.Contains(refusals, refused.Kind) {
		return act, err
	}
	if err := a.endUndone(ctx, k, act, func(tx *db.Tx) error { return a.Approval.Fail(tx, by, k.rule, act, refused.Message) }); err != nil {
		return act, err
	}
	act, err = a.after(ctx, act, nil)
	act.Refused = refused
	return act, err
}

// Reject ends an act that waits, by somebody who may check it.
func (a *Acts) Reject(ctx context.Context, by approval.By, id, digest, why string) (approval.Act, error) {
	act, err := a.Get(ctx, by.Place, id)
	if err != nil {
		return act, err
	}
	k, err := knownKind(act)
	if err != nil {
		return act, err
	}
	act.Digest = digest
	return a.after(ctx, act, a.endUndone(ctx, k, act, func(tx *db.Tx) error { return a.Approval.Reject(tx, by, k.rule, act, why) }))
}

// Withdraw ends an act that waits, by its maker.
func (a *Acts) Withdraw(ctx context.Context, by approval.By, id, digest string) (approval.Act, error) {
	act, err := a.Get(ctx, by.Place, id)
	if err != nil {
		return act, err
	}
	k, err := knownKind(act)
	if err != nil {
		return act, err
	}
	act.Digest = digest
	return a.after(ctx, act, a.endUndone(ctx, k, act, func(tx *db.Tx) error { return a.Approval.Withdraw(tx, by, act) }))
}

// endUndone ends an act that is not done, and with it what it is about.
func (a *Acts) endUndone(ctx context.Context, k kind, act approval.Act, end func(*db.Tx) error) error {
	if k.undone != nil {
		return k.undone(a, ctx, act, end)
	}
	return a.Approval.Write(ctx, end)
}

// Expire ends the acts that have waited for too long, and forgets secrets that were shown or have waited for too long. One
// that cannot be ended now holds up no other, and one of a kind that this server does not know is left to a newer one: it may
// hold something.
func (a *Acts) Expire(ctx context.Context) error {
	err := a.Approval.Forget(ctx)
	for last := ""; ; {
		list, failed := a.Approval.Expired(ctx, last)
		if failed != nil || len(list) == 0 {
			return errors.Join(err, failed)
		}
		for _, act := range list {
			last = act.ID
			k, unknown := knownKind(act)
			if unknown != nil {
				continue
			}
			if failed := a.endUndone(ctx, k, act, func(tx *db.Tx) error { return a.Approval.Expire(tx, act) }); failed != nil {
				err = errors.Join(err, fmt.Errorf("acts: %s has waited for too long and could not be ended: %w", act.ID, failed))
			}
		}
	}
}
