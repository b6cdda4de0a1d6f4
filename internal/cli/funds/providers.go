package funds

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// Providers holds the commands of makola providers.
type Providers struct {
	List      providersList      `cmd:"" help:"List providers with the state of each operation, and the SMPP binds."`
	Pause     providersPause     `cmd:"" help:"Pause a provider: it receives no new work. It applies within a second."`
	Resume    providersResume    `cmd:"" help:"Resume a paused provider and reset its circuit breaker."`
	Routes    providersRoutes    `cmd:"" help:"List the routes: the providers of each operation, preferred first."`
	Route     providersRoute     `cmd:"" help:"Change the providers that serve an operation."`
	Exchanges providersExchanges `cmd:"" help:"Show requests to providers and their responses, redacted."`
	Test      providersTest      `cmd:"" help:"Test whether providers are set up right. The test queries the providers and moves no money."`
	Callback  providersCallback  `cmd:"" help:"Print the address to which a provider sends its callbacks."`
}

type providersList struct {
	frame.Common
	Mode string `name:"mode" enum:"test,live," default:"" placeholder:"test|live" help:"Mode of the providers to list."`
}

func providerColumns() []frame.Column[route.Status] {
	return []frame.Column[route.Status]{
		{Name: "mode", Value: func(s route.Status) any { return s.Mode }},
		{Name: "provider", Value: func(s route.Status) any { return s.Provider }},
		{Name: "operation", Value: func(s route.Status) any { return string(s.Operation) }},
		{Name: "paused", Value: func(s route.Status) any { return s.Paused != nil }},
		{Name: "breaker", Value: func(s route.Status) any { return s.Breaker }},
		{Name: "until", Value: func(s route.Status) any { return s.Until }},
		{Name: "why", Value: func(s route.Status) any {
			if s.Paused != nil {
				return s.Paused.Actor + ": " + s.Paused.Reason
			}
			return s.Why
		}},
		{Name: "not_known", Value: func(s route.Status) any { return notKnown(s.NotKnown) }},
	}
}

// notKnown returns whether Makola accepts a provider's response "not known". If it does not, the result
// contains the response.
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
func (c *providersList) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		all, err := o.Routes().List(e.Ctx)
		if err != nil {
			return err
		}
		messages, err := messageCentres(e.Ctx, o)
		if err != nil {
			return err
		}
		list := []route.Status{}
		for _, s := range append(all, messages...) {
			if c.Mode == "" || c.Mode == s.Mode {
				list = append(list, s)
			}
		}
		return frame.PrintAll(e.Stdout, c.Output, providerColumns(), list)
	})
}

