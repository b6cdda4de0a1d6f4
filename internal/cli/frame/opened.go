package frame

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/notice"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// node is the node name of all commands, next to the names of the servers. One name serves all, because commands are
// short.
const node = "cli"

// Connections of one command, which runs one transaction at a time.
const Connections = 2

// Opened is the open database with the parts that commands use.
type Opened struct {
	DB           *db.DB
	Clock        *clock.Clock
	Ledger       *ledger.Ledger
	Tenants      *tenant.Store
	answers      *idempotency.Answers
	Access       *access.Access
	Installation *installation.Store
	Log          *audit.Log
	People       *identity.Identity
	Journal      audit.Journal

	Actor      string     // name of the caller in the audit log
	By         changes.By // the person of a token, or the user of this machine
	permission roles.Permission
	reason     string // reason that was given to the command
	production bool
}

// Assemble builds the parts that commands use of a database.
func Assemble(d *db.DB, c *clock.Clock) *Opened {
	l := ledger.New(d, c, node)
	log := audit.New(d, c).Followed(notice.Follow)
	actor := "cli:" + LoggedIn()
	return &Opened{DB: d, Clock: c, Ledger: l, People: identity.New(d, c, log, identity.Options{}), Tenants: tenant.New(d, l, c), answers: idempotency.NewAnswers(d, c), Access: access.New(d, c), Installation: installation.New(d, c), Log: log, Actor: actor,
		By: changes.By{Machine: actor, Origin: Origin(), Place: roles.Installation}}
}

// journalReady refuses a change that could not be appended to the journal. A development database without a data
// folder on this machine needs no journal.
func (o *Opened) journalReady() error {
	err := o.Journal.Ready()
	if err == nil || !o.production && errors.Is(err, audit.ErrNoFolder) {
		return nil
	}
	return problem.Wrap(err, problem.Unavailable, "journal_unavailable", fmt.Sprintf("Nothing was changed, because the journal %s cannot be written: %v. "+
		"Name a data folder that this user can write to with --data or MAKOLA_DATA", o.Journal.Path(), err))
}

// Tenant finds an account by its id, or by its name if no other account has the name. The error for an unknown account
// proposes the nearest name.
func (o *Opened) Tenant(ctx context.Context, name string) (tenant.Tenant, error) {
	t, err := o.Tenants.Get(ctx, name)
	if !problem.Is(err, problem.NotFound) {
		return t, err
	}
	t, err = o.Tenants.Named(ctx, name)
	if !problem.Is(err, problem.NotFound) {
		return t, err
	}
	near, listErr := o.nearest(ctx, name)
	if listErr != nil || near.ID == "" {
		return t, err
	}
	return t, problem.Wrap(err, problem.NotFound, problem.From(err).Code,
		fmt.Sprintf("%s. Did you mean %q (%s)? makola account list lists all", problem.From(err).Message, near.Name, near.ID))
}

// nearest returns the account whose name or id is nearest to name. If every name differs in more than a third of the
// characters, it returns none.
func (o *Opened) nearest(ctx context.Context, name string) (best tenant.Tenant, err error) {
	name = strings.ToLower(name)
	if len(name) > nearestLongest {
		return best, nil
	}
	least := len(name)/3 + 1
	for after, read := "", 0; read < nearestOf; {
		page, err := o.Tenants.List(ctx, after, nearestPage)
		if err != nil || len(page) == 0 {
			return best, err
		}
		for _, t := range page {
			if d := min(Distance(name, strings.ToLower(t.Name)), Distance(name, strings.ToLower(t.ID))); d < least {
				best, least = t, d
			}
		}
		after, read = page[len(page)-1].ID, read+len(page)
	}
	return best, nil
}

// Limits of the search for a near name: accounts compared, accounts read at once, and length of the unknown name.
const (
	nearestOf      = 5000
	nearestPage    = 500
	nearestLongest = 64
)

// Distance returns how many bytes to insert, remove or replace to turn a into b.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Known replaces the name of an account by its id. It refuses an unknown account, because an empty list would look
// like a result. An empty name stays empty and selects all accounts.
func (o *Opened) Known(ctx context.Context, name *string) error {
	if *name == "" {
		return nil
	}
	t, err := o.Tenant(ctx, *name)
	if err == nil {
		*name = t.ID
	}
	return err
}

// Named returns the names of accounts by their ids.
func (o *Opened) Named(ctx context.Context, ids []string) (map[string]string, error) {
	names := map[string]string{}
	for _, id := range ids {
		if _, seen := names[id]; seen || id == "" {
			continue
		}
		t, err := o.Tenants.Get(ctx, id)
		if err != nil && !problem.Is(err, problem.NotFound) {
			return nil, err
		}
		names[id] = t.Name
	}
	return names, nil
}

// NewID returns a new id, which sorts by time.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// LoggedIn returns the user of this machine who runs the command.
func LoggedIn() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "uid " + strconv.Itoa(os.Getuid())
}

// Origin returns the place from which the operator runs the command: this machine, and the address from which the
// operator logged in to it.
func Origin() string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown machine"
	}
	if from, _, _ := strings.Cut(os.Getenv("SSH_CONNECTION"), " "); from != "" {
		host += ", from " + from
	}
	return host
}
