package route

import (
	"context"
	"errors"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
)

// withBanks returns the rail with its codes of our banks.
func withBanks(r provider.Rail, c *catalogue) provider.Rail {
	if c != nil {
		r.Banks = c.bankCodes[r.Name]
	}
	return r
}

// Causes of the error "provider_unavailable", for errors.Is.
var (
	ErrPaused      = errors.New("route: the providers are paused")
	ErrCircuitOpen = errors.New("route: the circuit breakers are open")
)

// Choose returns the rails that may be tried for an operation now, best first. channel is a network, or for banks one
// of our bank ids. The probe belongs to the first rail; it is nil unless the breaker of that rail is half-open. The
// error is a problem of kind Unavailable. Its code is "not_served" if no provider serves the operation. It is
// "provider_unavailable", with a RetryAfter, if all that serve it are paused or failing. Do not call Choose inside a
// transaction.
func (t *Table) Choose(ctx context.Context, op Operation, channel, tenant, mode string) ([]provider.Rail, *Probe, error) {
	return t.choose(ctx, op, channel, tenant, mode, t.mayTry, func(provider.Rail) bool { return true })
}

// Work is a payment that needs a rail.
type Work struct {
	Operation             Operation
	Channel, Tenant, Mode string // as in Choose
	Amount                money.Pesewas
	// Email and Voucher report whether the account of a collection has an e-mail address and uses vouchers. Some
	// rails need one of them.
	Email, Voucher bool
}

// ChooseFor is Choose for a payment. It leaves out rails whose limits exclude the amount. It also leaves out rails that
// need an e-mail address or a voucher if the account has none. If the amount is the only reason why no rail is left, the
// code is "amount_not_served".
func (t *Table) ChooseFor(ctx context.Context, w Work) ([]provider.Rail, *Probe, error) {
	return t.chooseFor(ctx, w, t.mayTry, "")
}

// WouldServe returns the error that ChooseFor would return now. It claims no probe, so a half-open breaker counts as
// open.
func (t *Table) WouldServe(ctx context.Context, w Work) error {
	_, _, err := t.chooseFor(ctx, w, func(ctx context.Context, k breakerKey, _ bool) (bool, *Probe, time.Duration) {
		return t.mayTry(ctx, k, false)
	}, "")
	return err
}

// trying reports whether a breaker lets a request through, as mayTry does.
type trying func(ctx context.Context, k breakerKey, first bool) (ok bool, taken *Probe, wait time.Duration)

// chooseFor is ChooseFor, with only one rail if only is not empty.
func (t *Table) chooseFor(ctx context.Context, w Work, mayTry trying, only string) ([]provider.Rail, *Probe, error) {
	excluded := false
	rails, probe, err := t.choose(ctx, w.Operation, w.Channel, w.Tenant, w.Mode, mayTry, func(r provider.Rail) bool {
		if only != "" && r.Name != only {
			return false
		}
		if w.Operation == Collect && !r.Needs.Met(w.Channel, w.Email, w.Voucher) {
			return false
		}
		takes := r.Takes(string(w.Operation), w.Channel, w.Amount)
		excluded = excluded || !takes
		return takes
	})
	if excluded && err != nil && problem.From(err).Code == "not_served" {
		err = errAmount
	}
	return rails, probe, err
}

var errAmount = problem.New(problem.Invalid, "amount_not_served", "No provider takes this amount on this channel")

// OnAmount returns the error "amount_not_served" as an error of the field amount, and any other error unchanged.
func OnAmount(err error) error {
	if AmountNotServed(err) {
		return problem.Field("amount", "is outside the limits of every provider of this channel; send a smaller or a larger amount")
	}
	return err
}

// AmountNotServed reports whether an error is "amount_not_served".
func AmountNotServed(err error) bool { return errors.Is(err, errAmount) }

// Admit checks whether one rail may be tried for an operation now, with the rules of Choose. Without a route from the
// channel to the rail, the error is "not_served".
func (t *Table) Admit(ctx context.Context, rail string, op Operation, channel, tenant, mode string) (*Probe, error) {
	_, probe, err := t.choose(ctx, op, channel, tenant, mode, t.mayTry, func(r provider.Rail) bool { return r.Name == rail })
	return probe, err
}

