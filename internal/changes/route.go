package changes

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/route"
)

// KindRoute says which providers serve an operation.
const KindRoute = "provider.route"

// routed is what its maker asked for and saw. Its members and their order are what is hashed: they never change.
type routed struct {
	Tenant    string `json:"tenant"` // route.Any: every account without a route of its own
	Mode      string `json:"mode"`
	Operation string `json:"operation"`
	Channel   string `json:"channel"`
	Providers string `json:"providers"` // best first, with spaces between; empty: it is not served
	Drop      bool   `json:"drop"`      // the route goes
	Was       string `json:"was"`       // where it led
	There     bool   `json:"there"`     // there was such a route
}

func (p routed) route(actor string) route.Route {
	return route.Route{Tenant: p.Tenant, Mode: p.Mode, Operation: route.Operation(p.Operation), Channel: p.Channel, Providers: strings.Fields(p.Providers), Actor: actor}
}

// SetRoute asks for an operation to be served by the providers of a route, best first.
func (a *Changes) SetRoute(ctx context.Context, by By, id string, r route.Route, reason string) (Request, error) {
	if err := a.Routes.CheckRoute(ctx, r); err != nil {
		return Request{}, err
	}
	return a.askRoute(ctx, by, id, r, false, reason)
}

// DropRoute asks for a route to be removed.
func (a *Changes) DropRoute(ctx context.Context, by By, id string, r route.Route, reason string) (Request, error) {
	r.Providers = nil
	return a.askRoute(ctx, by, id, r, true, reason)
}

func (a *Changes) askRoute(ctx context.Context, by By, id string, r route.Route, drop bool, reason string) (Request, error) {
	p := routed{Tenant: r.Tenant, Mode: r.Mode, Operation: string(r.Operation), Channel: r.Channel, Providers: strings.Join(r.Providers, " "), Drop: drop}
	var err error
	if p.Was, p.There, err = a.Routes.LeadsTo(ctx, r); err != nil {
		return Request{}, err
	}
	if drop && !p.There {
		return Request{}, problem.New(problem.NotFound, "route_not_found", "There is no such route")
	}
	d := Draft{Kind: KindRoute, Payload: p}
	whose := "everybody"
	if r.Tenant != route.Any {
		t, err := a.Tenants.Get(ctx, r.Tenant)
		switch {
		case err == nil:
			whose, d.Tenant = fmt.Sprintf("%s (%s, %s)", t.Name, t.Mode, t.ID), t.ID
		case drop && problem.Is(err, problem.NotFound): // the route of an account that is gone
			whose = r.Tenant
		default:
			return Request{}, err
		}
	}
	what := fmt.Sprintf("%s over %s, of %s money of %s", p.Operation, anyOf(p.Channel, "every channel"), anyOf(p.Mode, "live and test"), whose)
	d.Sentence = fmt.Sprintf("Send %s to %s; it led to %s", what, cmp.Or(p.Providers, "nobody"), cmp.Or(p.Was, "nobody"))
	if drop {
		d.Sentence = fmt.Sprintf("Remove the route of %s; it led to %s", what, cmp.Or(p.Was, "nobody"))
	}
	return a.make(ctx, Order{By: by, ID: id, Reason: reason}, d)
}

// anyOf writes a value of a route, or what stands for all of them.
func anyOf(value, all string) string {
	if value == route.Any {
		return all
	}
	return value
}

func (a *Changes) routeKind() Kind {
	return written(a, KindRoute, "Providers of an operation", Rule{Make: identity.MakeMoney, Check: identity.CheckMoney}, func(tx *db.Tx, act Request, p routed) ([]audit.Change, error) {
		r := p.route(act.MakerName)
		was, there, err := a.Routes.LeadsToIn(tx, r)
		if err != nil {
			return nil, err
		}
		if was != p.Was || there != p.There {
			return nil, errChanged("The route")
		}
		change := audit.Change{What: "route " + strings.Join([]string{p.Tenant, p.Mode, p.Operation, p.Channel}, "/"), Before: was, After: p.Providers}
		if p.Drop {
			change.After = "dropped"
			_, err = a.Routes.DropRoute(tx, r.Tenant, r.Mode, r.Operation, r.Channel)
			return []audit.Change{change}, err
		}
		return []audit.Change{change}, a.Routes.SetRoute(tx, r)
	})
}
