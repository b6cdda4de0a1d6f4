package route

import (
	"context"
	"slices"
	"strings"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

const sqlPause = `INSERT INTO provider_pauses (mode, provider, operation, reason, actor, paused_at)
	VALUES ($1, $2, $3, $4, $5, $6)
	ON CONFLICT (mode, provider, operation) DO UPDATE SET reason = excluded.reason, actor = excluded.actor, paused_at = excluded.paused_at`

// Pause stops new work at a provider, on every node within a second. The caller writes the audit entry in the same
// transaction.
func (t *Table) Pause(tx *db.Tx, p Pause) error {
	if err := t.CheckSwitch(p.Mode, p.Provider, p.Operation); err != nil {
		return err
	}
	if strings.TrimSpace(p.Reason) == "" {
		return problem.Field("reason", "is required")
	}
	t.forget(tx)
	_, err := tx.Exec(sqlPause, p.Mode, p.Provider, string(p.Operation), p.Reason, p.Actor, db.Micros(t.clock.Now()))
	return err
}

const (
	sqlResume    = `DELETE FROM provider_pauses WHERE mode = $1 AND provider = $2 AND operation = $3`
	sqlResumeAll = `DELETE FROM provider_pauses WHERE mode = $1 AND provider = $2`
)

// Resume ends a pause and closes the breaker, because an operator who resumes has checked the provider. With Any, it
// ends all pauses of the provider in that mode and closes its breakers. It reports whether anything was paused. It
// ends an existing pause even if its provider or operation is unknown. If there is no pause, it returns an error for
// an unknown name, because the name may be mistyped.
func (t *Table) Resume(tx *db.Tx, mode, providerName string, op Operation) (bool, error) {
	resume, closing, args := sqlResume, sqlCloseBreaker, []any{mode, providerName, string(op)}
	if op == Any {
		resume, closing, args = sqlResumeAll, sqlCloseBreakers, args[:2]
	}
	t.forget(tx)
	paused, err := tx.Exec(resume, args...)
	if err != nil {
		return false, err
	}
	closed, err := tx.Exec(closing, args...)
	if err == nil && paused+closed == 0 {
		err = t.CheckSwitch(mode, providerName, op)
	}
	return paused > 0, err
}

const sqlCloseBreakers = `DELETE FROM provider_breakers WHERE mode = $1 AND provider = $2`

// CheckSwitch returns an error that names the fields with an unknown mode, provider or operation.
func (t *Table) CheckSwitch(mode, name string, op Operation) error {
	var f problem.Fields
	if mode != "test" && mode != "live" {
		f.Add("mode", "must be test or live")
	}
	t.CheckProvider(&f, name)
	if op != Any && !slices.Contains(Operations(), op) {
		f.Add("operation", "must be one of "+join(Operations())+" or "+Any)
	}
	return f.Err()
}

func join(operations []Operation) string {
	names := make([]string, 0, len(operations))
	for _, op := range operations {
		names = append(names, string(op))
	}
	return strings.Join(names, ", ")
}

const sqlSetRoute = `INSERT INTO provider_routes (tenant, mode, operation, channel, providers, actor, changed_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7)
	ON CONFLICT (tenant, mode, operation, channel) DO UPDATE SET providers = excluded.providers, actor = excluded.actor, changed_at = excluded.changed_at`

const sqlBankThere = `SELECT 1 FROM banks WHERE id = $1`

// CheckRoute returns an error that names the wrong fields of a route. A route with an unknown provider or channel
// would be stored and never used.
func (t *Table) CheckRoute(ctx context.Context, r Route) error {
	return t.db.Read(ctx, func(tx *db.Tx) error { return t.checkRoute(tx, r) })
}

func (t *Table) checkRoute(tx *db.Tx, r Route) error {
	var f problem.Fields
	if r.Tenant == "" {
		f.Add("tenant", "must be a tenant's id or "+Any)
	}
	if r.Mode != "test" && r.Mode != "live" && r.Mode != Any {
		f.Add("mode", "must be test, live or "+Any)
	}
	if !slices.Contains(Routed(), r.Operation) {
		f.Add("operation", "must be one of "+join(Routed()))
	}
	if r.Channel != Any && !slices.Contains(msisdn.Networks(), msisdn.Network(r.Channel)) {
		var one int64
		if found, err := tx.One(sqlBankThere, []any{r.Channel}, &one); err != nil {
			return err
		} else if !found {
			f.Add("channel", "must be one of MTN, TELECEL and AIRTELTIGO, the id of a bank, or "+Any)
		}
	}
	if slices.ContainsFunc(r.Providers, func(name string) bool { return !slices.Contains(t.names, name) }) {
		f.Add("providers", "must be of "+strings.Join(t.names, ", "))
	}
	return f.Err()
}

// SetRoute replaces one route.
func (t *Table) SetRoute(tx *db.Tx, r Route) error {
	if err := t.checkRoute(tx, r); err != nil {
		return err
	}
	t.forget(tx)
	_, err := tx.Exec(sqlSetRoute, r.Tenant, r.Mode, string(r.Operation), r.Channel, strings.Join(r.Providers, ","), r.Actor, db.Micros(t.clock.Now()))
	return err
}

const sqlDropRoute = `DELETE FROM provider_routes WHERE tenant = $1 AND mode = $2 AND operation = $3 AND channel = $4`

// DropRoute removes a route of a tenant, so that the general route applies to the tenant again, or a general route. A
// default route cannot be removed, only changed, because the next start would store it again. DropRoute reports
// whether there was such a route.
func (t *Table) DropRoute(tx *db.Tx, tenant, mode string, op Operation, channel string) (bool, error) {
	if tenant == Any && mode == Any && slices.ContainsFunc(defaultRoutes(), func(r Route) bool { return r.Operation == op && r.Channel == channel }) {
		return false, problem.Field("tenant", "must be an account's id: the general route of this operation and channel can be changed, but not removed")
	}
	t.forget(tx)
	n, err := tx.Exec(sqlDropRoute, tenant, mode, string(op), channel)
	return n > 0, err
}

const sqlLeadsTo = `SELECT providers FROM provider_routes WHERE tenant = $1 AND mode = $2 AND operation = $3 AND channel = $4`

// LeadsTo returns the providers of the stored route for the same account, mode, operation and channel, separated by
// spaces. It reports whether there is such a route.
func (t *Table) LeadsTo(ctx context.Context, r Route) (providers string, found bool, err error) {
	err = t.db.Read(ctx, func(tx *db.Tx) error {
		providers, found, err = t.leadsTo(tx, sqlLeadsTo, r)
		return err
	})
	return providers, found, err
}

// LeadsToIn is LeadsTo in a transaction. It locks the route.
func (t *Table) LeadsToIn(tx *db.Tx, r Route) (providers string, found bool, err error) {
	return t.leadsTo(tx, sqlLeadsTo+" FOR UPDATE", r)
}

func (t *Table) leadsTo(tx *db.Tx, sql string, r Route) (providers string, found bool, err error) {
	found, err = tx.One(sql, []any{r.Tenant, r.Mode, string(r.Operation), r.Channel}, &providers)
	return strings.Join(split(providers), " "), found, err
}

// Routes returns all stored routes.
func (t *Table) Routes(ctx context.Context) ([]Route, error) {
	var routes []Route
	err := t.db.Read(ctx, func(tx *db.Tx) error {
		routes = nil
		return tx.Query(sqlRoutes, nil, func(row *db.Row) error {
			r, err := scanRoute(row)
			routes = append(routes, r)
			return err
		})
	})
	return routes, err
}
