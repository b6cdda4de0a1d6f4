package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/timekeeping"
)

// writing is what every command takes that changes something: who gives it. In production, where there are people, a command
// names its person by a token, or breaks the glass; elsewhere it needs neither.
type writing struct {
	TokenFile  string `name:"token-file" placeholder:"PATH" help:"File with your personal token, which the console makes on the page Your account. MAKOLA_TOKEN has the token itself."`
	BreakGlass bool   `name:"break-glass" help:"In an emergency: do it at once, without a token and without a second person. Red in the audit log, with an alert; needs --reason."`
}

// reasoned is writing for a command that asks for no reason by itself.
type reasoned struct {
	writing
	Reason string `name:"reason" placeholder:"TEXT" help:"Why, for the audit log. Needed with a token or --break-glass."`
}

// needs are the commands that change something, and what the person of a token must be allowed to at the installation. A
// command whose act has a kind of its own needs what the kind says, too.
var needs = map[string]identity.Permission{
	"tenant create": identity.MakeTenants, "tenant set": identity.MakeActs,
	"people create": identity.MakePeople, "people invite": identity.MakePeople, "people role": identity.MakePeople,
	"people disable": identity.MakePeople, "people enable": identity.MakePeople, "people reset": identity.MakePeople,
	"change": identity.MakeActs, "fees set": identity.MakeTenants,
	"key create": identity.MakeKeys, "key set": identity.MakeKeys, "key rotate": identity.MakeKeys, "key revoke": identity.MakeKeys,
	"wallet fund": identity.MakeMoney, "wallet adjust": identity.MakeMoney, "wallet transfer": identity.MakeMoney, "wallet recover": identity.MakeMoney,
	"float add":       identity.MakeTreasury,
	"payouts resolve": identity.MakeTreasury, "payouts decide": identity.MakeTreasury,
	"providers pause": identity.SwitchProviders, "providers resume": identity.SwitchProviders, "providers route": identity.MakeMoney,
	"catalogue set": identity.MakeTenants, "catalogue bank-code": identity.MakeTenants, "catalogue prefix": identity.MakeTenants,
	"webhooks replay": identity.ReplayWebhooks, "webhooks secret": identity.ReadSecrets,
	"senders create": identity.ReviewSenders, "senders approve": identity.ReviewSenders, "senders reject": identity.ReviewSenders,
	"credits sell": identity.MakeMoney, "credits refund": identity.MakeMoney,
	"campaigns stop": identity.StopCampaigns, "otp reopen": identity.MakeTenants,
	"contacts add-group": identity.MakeTenants, "contacts import": identity.MakeTenants, "contacts optout": identity.MakeTenants, "contacts optin": identity.MakeTenants,
	"privacy erase": identity.MakeTenants, "jobs rerun": identity.MakeMoney, "clock accept": identity.MakeMoney, "keys rotate": identity.MakePeople,
}

// moneyCommands are the commands that move money. A production machine whose clock is wrong does not run them.
var moneyCommands = map[string]bool{
	"wallet fund": true, "wallet adjust": true, "wallet transfer": true, "wallet recover": true, "float add": true,
	"payouts resolve": true, "payouts decide": true, "credits sell": true, "credits refund": true,
}

// authority is what a command that changes something was given.
type authority struct {
	command    string
	tokenFile  string
	breakGlass bool
	reason     string
}

// authorityOf reads it from the line; nil for a command that changes nothing.
func authorityOf(line *kong.Context) *authority {
	command := line.Selected()
	if command == nil {
		return nil
	}
	path, _, _ := strings.Cut(command.Path(), " (") // an older name follows in brackets
	if _, changes := needs[path]; !changes {
		return nil
	}
	a := &authority{command: path}
	for _, f := range line.Flags() {
		switch value := f.Target.Interface().(type) {
		case string:
			switch f.Name {
			case "token-file":
				a.tokenFile = value
			case "reason":
				a.reason = strings.TrimSpace(value)
			}
		case bool:
			if f.Name == "break-glass" {
				a.breakGlass = value
			}
		}
	}
	return a
}

// token reads the personal token; none is empty.
func (a *authority) token() (string, error) {
	if a.tokenFile == "" {
		return strings.TrimSpace(os.Getenv(config.EnvToken)), nil
	}
	var text []byte
	err := errors.Join(config.CheckOwnFile(a.tokenFile), config.CheckSecretFile(a.tokenFile))
	if err == nil {
		text, err = config.ReadSecretFile(a.tokenFile)
	}
	if err != nil {
		return "", problem.Wrap(err, problem.Invalid, "token_file", fmt.Sprintf("The file of --token-file cannot be used: %v", err))
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", problem.New(problem.Invalid, "token_file", "The file of --token-file is empty")
	}
	return token, nil
}