// messageCentres returns the SMPP binds and their receipts as rows of the list of providers.
func messageCentres(ctx context.Context, o *frame.Opened) ([]route.Status, error) {
	m := o.Messaging()
	defer m.Close()
	binds, err := m.Binds(ctx)
	if err != nil || len(binds) == 0 {
		return nil, err
	}
	unmatched, err := m.UnmatchedReceipts(ctx)
	if err != nil {
		return nil, err
	}
	now := o.Clock.Now()
	lines := make([]route.Status, 0, len(binds)+1)
	modes := map[string]bool{}
	for _, b := range binds {
		line := route.Status{Mode: string(b.Mode), Provider: b.Name, Operation: "sms", Breaker: b.State(now)}
		modes[line.Mode] = true
		switch line.Breaker {
		case messaging.BindSilent:
			line.Why = "no report from a node since " + stamp(b.SeenAt)
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

// providerSwitch identifies the provider and operation to pause or resume.
type providerSwitch struct {
	Provider  string `arg:"" help:"Name of the provider, such as mtn or hubtel."`
	Mode      string `name:"mode" enum:"test,live" required:"" placeholder:"test|live" help:"test or live money."`
	Operation string `name:"operation" default:"*" help:"Operation, such as collect or disburse_wallet; * is all."`
	Reason    string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

type providersPause struct {
	frame.Common
	providerSwitch
	frame.Writing
}

type providersResume struct {
	frame.Common
	providerSwitch
	frame.Writing
}

// showProvider prints the state of the provider of a change.
func showProvider(q *frame.Ask) error {
	all, err := q.O.Routes().List(q.E.Ctx)
	if err != nil {
		return err
	}
	list := []route.Status{}
	for _, each := range all {
		if each.Provider == q.Values["provider"] && each.Mode == q.Values["mode"] {
			list = append(list, each)
		}
	}
	return frame.PrintAll(q.E.Stdout, q.Output, providerColumns(), list)
}

type providersRoutes struct {
	frame.Common
	Tenant string `name:"account" aliases:"tenant" placeholder:"ID" help:"Account of the routes, by id or unique name."`
}

func routeColumns() []frame.Column[route.Route] {
	return []frame.Column[route.Route]{
		{Name: "tenant", Value: func(r route.Route) any { return r.Tenant }},
		{Name: "mode", Value: func(r route.Route) any { return r.Mode }},
		{Name: "operation", Value: func(r route.Route) any { return string(r.Operation) }},
		{Name: "channel", Value: func(r route.Route) any { return r.Channel }},
		{Name: "providers", Value: func(r route.Route) any { return r.Providers }},
		{Name: "actor", Value: func(r route.Route) any { return r.Actor }},
		{Name: "changed_at", Value: func(r route.Route) any { return r.At }},
	}
}

// Run lists the routes.
func (c *providersRoutes) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		all, err := o.Routes().Routes(e.Ctx)
		if err != nil {
			return err
		}
		list := []route.Route{}
		for _, r := range all {
			if c.Tenant == "" || c.Tenant == r.Tenant {
				list = append(list, r)
			}
		}
		return frame.PrintAll(e.Stdout, c.Output, routeColumns(), list)
	})
}

type providersRoute struct {
	frame.Common
	frame.Writing
	Operation string   `arg:"" help:"Operation, such as collect or disburse_wallet."`
	Channel   string   `arg:"" help:"Network (MTN, TELECEL, AIRTELTIGO), id of a bank, or *."`
	Providers []string `arg:"" optional:"" help:"Providers, preferred first. Without a provider the operation is not served."`
	Tenant    string   `name:"account" aliases:"tenant" default:"*" help:"Account that the route is for, by id or unique name; * is every account without its own route."`
	Mode      string   `name:"mode" enum:"test,live,*" default:"*" help:"test or live money; * is both."`
	Drop      bool     `name:"drop" help:"Remove the route. The account then uses the general route. Default routes cannot be removed."`
	Reason    string   `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// prepareRoute finds the account and the network of a route. The route of a customer that no longer exists can
// be removed.
func prepareRoute(q *frame.Ask) error {
	if q.Values[changes.FieldTenant] != route.Any {
		if err := q.Accounts(); err != nil && q.Values["remove"] == "" {
			return err
		}
	}
	if q.Values["remove"] != "" {
		delete(q.Values, "providers")
	}
	if network, known := msisdn.ParseNetwork(q.Values["channel"]); known {
		q.Values["channel"] = string(network)
	}
	return nil
}

// showRoutes prints the routes of the operation of a change.
func showRoutes(q *frame.Ask) error {
	all, err := q.O.Routes().Routes(q.E.Ctx)
	if err != nil {
		return err
	}
	list := []route.Route{}
	for _, each := range all {
		if string(each.Operation) == q.Values["operation"] {
			list = append(list, each)
		}
	}
	return frame.PrintAll(q.E.Stdout, q.Output, routeColumns(), list)
}

type providersExchanges struct {
	frame.Common
	ID    string      `arg:"" optional:"" help:"Id or provider reference of a payment. Default: the newest payments."`
	Limit frame.Count `name:"limit" default:"50" help:"Maximum number of exchanges, newest first."`
}

func exchangeColumns() []frame.Column[provider.Exchange] {
	return []frame.Column[provider.Exchange]{
		{Name: "at", Value: func(x provider.Exchange) any { return x.At }},
		{Name: "provider", Value: func(x provider.Exchange) any { return x.Provider }},
		{Name: "mode", Value: func(x provider.Exchange) any { return x.Mode }},
		{Name: "operation", Value: func(x provider.Exchange) any { return x.Operation }},
		{Name: "reference", Value: func(x provider.Exchange) any { return x.Reference }},
		{Name: "method", Value: func(x provider.Exchange) any { return x.Method }},
		{Name: "status", Value: func(x provider.Exchange) any { return int64(x.Status) }},
		{Name: "took_ms", Value: func(x provider.Exchange) any { return x.Took.Round(time.Millisecond).Milliseconds() }},
		{Name: "sent", Value: func(x provider.Exchange) any { return x.Written }},
		{Name: "error", Value: func(x provider.Exchange) any { return x.Err }},
	}
}

// Run shows exchanges.
func (c *providersExchanges) Run(e *frame.Env) error {
	if c.ID == "" {
		return c.With(e, func(o *frame.Opened) error {
			list, err := o.Routes().LatestExchanges(e.Ctx, int(c.Limit))
			if err != nil {
				return err
			}
			return c.print(e, list)
		})
	}
	return c.WithPayments(e, func(o *frame.Opened, p *payments.Payments) error {
		pay, err := p.Find(e.Ctx, c.ID)
		if err != nil {
			return err
		}
		list, err := o.Routes().Exchanges(e.Ctx, pay.ID)
		if err != nil {
			return err
		}
		return c.print(e, list)
	})
}

// print prints exchanges. A table omits the bodies, which are too wide.
func (c *providersExchanges) print(e *frame.Env, list []provider.Exchange) error {
	columns := exchangeColumns()
	if c.Output != "table" {
		columns = append(columns,
			frame.Column[provider.Exchange]{Name: "payment", Value: func(x provider.Exchange) any { return x.Payment }},
			frame.Column[provider.Exchange]{Name: "url", Value: func(x provider.Exchange) any { return x.URL }},
			frame.Column[provider.Exchange]{Name: "request", Value: func(x provider.Exchange) any { return x.Request }},
			frame.Column[provider.Exchange]{Name: "answer", Value: func(x provider.Exchange) any { return x.Answer }},
		)
	}
	return frame.PrintAll(e.Stdout, c.Output, columns, list)
}
