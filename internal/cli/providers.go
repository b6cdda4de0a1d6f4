package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

type providersCommands struct {
	List      providersList      `cmd:"" help:"List providers by operation: paused, failing or well; and the binds with message centres."`
	Pause     providersPause     `cmd:"" help:"Give a provider no new work. Servers follow within a second."`
	Resume    providersResume    `cmd:"" help:"Give a provider work again, and forget its failures."`
	Routes    providersRoutes    `cmd:"" help:"List which providers serve what, best first."`
	Route     providersRoute     `cmd:"" help:"Change which providers serve an operation."`
	Exchanges providersExchanges `cmd:"" help:"Show what was said to providers and what they answered, redacted."`
}

// routes is the table as commands use it: nothing is sent from here.
func (o *opened) routes() *route.Table {
	return route.New(o.db, o.clock, slog.New(slog.DiscardHandler), app.Providers(), nil)
}

type providersList struct {
	common
	Mode string `name:"mode" enum:"test,live," default:"" placeholder:"test|live" help:"Only those of this mode."`
}

func providerColumns() []column[route.Status] {
	return []column[route.Status]{
		{"mode", func(s route.Status) any { return s.Mode }},
		{"provider", func(s route.Status) any { return s.Provider }},
		{"operation", func(s route.Status) any { return string(s.Operation) }},
		{"paused", func(s route.Status) any { return s.Paused != nil }},
		{"breaker", func(s route.Status) any { return s.Breaker }},
		{"until", func(s route.Status) any { return s.Until }},
		{"why", func(s route.Status) any {
			if s.Paused != nil {
				return s.Paused.Actor + ": " + s.Paused.Reason
			}
			return s.Why
		}},
		{"not_known", func(s route.Status) any { return notKnown(s.NotKnown) }},
	}
}

// notKnown says how a provider's "we do not have it" is understood, with the
// answer where it is not.
func notKnown(k *route.NotKnown) string {
	switch {
	case k == nil:
		return ""
	case k.State == route.NotUnderstood && k.Answer != "":
		return "not understood: " + k.Answer
	default:
		return strings.ReplaceAll(k.State, "_", " ")
	}
}

// Run lists the providers.
func (c *providersList) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		all, err := o.routes().List(e.ctx)
		if err != nil {
			return err
		}
		messages, err := o.messageCentres(e.ctx)
		if err != nil {
			return err
		}
		list := []route.Status{}
		for _, s := range append(all, messages...) {
			if c.Mode == "" || c.Mode == s.Mode {
				list = append(list, s)
			}
		}
		return printAll(e.stdout, c.Output, providerColumns(), list)
	})
}

// messageCentres are the binds with mobile operators and the receipts of these, as lines beside the providers.
func (o *opened) messageCentres(ctx context.Context) ([]route.Status, error) {
	m := o.messaging()
	defer m.Close()
	binds, err := m.Binds(ctx)
	if err != nil || len(binds) == 0 {
		return nil, err
	}
	unmatched, err := m.UnmatchedReceipts(ctx)
	if err != nil {
		return nil, err
	}
	now := o.clock.Now()
	lines := make([]route.Status, 0, len(binds)+1)
	modes := map[string]bool{}
	for _, b := range binds {
		line := route.Status{Mode: string(b.Mode), Provider: b.Name, Operation: "sms", Breaker: b.State(now)}
		modes[line.Mode] = true
		switch line.Breaker {
		case messaging.BindSilent:
			line.Why = "no node has said anything since " + stamp(b.SeenAt)
		case messaging.BindDown, messaging.BindPartly:
			line.Why = fmt.Sprintf("%d of %d connections since %s: %s", b.Bound, b.Connections, stamp(b.Since), b.Why)
		}
		lines = append(lines, line)
	}
	receipts := route.Status{Mode: string(tenant.Live), Provider: "all binds", Operation: "sms_receipts", Breaker: unmatched.State(), Why: unmatched.Why()}
	if !modes[receipts.Mode] {
		receipts.Mode = string(tenant.Test)
	}
	return append(lines, receipts), nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// providerSwitch names what pause and resume are about.
type providerSwitch struct {
	Provider  string `arg:"" help:"Name of the provider: mtn or hubtel."`
	Mode      string `name:"mode" enum:"test,live" required:"" help:"test or live money."`
	Operation string `name:"operation" default:"*" help:"Only this operation, such as collect or disburse_wallet; * is all."`
	Reason    string `name:"reason" required:"" help:"Why; it goes into the audit log."`
}

type providersPause struct {
	common
	providerSwitch
	writing
}

// Run pauses the provider.
func (c *providersPause) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		r, err := o.changes(config.Secret{}).Pause(e.ctx, o.by, newID(), c.Mode, c.Provider, route.Operation(c.Operation), c.Reason)
		return o.asked(e, c.Output, r, err, func(context.Context) error { return c.show(e, o, o.routes(), c.Output) })
	})
}

type providersResume struct {
	common
	providerSwitch
	writing
}

// Run resumes the provider.
func (c *providersResume) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		r, err := o.changes(config.Secret{}).Resume(e.ctx, o.by, newID(), c.Mode, c.Provider, route.Operation(c.Operation), c.Reason)
		return o.asked(e, c.Output, r, err, func(context.Context) error { return c.show(e, o, o.routes(), c.Output) })
	})
}

// show prints what the provider is now.
func (s providerSwitch) show(e *env, o *opened, routes *route.Table, format string) error {
	all, err := routes.List(e.ctx)
	if err != nil {
		return err
	}
	list := []route.Status{}
	for _, each := range all {
		if each.Provider == s.Provider && each.Mode == s.Mode {
			list = append(list, each)
		}
	}
	return printAll(e.stdout, format, providerColumns(), list)
}

