package changes

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/route"
)

// KindRoute sets the providers of an operation.
const KindRoute = "provider.route"

// routed is the payload of a change of a route, as the requester saw it. Its members and their order are hashed, so
// they never change.
type routed struct {
	Tenant    string `json:"tenant"` // route.Any: every account without a route of its own
	Mode      string `json:"mode"`
	Operation string `json:"operation"`
	Channel   string `json:"channel"`
	Providers string `json:"providers"` // names, best first, separated by spaces; empty: the operation is not served
	Drop      bool   `json:"drop"`      // the route is removed
	Was       string `json:"was"`       // providers of the route when the change was requested
	There     bool   `json:"there"`     // such a route existed
}

func (p routed) route(actor string) route.Route {
	return route.Route{Tenant: p.Tenant, Mode: p.Mode, Operation: route.Operation(p.Operation), Channel: p.Channel, Providers: strings.Fields(p.Providers), Actor: actor}
}

// SetRoute requests the providers of an operation, best first.
func (a *Changes) SetRoute(ctx context.Context, by By, id string, r route.Route, reason string) (Request, error) {
	return a.Do(ctx, by, KindRoute, id, routeValues(r, "no"), reason)
}

// DropRoute requests the removal of a route.
func (a *Changes) DropRoute(ctx context.Context, by By, id string, r route.Route, reason string) (Request, error) {
	r.Providers = nil
	return a.Do(ctx, by, KindRoute, id, routeValues(r, "yes"), reason)
}

func routeValues(r route.Route, remove string) Values {
	return Values{FieldTenant: r.Tenant, "mode": r.Mode, "operation": string(r.Operation), "channel": r.Channel, "providers": strings.Join(r.Providers, " "), "remove": remove}
}

func (a *Changes) lookRoute(ctx context.Context, o Order) (Draft, error) {
	v := o.Values
	p := routed{Tenant: cmp.Or(v[FieldTenant], route.Any), Mode: cmp.Or(v["mode"], route.Any), Operation: v["operation"], Channel: cmp.Or(v["channel"], route.Any),
		Providers: strings.Join(strings.Fields(v["providers"]), " "), Drop: v["remove"] == "yes"}
	r := p.route("")
	if !p.Drop {
		if err := a.Routes.CheckRoute(ctx, r); err != nil {
			return Draft{}, err
		}
	}
	var err error
	if p.Was, p.There, err = a.Routes.LeadsTo(ctx, r); err != nil {
		return Draft{}, err
	}
	if p.Drop && !p.There {
		return Draft{}, problem.New(problem.NotFound, "route_not_found", "There is no such route")
	}
	d, whose := Draft{Payload: p}, "everybody"
	if r.Tenant != route.Any {
		t, err := a.Tenants.Get(ctx, r.Tenant)
		switch {
		case err == nil:
			if whose, err = a.titled(ctx, o.By.Place, t); err != nil {
				return Draft{}, err
			}
			d.Tenant = t.ID
		case p.Drop && problem.Is(err, problem.NotFound): // the route may belong to an account that no longer exists
			whose = r.Tenant
		default:
			return Draft{}, err
		}
	}
	what := fmt.Sprintf("%s on %s, %s money of %s", p.Operation, anyOf(p.Channel, "every channel"), anyOf(p.Mode, "live and test"), whose)
	d.Sentence = fmt.Sprintf("Route %s to %s instead of %s", what, cmp.Or(p.Providers, "nobody"), cmp.Or(p.Was, "nobody"))
	if p.Drop {
		d.Sentence = fmt.Sprintf("Remove the route of %s to %s", what, cmp.Or(p.Was, "nobody"))
	}
	return d, nil
}

// anyOf formats a value of a route, or the word that means all values.
func anyOf(value, all string) string {
	if value == route.Any {
		return all
	}
	return value
}

func (a *Changes) routeKind() Kind {
	return written(a, KindRoute, "Providers of an operation", Rule{Make: roles.ChangeMoney, Check: roles.ApproveMoney}, func(tx *db.Tx, request Request, p routed) ([]audit.Change, error) {
		r := p.route(request.RequesterName)
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
	}).by(a.lookRoute, Field{Name: FieldTenant, Label: "Account", Hint: "The id of the account. Leave empty for all accounts.", Max: 64},
		Field{Name: "mode", Label: "Money", Hint: "Enter live or test. Leave empty for both.", Max: 4}, Field{Name: "operation", Label: "Operation", Hint: "Enter an operation, such as collect or disburse_wallet.", Max: 40, Required: true},
		Field{Name: "channel", Label: "Channel", Hint: "Such as MTN. Leave empty for all.", Max: 40}, Field{Name: "providers", Label: "Providers", Hint: "Enter providers best first, separated by spaces. Leave empty for none.", Max: 200},
		Field{Name: "remove", Label: "Remove the route", Options: []string{"no", "yes"}, Max: 3}).showing(a.checkRoute)
}

// checkRoute returns the route before and after. It warns of providers that take no work.
func (a *Changes) checkRoute(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[routed](r)
	if err != nil {
		return nil, err
	}
	was, there, err := a.Routes.LeadsTo(ctx, p.route(""))
	switch {
	case err != nil:
		return nil, err
	case was != p.Was || there != p.There:
		return nil, errChanged("The route")
	}
	then := cmp.Or(p.Providers, "nobody")
	if p.Drop {
		then = "the route of all accounts"
	}
	list := becomes("Providers", cmp.Or(was, "nobody"), then)
	if p.Providers == "" && !p.Drop {
		list = append(list, warning("After this change no provider serves the operation, and every request is refused."))
	}
	if p.Tenant == route.Any {
		list = append(list, Fact{Name: "Accounts", Value: "all accounts without their own route"})
	}
	states, err := a.Routes.List(ctx)
	for _, name := range strings.Fields(p.Providers) {
		list = append(list, Fact{Name: "Provider", Value: name, Of: ofProvider(name)})
		list = append(list, switchWarnings(states, name, p.Mode, route.Operation(p.Operation))...)
	}
	return list, err
}

// switchWarnings returns warnings about a provider that is paused or failing for an operation.
func switchWarnings(states []route.Status, name, mode string, op route.Operation) (list []Fact) {
	for _, s := range states {
		switch {
		case s.Provider != name || s.Operation != op && s.Operation != route.Any || mode != route.Any && s.Mode != mode:
		case s.Paused != nil:
			list = append(list, warning(fmt.Sprintf("%s is paused (%s) since %s: %s", name, s.Mode, at(s.Paused.At), s.Paused.Reason)))
		case s.Breaker != "closed":
			list = append(list, warning(fmt.Sprintf("The circuit of %s is %s (%s): %s", name, s.Breaker, s.Mode, s.Why)))
		}
	}
	return list
}
