package app

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/console/ops"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// The person who uses a development server.
const (
	developerEmail = "developer@localhost"
	developerName  = "Developer"
)

// invite creates the developer of a development server with a sign-in link, and the first owner that the settings
// name.
func (a *App) invite(ctx context.Context) error {
	if err := a.bootstrap(ctx); err != nil {
		return err
	}
	if a.production {
		set, err := a.identity.SetUp(ctx)
		if err == nil && !set {
			a.log.InfoContext(ctx, "console has no users yet", "command", "makola people create --email you@example.com --role owner")
		}
		return err
	}
	link, err := a.link(ctx)
	a.ready.SignInURL = link
	return err
}

// bootstrap creates the first owner that the settings name. If there are people already it does nothing, so the
// settings may stay.
func (a *App) bootstrap(ctx context.Context) error {
	if a.cfg.BootstrapEmail == "" {
		return nil
	}
	password, err := a.firstPassword()
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(a.cfg.BootstrapEmail, "@")
	made, err := a.identity.Bootstrap(ctx, a.cfg.BootstrapEmail, name, password)
	switch {
	case problem.Is(err, problem.Invalid):
		return noFirstOwner(err)
	case made:
		a.log.InfoContext(ctx, "created first owner", "email", a.cfg.BootstrapEmail)
	}
	return err
}

// firstPassword reads the password of the first owner. It is empty if the settings name nobody.
func (a *App) firstPassword() (string, error) {
	if a.cfg.BootstrapEmail == "" {
		return "", nil
	}
	text, err := config.ReadSecretFile(a.cfg.BootstrapFile)
	if err != nil {
		return "", noFirstOwner(err)
	}
	password, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(password, "\r"), nil
}

func noFirstOwner(err error) error {
	return problem.Wrap(err, problem.Invalid, "bootstrap", "The first owner cannot be made with MAKOLA_BOOTSTRAP_EMAIL and MAKOLA_BOOTSTRAP_PASSWORD_FILE: "+err.Error())
}

// link makes a link for the developer, and creates the developer if the database has none.
func (a *App) link(ctx context.Context) (string, error) {
	memberships := []identity.Membership{{Tenant: roles.Installation, Role: roles.Owner}, {Tenant: demoTenant, Role: roles.Owner}}
	p, err := a.identity.Ensure(ctx, developerEmail, developerName, memberships)
	if err != nil {
		return "", err
	}
	token, err := a.identity.NewLink(ctx, p.ID)
	return a.ready.ConsoleURL + "first?" + url.Values{"t": {token}}.Encode(), err
}

// checks returns the results of this node's last checks of the books.
func (a *App) checks() (list []ops.Check) {
	for _, name := range []string{bookLedger, bookPayments, bookMessages, bookBatches, bookAudit} {
		book := a.meters.books[name]
		c := ops.Check{Name: name, Faults: book.faults.Load()}
		if at := book.checked.Load(); at > 0 {
			c.At = time.Unix(at, 0).UTC()
		}
		if at := book.full.Load(); at > 0 {
			c.FullAt = time.Unix(at, 0).UTC()
		}
		list = append(list, c)
	}
	return list
}

// printLink prints a new link to the output of the server.
func (a *App) printLink(ctx context.Context) error {
	link, err := a.link(ctx)
	if err != nil {
		return err
	}
	if a.opts.Out == nil {
		a.log.InfoContext(ctx, "created new sign-in link", "sign_in", link)
		return nil
	}
	_, err = a.opts.Out.Write([]byte("\n  Sign in    " + link + "        (works once, 30 minutes)\n"))
	return err
}