type providersRoutes struct {
	common
	Tenant string `name:"tenant" placeholder:"ID" help:"Only this customer's own routes."`
}

func routeColumns() []column[route.Route] {
	return []column[route.Route]{
		{"tenant", func(r route.Route) any { return r.Tenant }},
		{"mode", func(r route.Route) any { return r.Mode }},
		{"operation", func(r route.Route) any { return string(r.Operation) }},
		{"channel", func(r route.Route) any { return r.Channel }},
		{"providers", func(r route.Route) any { return r.Providers }},
		{"actor", func(r route.Route) any { return r.Actor }},
		{"changed_at", func(r route.Route) any { return r.At }},
	}
}

// Run lists the routes.
func (c *providersRoutes) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		all, err := o.routes().Routes(e.ctx)
		if err != nil {
			return err
		}
		list := []route.Route{}
		for _, r := range all {
			if c.Tenant == "" || c.Tenant == r.Tenant {
				list = append(list, r)
			}
		}
		return printAll(e.stdout, c.Output, routeColumns(), list)
	})
}

type providersRoute struct {
	common
	writing
	Operation string   `arg:"" help:"Operation, such as collect or disburse_wallet."`
	Channel   string   `arg:"" help:"Network (MTN, TELECEL, AIRTELTIGO), id of a bank, or *."`
	Providers []string `arg:"" optional:"" help:"Providers, best first; none at all means that it is not served."`
	Tenant    string   `name:"tenant" default:"*" help:"Only for this customer; * is every customer without a route of its own."`
	Mode      string   `name:"mode" enum:"test,live,*" default:"*" help:"test or live money; * is both."`
	Drop      bool     `name:"drop" help:"Remove the route: a customer's own, so that everybody's holds for it, or one of everybody's that is not a default."`
	Reason    string   `name:"reason" required:"" help:"Why; it goes into the audit log."`
}

// route is what the flags ask for.
func (c *providersRoute) route(actor string) route.Route {
	r := route.Route{Tenant: c.Tenant, Mode: c.Mode, Operation: route.Operation(c.Operation), Channel: c.Channel, Providers: c.Providers, Actor: actor}
	if network, known := msisdn.ParseNetwork(c.Channel); known {
		r.Channel = string(network)
	}
	return r
}

// Run changes the route.
func (c *providersRoute) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		if c.Tenant != route.Any {
			// A route of a customer who is gone can be removed.
			if err := o.known(e.ctx, &c.Tenant); err != nil && !c.Drop {
				return err
			}
		}
		routes, r := o.routes(), c.route(o.actor)
		show := func(ctx context.Context) error { return c.printRoutes(ctx, e, routes) }
		ask := (*changes.Changes).SetRoute
		if c.Drop {
			ask = (*changes.Changes).DropRoute
		}
		act, err := ask(o.changes(config.Secret{}), e.ctx, o.by, newID(), r, c.Reason)
		return o.asked(e, c.Output, act, err, show)
	})
}

// printRoutes prints the routes of the operation.
func (c *providersRoute) printRoutes(ctx context.Context, e *env, routes *route.Table) error {
	all, err := routes.Routes(ctx)
	if err != nil {
		return err
	}
	list := []route.Route{}
	for _, each := range all {
		if string(each.Operation) == c.Operation {
			list = append(list, each)
		}
	}
	return printAll(e.stdout, c.Output, routeColumns(), list)
}

type providersExchanges struct {
	common
	ID    string `arg:"" optional:"" help:"Our id or provider reference of a payment; the newest of all when left out."`
	Limit count  `name:"limit" default:"50" help:"List at most so many of the newest."`
}

func exchangeColumns() []column[provider.Exchange] {
	return []column[provider.Exchange]{
		{"at", func(x provider.Exchange) any { return x.At }},
		{"provider", func(x provider.Exchange) any { return x.Provider }},
		{"mode", func(x provider.Exchange) any { return x.Mode }},
		{"operation", func(x provider.Exchange) any { return x.Operation }},
		{"reference", func(x provider.Exchange) any { return x.Reference }},
		{"method", func(x provider.Exchange) any { return x.Method }},
		{"status", func(x provider.Exchange) any { return int64(x.Status) }},
		{"took_ms", func(x provider.Exchange) any { return x.Took.Round(time.Millisecond).Milliseconds() }},
		{"sent", func(x provider.Exchange) any { return x.Written }},
		{"error", func(x provider.Exchange) any { return x.Err }},
	}
}

// Run shows exchanges.
func (c *providersExchanges) Run(e *env) error {
	if c.ID == "" {
		return c.with(e, func(o *opened) error {
			list, err := o.routes().LatestExchanges(e.ctx, int(c.Limit))
			if err != nil {
				return err
			}
			return c.print(e, list)
		})
	}
	return c.withPayments(e, func(o *opened, p *payments.Payments) error {
		pay, err := p.Find(e.ctx, c.ID)
		if err != nil {
			return err
		}
		list, err := o.routes().Exchanges(e.ctx, pay.ID)
		if err != nil {
			return err
		}
		return c.print(e, list)
	})
}

// print leaves the bodies out of a table: they are too wide for it.
func (c *providersExchanges) print(e *env, list []provider.Exchange) error {
	columns := exchangeColumns()
	if c.Output != "table" {
		columns = append(columns,
			column[provider.Exchange]{"payment", func(x provider.Exchange) any { return x.Payment }},
			column[provider.Exchange]{"url", func(x provider.Exchange) any { return x.URL }},
			column[provider.Exchange]{"request", func(x provider.Exchange) any { return x.Request }},
			column[provider.Exchange]{"answer", func(x provider.Exchange) any { return x.Answer }},
		)
	}
	return printAll(e.stdout, c.Output, columns, list)
}
