package textroute

import (
	"slices"

	"github.com/makola/makola/internal/msisdn"
)

// Route names the providers of messages, in order.
type Route struct {
	Network   msisdn.Network // empty: every network
	Sender    string         // empty: every sender ID
	Providers []string
}

// route returns the providers of a message from the most specific route. The route of a sender comes before the route
// of a network.
func (t *Table) route(from string, to msisdn.MSISDN) []string {
	network, _ := to.LikelyNetwork()
	for _, sender := range []string{from, ""} {
		for _, n := range []msisdn.Network{network, ""} {
			i := slices.IndexFunc(t.routes, func(r Route) bool { return r.Sender == sender && r.Network == n })
			if i >= 0 {
				return t.routes[i].Providers
			}
		}
	}
	all := make([]string, 0, len(t.carriers)+1)
	if t.binds != nil {
		all = append(all, SMPP)
	}
	for _, c := range t.carriers {
		all = append(all, c.rail.Name)
	}
	return all
}

// Whole implements provider.SMSSender.
func (t *Table) Whole(from string, to msisdn.MSISDN) bool {
	if len(t.carriers) == 0 {
		return false
	}
	names := t.route(from, to)
	for _, name := range names {
		if name == SMPP && t.bound(to) {
			return false
		}
		if c := t.named(name); c != nil && c.takes(from) && c.ready() == nil {
			return true
		}
	}
	return t.binds == nil || !slices.Contains(names, SMPP)
}

// carrier returns the provider over HTTP that takes a message now. It is nil if there is none, or if the binds come
// first.
func (t *Table) carrier(from string, to msisdn.MSISDN) *carrier {
	for _, name := range t.route(from, to) {
		if name == SMPP && t.bound(to) {
			return nil
		}
		if c := t.named(name); c != nil && c.takes(from) && c.ready() == nil {
			return c
		}
	}
	return nil
}

// bound reports whether a bind takes messages to a number.
func (t *Table) bound(to msisdn.MSISDN) bool {
	network, _ := to.LikelyNetwork()
	return t.binds != nil && t.binds.Ready(network) == nil
}

func (t *Table) named(name string) *carrier {
	for _, c := range t.carriers {
		if c.rail.Name == name {
			return c
		}
	}
	return nil
}
