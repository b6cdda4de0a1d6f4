package changes

import (
	"cmp"
	"context"
	"fmt"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/route"
)

// KindPause stops new work at a provider. KindResume resumes it and closes the provider's circuit breakers.
const (
	KindPause  = "provider.pause"
	KindResume = "provider.resume"
)

// switched is the payload of a request to pause or resume a provider. Its members and their order are hashed, so they
// never change.
type switched struct {
	Mode      string `json:"mode"`
	Provider  string `json:"provider"`
	Operation string `json:"operation"` // route.Any: all operations
}

// Pause requests that a provider gets no new work of an operation, or of all operations. Payments that were
// submitted before still settle.
func (a *Changes) Pause(ctx context.Context, by By, id, mode, provider string, op route.Operation, reason string) (Request, error) {
	return a.Do(ctx, by, KindPause, id, Values{"mode": mode, "provider": provider, "operation": string(op)}, reason)
}

// Resume requests that a provider gets new work again.
func (a *Changes) Resume(ctx context.Context, by By, id, mode, provider string, op route.Operation, reason string) (Request, error) {
	return a.Do(ctx, by, KindResume, id, Values{"mode": mode, "provider": provider, "operation": string(op)}, reason)
}

func (a *Changes) lookSwitch(on bool) func(ctx context.Context, o Order) (Draft, error) {
	return func(_ context.Context, o Order) (Draft, error) {
		mode, provider, op := o.Values["mode"], o.Values["provider"], route.Operation(cmp.Or(o.Values["operation"], string(route.Any)))
		does := "Resume"
		if !on { // a pause can be ended even if its provider no longer exists; without a pause Apply refuses
			if err := a.Routes.CheckSwitch(mode, provider, op); err != nil {
				return Draft{}, err
			}
			does = "Pause"
		}
		what := string(op)
		if op == route.Any {
			what = "everything"
		}
		return Draft{Sentence: fmt.Sprintf("%s %s (%s): %s", does, provider, mode, what), Payload: switched{mode, provider, string(op)}}, nil
	}
}

// switchKind needs no approver, because a person who sees a provider fail must not wait for a second person.
func (a *Changes) switchKind(name, title string, on bool) Kind {
	return written(a, name, title, Rule{Make: roles.SwitchProviders, Check: roles.ApproveMoney, Light: true}, func(tx *db.Tx, request Request, p switched) ([]audit.Change, error) {
		change := audit.Change{What: p.Provider + " (" + p.Mode + ") " + p.Operation, Before: "not paused", After: "paused"}
		if !on {
			return []audit.Change{change}, a.Routes.Pause(tx, route.Pause{Mode: p.Mode, Provider: p.Provider, Operation: route.Operation(p.Operation), Reason: request.Reason, Actor: request.RequesterName})
		}
		paused, err := a.Routes.Resume(tx, p.Mode, p.Provider, route.Operation(p.Operation))
		change.Before, change.After = map[bool]string{true: "paused", false: "not paused"}[paused], "not paused"
		return []audit.Change{change}, err
	}).by(a.lookSwitch(on), Field{Name: "provider", Label: "Provider", Max: 40, Required: true}, Field{Name: "mode", Label: "Money", Hint: "Enter live or test.", Max: 4, Required: true},
		Field{Name: "operation", Label: "Operation", Hint: "Enter an operation, such as collect or disburse_wallet. Leave empty for all.", Max: 40}).showing(a.checkSwitch(on))
}

// checkSwitch returns the state of the provider's operations.
func (a *Changes) checkSwitch(on bool) func(ctx context.Context, r Request) ([]Fact, error) {
	return func(ctx context.Context, r Request) ([]Fact, error) {
		p, err := payloadOf[switched](r)
		if err != nil {
			return nil, err
		}
		list := []Fact{{Name: "Provider", Value: p.Provider, Of: ofProvider(p.Provider)}}
		states, err := a.Routes.List(ctx)
		for _, s := range states {
			if s.Provider != p.Provider || s.Mode != p.Mode || p.Operation != route.Any && string(s.Operation) != p.Operation {
				continue
			}
			state := "works"
			switch {
			case s.Paused != nil:
				state = fmt.Sprintf("paused by %s at %s: %s", s.Paused.Actor, at(s.Paused.At), s.Paused.Reason)
			case s.Breaker != "closed":
				state = "circuit " + s.Breaker + ": " + s.Why
			}
			list = append(list, Fact{Name: string(s.Operation) + " now", Value: state})
			if on && s.Breaker != "closed" {
				list = append(list, warning("The circuit of "+string(s.Operation)+" is "+s.Breaker+". The circuit closes, and the provider gets new work at once."))
			}
		}
		return list, err
	}
}
