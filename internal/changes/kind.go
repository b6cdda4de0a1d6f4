package changes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/closing"
	"github.com/makola/makola/internal/compose"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/inbox"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/lookup"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
	"github.com/makola/makola/internal/webhook"
)

// Deps are the parts of the program that Changes uses.
type Deps struct {
	Store    *Store
	Ledger   *ledger.Ledger
	Tenants  *tenant.Store
	Access   *access.Access
	People   *identity.Identity
	Senders  *senderid.Store
	Inbox    *inbox.Store
	Webhooks *webhook.Webhooks
	// Seal stores a secret of the change, which is shown to the requester once. If Seal is nil, only the person who
	// applies the change gets the secret.
	Seal *config.Sealer
	// MailLink sends the link of an invitation or a reset to the person, in the transaction that makes it. If it is
	// nil, the requester is shown the link.
	MailLink func(tx *db.Tx, email, token string) error
	// ShownKey is the key of the hashes of the facts that an approver was shown.
	ShownKey  []byte
	Treasury  *treasury.Treasury
	Closing   *closing.Books
	Payments  *payments.Payments
	Reconcile *reconcile.Reconcile
	Batches   *batch.Batches
	Messaging *messaging.Messaging
	Compose   *compose.Store
	Routes    *route.Table
	Jobs      *jobs.Queue
	Lookups   *lookup.Lookups // nil in commands
}

// Changes makes, approves and applies requests. It is safe for concurrent use.
type Changes struct {
	Deps
	kinds map[string]Kind // kinds by their stored names
}

// Finish ends a request in the transaction that applies it. changes are the changed values as people read them.
// secret, such as the text of a key, is shown once to the requester and, if there is an approver, once to the
// approver.
type Finish func(tx *db.Tx, changes []audit.Change, secret ...string) error

// Kind is one kind of change: how it is requested, who requests and approves it, and how it is applied. Another package passes kinds of
// its own to New.
type Kind struct {
	Name  string // stored name of the kind; never changes
	Title string // a noun, such as "Deposit to a wallet"
	Rule
	Fields []Field
	// Served is set for a kind that only a server applies, because it needs the providers. A command stores the request.
	Served bool
	// Instead names the way to request a kind that has no command. Empty: makola change requests it.
	Instead string
	// Look reads the values of the fields and the present state. It may call slow services, because no transaction is
	// open.
	Look func(ctx context.Context, o Order) (Draft, error)
	// Check returns the facts for requester and approver. It only reads, and runs again for each page of an approver.
	// nil: no facts.
	Check func(ctx context.Context, r Request) ([]Fact, error)
	// Apply opens the transaction that applies the request, or joins one, and runs finish in it. It refuses with
	// changed_since if the subject differs from the payload.
	Apply func(ctx context.Context, r *Request, finish Finish) error
	// Undone releases the subject of a request that is not applied. end ends the request in the same transaction. nil:
	// the subject needs no release.
	Undone func(ctx context.Context, r Request, end func(*db.Tx) error) error
}

// Order is a request of a change by the values of its fields.
type Order struct {
	By     By
	ID     string // id of the form
	Values Values
	Reason string
}

// Draft is a change that may be requested.
type Draft struct {
	Kind     string // empty: the kind in the order
	Tenant   string // tenant that the change concerns; empty: the installation
	Sentence string // the payload as a sentence for people
	Amount   money.Pesewas
	Payload  any
	Barred   []string // ids of the people, in addition to the requester, who may not approve it
	Light    bool     // needs no approver unless a line of the policy requires one
	Again    *Request // request that the same form has already made
	Reason   string   // reason if the requester gave none
	// Accept accepts the subject of the request in a transaction of its domain and returns the subject's id, which
	// becomes the request's id. That transaction stores the request with the function that plan returns. If Accept is
	// nil, the subject exists already or Apply makes it.
	Accept func(ctx context.Context, plan Plan) (id string, err error)
	// Facts are the facts of a subject that Accept has not accepted yet, because Check cannot find it. Changes are
	// the values for the audit log if the request needs no approver.
	Facts   []Fact
	Changes []audit.Change
	// Begin runs in the transaction that stores the request, and changes the request's subject. It has at most
	// one function.
	Begin []func(tx *db.Tx) error
}

// Plan decides how many approvers the request of a subject needs. write stores the request, waiting or done, in the
// transaction that accepts the subject.
type Plan func(ctx context.Context, r Request) (planned Request, write func(tx *db.Tx) error, err error)

// Rule returns the rule of a kind, and whether this program knows the kind.
func (a *Changes) Rule(name string) (Rule, bool) {
	k, known := a.kinds[name]
	return k.Rule, known
}

// Title returns the noun of a kind, or the kind's name if this program does not know the kind.
func (a *Changes) Title(name string) string { return cmp.Or(a.kinds[name].Title, name) }

// maxReason is the longest reason, in characters.
const maxReason = 500

// noReason is stored if a command without a person gave no reason.
const noReason = "none given"

// payloadOf reads the payload of a request.
func payloadOf[P any](r Request) (p P, err error) {
	if err = json.Unmarshal(r.Payload, &p); err != nil {
		err = fmt.Errorf("changes: parse the payload of %s: %w", r.ID, err)
	}
	return p, err
}

// written returns a kind whose work runs in its own transaction and makes no secret.
func written[P any](a *Changes, name, title string, rule Rule, work func(tx *db.Tx, request Request, p P) (changes []audit.Change, err error)) Kind {
	return secretly(a, name, title, rule, func(context.Context, P) (string, error) { return "", nil }, func(tx *db.Tx, request Request, p P, _ string) ([]audit.Change, []string, error) {
		changes, err := work(tx, request, p)
		return changes, nil, err
	})
}

// secretly makes a kind like written that also makes a secret. prepare runs once before the transaction, because the
// transaction may run twice.
func secretly[P, S any](a *Changes, name, title string, rule Rule, prepare func(ctx context.Context, p P) (S, error), work func(tx *db.Tx, request Request, p P, s S) (changes []audit.Change, made []string, err error)) Kind {
	return Kind{Name: name, Title: title, Rule: rule, Apply: func(ctx context.Context, request *Request, finish Finish) error {
		p, err := payloadOf[P](*request)
		if err != nil {
			return err
		}
		s, err := prepare(ctx, p)
		if err != nil {
			return err
		}
		return a.Store.Apply(ctx, *request, func(tx *db.Tx) error {
			changes, made, err := work(tx, *request, p, s)
			if err != nil {
				return err
			}
			return finish(tx, changes, made...)
		})
	}}
}

// by returns the kind with the fields by which it is requested.
func (k Kind) by(look func(ctx context.Context, o Order) (Draft, error), fields ...Field) Kind {
	k.Look, k.Fields = look, fields
	return k
}

// showing returns the kind with the function that finds its facts.
func (k Kind) showing(check func(ctx context.Context, r Request) ([]Fact, error)) Kind {
	k.Check = check
	return k
}

// CodeChanged is the code of a refusal because the subject changed after the request.
const CodeChanged = "changed_since"

// errChanged is returned if the subject has changed since the requester saw it.
func errChanged(what string) error {
	return problem.New(problem.Invalid, CodeChanged, what+" has changed since this was requested")
}