// AdmitFor is Admit for a payment, with the rules of ChooseFor.
func (t *Table) AdmitFor(ctx context.Context, rail string, w Work) (*Probe, error) {
	_, probe, err := t.chooseFor(ctx, w, t.mayTry, rail)
	return probe, err
}

func (t *Table) choose(ctx context.Context, op Operation, channel, tenant, mode string, mayTry trying, eligible func(provider.Rail) bool) ([]provider.Rail, *Probe, error) {
	sw, err := t.switches.Get(ctx, struct{}{})
	if err != nil {
		return nil, nil, err
	}
	var banks *catalogue
	if op == DisburseBank || op == BankName {
		if banks, err = t.catalogue.Get(ctx, struct{}{}); err != nil {
			return nil, nil, err
		}
	}
	var chosen []provider.Rail
	var probe *Probe
	served, wait, why := false, maxHold, ErrPaused
	for _, r := range t.serving(sw, banks, op, channel, tenant, mode) {
		if !eligible(r) {
			continue
		}
		served = true
		if sw.paused(mode, r.Name, op) {
			continue
		}
		ok, taken, until := mayTry(ctx, breakerKey{mode, r.Name, op}, len(chosen) == 0)
		if !ok {
			wait, why = min(wait, until), ErrCircuitOpen
			continue
		}
		if taken != nil {
			probe = taken
		}
		chosen = append(chosen, r)
	}
	switch {
	case len(chosen) > 0:
		return chosen, probe, nil
	case !served:
		return nil, nil, problem.New(problem.Unavailable, "not_served", "This service is not offered at the moment")
	default:
		p := problem.Wrap(why, problem.Unavailable, "provider_unavailable", "This service is not available at the moment. Nothing was sent; try again shortly.")
		p.RetryAfter = max(wait, time.Second)
		return nil, nil, p
	}
}

// serving returns the rails that serve an operation, even if they are paused or failing, best first.
func (t *Table) serving(sw *switches, banks *catalogue, op Operation, channel, tenant, mode string) []provider.Rail {
	var rails []provider.Rail
	names := sw.route(op, channel, tenant, mode)
	if op == Refund {
		names = t.names
	}
	for _, name := range names {
		r, ok := t.Rail(name, mode)
		if !ok || !Can(r, op) {
			continue
		}
		if banks != nil {
			r = withBanks(r, banks)
			if r.Banks[channel] == "" {
				continue
			}
		}
		rails = append(rails, r)
	}
	return rails
}

const (
	sqlRoutes   = `SELECT tenant, mode, operation, channel, providers, actor, changed_at FROM provider_routes ORDER BY tenant, mode, operation, channel`
	sqlPauses   = `SELECT mode, provider, operation, reason, actor, paused_at FROM provider_pauses ORDER BY mode, provider, operation`
	sqlBreakers = `SELECT mode, provider, operation, opened_at, open_until, hold, probe_until, why FROM provider_breakers`
)

// loadSwitches reads the three small tables in one round trip.
func (t *Table) loadSwitches(ctx context.Context) (*switches, error) {
	s, reading := &switches{}, t.breakers.reading()
	err := t.db.Read(ctx, func(tx *db.Tx) error {
		*s = switches{routes: map[routeKey][]string{}, pauses: map[breakerKey]Pause{}, breakers: map[breakerKey]breaker{}}
		return tx.Gather(
			db.Query{SQL: sqlRoutes, Each: func(row *db.Row) error {
				r, err := scanRoute(row)
				s.routes[routeKey{r.Tenant, r.Mode, r.Operation, r.Channel}] = r.Providers
				return err
			}},
			db.Query{SQL: sqlPauses, Each: func(row *db.Row) error {
				p, err := scanPause(row)
				s.pauses[breakerKey{p.Mode, p.Provider, p.Operation}] = p
				return err
			}},
			db.Query{SQL: sqlBreakers, Each: func(row *db.Row) error {
				k, b, err := scanBreaker(row)
				s.breakers[k] = b
				return err
			}},
		)
	})
	if err != nil {
		return nil, err
	}
	t.breakers.seen(reading, s.breakers)
	return s, nil
}

// Rail returns a rail by name and mode, paused or not. Status queries need the rail to which the payment was sent.
func (t *Table) Rail(name, mode string) (provider.Rail, bool) {
	for _, r := range t.rails {
		if r.Name == name && r.Mode == mode {
			return withBanks(r, t.known.Load()), true
		}
	}
	return provider.Rail{}, false
}
