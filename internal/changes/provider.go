package changes

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/route"
)

// KindPause stops new work of a provider, KindResume lets it go on and closes its circuit breakers.
const (
	KindPause  = "provider.pause"
	KindResume = "provider.resume"
)

// switched is what its maker asked for. Its members and their order are what is hashed: they never change.
type switched struct {
	Mode      string `json:"mode"`
	Provider  string `json:"provider"`
	Operation string `json:"operation"` // route.Any: all of them
}

// Pause asks for a provider to get no new work of an operation, or of all. Payments that are under
// way settle.
func (a *Changes) Pause(ctx context.Context, by By, id, mode, provider string, op route.Operation, reason string) (Request, error) {
	return a.askSwitch(ctx, Order{By: by, ID: id, Reason: reason}, Draft{Kind: KindPause}, "Pause", mode, provider, op)
}

// Resume asks for a provider to get work again.
func (a *Changes) Resume(ctx context.Context, by By, id, mode, provider string, op route.Operation, reason string) (Request, error) {
	return a.askSwitch(ctx, Order{By: by, ID: id, Reason: reason}, Draft{Kind: KindResume}, "Resume", mode, provider, op)
}

func (a *Changes) askSwitch(ctx context.Context, o Order, d Draft, does, mode, provider string, op route.Operation) (Request, error) {
	if d.Kind == KindPause { // the pause of a provider that has gone is ended, too: Apply refuses one that is not there
		if err := a.Routes.CheckSwitch(mode, provider, op); err != nil {
			return Request{}, err
		}
	}
	what := string(op)
	if op == route.Any {
		what = "everything"
	}
	d.Sentence = fmt.Sprintf("%s %s (%s): %s", does, provider, mode, what)
	d.Payload = switched{mode, provider, string(op)}
	return a.make(ctx, o, d)
}

// switchKind needs no check where no line of the policy says otherwise: whoever sees a provider fail must not wait for a second
// person.
func (a *Changes) switchKind(name, title string, on bool) Kind {
	return written(a, name, title, Rule{Make: identity.SwitchProviders, Check: identity.CheckMoney, Light: true}, func(tx *db.Tx, act Request, p switched) ([]audit.Change, error) {
		change := audit.Change{What: p.Provider + " (" + p.Mode + ") " + p.Operation, Before: "not paused", After: "paused"}
		if !on {
			return []audit.Change{change}, a.Routes.Pause(tx, route.Pause{Mode: p.Mode, Provider: p.Provider, Operation: route.Operation(p.Operation), Reason: act.Reason, Actor: act.MakerName})
		}
		paused, err := a.Routes.Resume(tx, p.Mode, p.Provider, route.Operation(p.Operation))
		change.Before, change.After = map[bool]string{true: "paused", false: "not paused"}[paused], "not paused"
		return []audit.Change{change}, err
	})
}