// errNobody refuses a command in production that does not say who gives it.
func errNobody() error {
	return problem.New(problem.Forbidden, "token_needed", "Nothing was done: in production a change needs a person. Make a personal token in the console (Your account), "+
		"and give it by "+config.EnvToken+" or --token-file. In an emergency: --break-glass --reason TEXT")
}

// authorise finds out who gives the command, and refuses what they may not. Without a token it is the user of this machine, whose
// requests need no approver: in development, before there are people, and with --break-glass.
func (o *opened) authorise(e *env) (err error) {
	if o.production, err = o.installation.Production(e.ctx); err != nil {
		return err
	}
	a := e.authority
	if a == nil {
		return nil
	}
	if err := o.journalReady(); err != nil {
		return err
	}
	if o.production && moneyCommands[a.command] {
		newest := func(ctx context.Context) (time.Time, error) { return app.NewestRow(ctx, o.db) }
		if err := timekeeping.Check(e.ctx, o.db, o.clock, newest); err != nil {
			return err
		}
	}
	o.reason = a.reason
	if a.breakGlass {
		if a.tokenFile != "" {
			return usage("--break-glass and --token-file exclude each other")
		}
		if a.reason == "" {
			return usage("--break-glass needs a --reason")
		}
		o.actor = audit.BreakGlass + loggedIn()
		o.by.Machine = o.actor
		return nil
	}
	token, err := a.token()
	if err != nil {
		return err
	}
	if token == "" {
		people, err := o.people.SetUp(e.ctx)
		if err == nil && people && o.production {
			err = errNobody()
		}
		return err
	}
	v, err := o.people.Bearer(e.ctx, token)
	if err != nil {
		return err
	}
	o.by = changes.By{Visitor: v, Origin: origin(), Place: identity.Installation}
	o.actor, o.permission = v.Person.Email, needs[a.command]
	if a.reason == "" {
		return problem.Field("reason", "is required with a personal token")
	}
	return o.db.Write(e.ctx, o.allow)
}

// allow refuses, in tx, a person whose token or role does not allow the command now.
func (o *opened) allow(tx *db.Tx) error {
	return o.approvals().Allow(tx, o.by, o.permission)
}

// changes makes changes for the person of a token or for the user of this machine. A secret that a change makes is printed, and
// kept for nobody.
func (o *opened) changes(secret config.Secret) *changes.Changes {
	return changes.New(changes.Deps{Store: o.approvals(), Ledger: o.ledger, Tenants: o.tenants, Access: o.access, People: o.people, Senders: o.senders(), Webhooks: o.webhooks(secret),
		Treasury: o.treasury(), Routes: o.routes(), Jobs: o.jobs()})
}

// waitsError is the end of a command whose act waits for a second person.
type waitsError struct{ act changes.Request }

func (w *waitsError) Error() string {
	text := fmt.Sprintf("Nothing is done yet: this waits until %s for a second person, who checks it in the console at /ops/acts/%s", w.act.ExpiresAt.UTC().Format("2006-01-02 15:04 UTC"), w.act.ID)
	if w.act.Kind == changes.KindInvite || w.act.Kind == changes.KindReset {
		text += ". Then that page shows you the link, to send to the person, and the approver the code, to tell the person"
	}
	return text
}

// asked says what became of an act: one that is done is printed as the command does, one that waits by what it is.
func (o *opened) asked(e *env, output string, act changes.Request, err error, done func(context.Context) error) error {
	if err != nil {
		return err
	}
	switch act.State {
	case changes.Done:
		return done(e.ctx)
	case changes.Waiting:
		if err := printOne(e.stdout, output, narrow(output, actsColumns, "id", "state", "sentence", "checkers_needed", "expires_at"), act); err != nil {
			return err
		}
		return &waitsError{act}
	case changes.Failed:
		if act.Refused != nil {
			return act.Refused
		}
		return problem.New(problem.Refused, "act_failed", act.Note)
	}
	return problem.New(problem.Duplicate, changes.CodeEnded, fmt.Sprintf("The act %s is %s already", act.ID, act.State))
}

// loggedIn is the user of this machine that runs the command.
func loggedIn() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "uid " + strconv.Itoa(os.Getuid())
}

// origin is from where the operator runs the command: this machine, and the address from which they came to it.
func origin() string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown machine"
	}
	if from, _, _ := strings.Cut(os.Getenv("SSH_CONNECTION"), " "); from != "" {
		host += ", from " + from
	}
	return host
}
