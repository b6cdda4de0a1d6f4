package changes

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/makola/makola/internal/access"
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
	Store    *Store
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

// Changes does acts. It is safe for concurrent use.
type Changes struct {
	Deps
	kinds map[string]kind // by the names under which they are stored
}

// finish ends an act in the transaction that does it; changes are what it changes, in the units of people. secret is what
// the act made and is shown once, such as the text of a key: for its maker and, where there is a second one, for its approver.
type finish func(tx *db.Tx, changes []audit.Change, secret ...string) error

// kind is one kind of act.
type kind struct {
	// title, fields and ask are those of a kind that is requested by its fields alone; zero: its own page and command know more.
	title  string
	fields []Field
	ask    func(a *Changes, ctx context.Context, by By, id string, v Values, reason string) (Request, error)

	does string // for the policy, such as "Putting money into a wallet"
	rule Rule
	do   func(a *Changes, ctx context.Context, act *Request, actor string, end finish) error
	// undone ends an act of the kind that is not done, with what that means for what it is about; end ends the act in the
	// transaction. nil: it means nothing.
	undone func(a *Changes, ctx context.Context, act Request, end func(*db.Tx) error) error
}

// by returns the kind with the fields by which it is requested.
func (k kind) by(title string, ask func(a *Changes, ctx context.Context, by By, id string, v Values, reason string) (Request, error), fields ...Field) kind {
	k.title, k.ask, k.fields = title, ask, fields
	return k
}

// Rule returns the rule of a kind, and whether this program knows the kind.
func (a *Changes) Rule(name string) (Rule, bool) {
	k, known := a.kinds[name]
	return k.rule, known
}

// maxReason is how many characters a reason may have.
const maxReason = 500

// noReason stands for the reason that a command without a person did not give.
const noReason = "none given"

// draft is what somebody asks for.
type draft struct {
	id, kind, tenant, sentence, reason string
	amount                             money.Pesewas
	payload                            any
	light                              bool // it needs no check where no line says otherwise
}

// written makes a kind whose work is done in a transaction of its own; work makes no secret.
func written[P any](does string, rule Rule, work func(a *Changes, tx *db.Tx, act Request, p P) (changes []audit.Change, err error)) kind {
	return secretly(does, rule, func(context.Context, *Changes, P) (string, error) { return "", nil }, func(a *Changes, tx *db.Tx, act Request, p P, _ string) ([]audit.Change, []string, error) {
		changes, err := work(a, tx, act, p)
		return changes, nil, err
	})
}

// secretly is written for a kind that makes a secret. prepare runs once before the transaction, which may run twice.
func secretly[P, S any](does string, rule Rule, prepare func(ctx context.Context, a *Changes, p P) (S, error), work func(a *Changes, tx *db.Tx, act Request, p P, s S) (changes []audit.Change, made []string, err error)) kind {
	return kind{does: does, rule: rule, do: func(a *Changes, ctx context.Context, act *Request, _ string, end finish) error {
		var p P
		if err := json.Unmarshal(act.Payload, &p); err != nil {
			return fmt.Errorf("changes: the payload of %s: %w", act.ID, err)
		}
		s, err := prepare(ctx, a, p)
		if err != nil {
			return err
		}
		return a.Store.Apply(ctx, *act, func(tx *db.Tx) error {
			changes, made, err := work(a, tx, *act, p, s)
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
