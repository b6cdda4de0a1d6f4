package route

import (
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
)

// switches has the routes, pauses and breakers of one reading.
type switches struct {
	routes   map[routeKey][]string
	pauses   map[breakerKey]Pause
	breakers map[breakerKey]breaker
}

type routeKey struct {
	tenant, mode string
	op           Operation
	channel      string
}

// route returns the providers of the most specific route. A route of the tenant comes before one for all tenants,
// then a route of the mode, then one of the channel.
func (s *switches) route(op Operation, channel, tenant, mode string) []string {
	for _, t := range []string{tenant, Any} {
		for _, m := range []string{mode, Any} {
			for _, c := range []string{channel, Any} {
				if names, ok := s.routes[routeKey{t, m, op, c}]; ok {
					return names
				}
			}
		}
	}
	return nil
}

func (s *switches) paused(mode, name string, op Operation) bool {
	_, one := s.pauses[breakerKey{mode, name, op}]
	_, all := s.pauses[breakerKey{mode, name, Any}]
	return one || all
}

// Pause is an operator's decision that a provider gets no new work of one operation, or of any. Payments that were
// sent before are still polled.
type Pause struct {
	Mode      string // "test" or "live"
	Provider  string
	Operation Operation // Any: all operations
	Reason    string
	Actor     string
	At        time.Time
}

// Route lists the providers of an operation, best first. An empty list means that the operation is not served.
type Route struct {
	Tenant    string // Any: every tenant without a route of its own
	Mode      string // "test", "live" or Any
	Operation Operation
	Channel   string // a network, one of our bank ids, or Any
	Providers []string
	Actor     string
	At        time.Time
}

func scanRoute(row *db.Row) (Route, error) {
	var r Route
	var op, names string
	err := row.Scan(&r.Tenant, &r.Mode, &op, &r.Channel, &names, &r.Actor, &r.At)
	r.Operation, r.Providers = Operation(op), split(names)
	return r, err
}

func scanPause(row *db.Row) (Pause, error) {
	var p Pause
	var op string
	err := row.Scan(&p.Mode, &p.Provider, &op, &p.Reason, &p.Actor, &p.At)
	p.Operation = Operation(op)
	return p, err
}

// split returns the names of a list that is separated by commas.
func split(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}
