package requestlog

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// Filter narrows a list. Empty members have no effect.
type Filter struct {
	Tenant   string
	Status   int
	Endpoint string
	Before   string // only requests older than the one with this id
	Limit    int    // default 50, at most 200 (maxOfList)
}

// Found is a page of a list.
type Found struct {
	Requests []Request // newest first
	// More is the Before of the next page. It is empty on the last one. One call scans at most 10,000 requests.
	// If the filter matches few of them, a page has fewer than Limit rows, and More continues.
	More string
}

const (
	requestColumns = `id, tenant, request_id, at, took, method, endpoint, status, code, message, fields, api_key, origin`

	looked = `(SELECT ` + requestColumns + ` FROM refused_requests WHERE ($1 = '' OR id < $1) ORDER BY id DESC LIMIT $2) AS looked`
	// A tenant has at most KeepOfTenant requests, plus those since the last Prune.
	lookedTenant = `(SELECT ` + requestColumns + ` FROM refused_requests WHERE tenant = $5 AND ($1 = '' OR id < $1) ORDER BY id DESC LIMIT $2) AS looked`

	wanted = ` WHERE ($3 = 0 OR status = $3) AND ($4 = '' OR endpoint = $4) ORDER BY id DESC LIMIT `

	listAll    = `SELECT ` + requestColumns + ` FROM ` + looked + wanted + `$5`
	listTenant = `SELECT ` + requestColumns + ` FROM ` + lookedTenant + wanted + `$6`

	// The position at which a scan ended.
	lastAll    = `SELECT id FROM refused_requests WHERE ($1 = '' OR id < $1) ORDER BY id DESC LIMIT 1 OFFSET $2`
	lastTenant = `SELECT id FROM refused_requests WHERE tenant = $3 AND ($1 = '' OR id < $1) ORDER BY id DESC LIMIT 1 OFFSET $2`

	findOne   = `SELECT ` + requestColumns + ` FROM refused_requests WHERE id = $1 AND ($2 = '' OR tenant = $2)`
	byRequest = `SELECT ` + requestColumns + ` FROM refused_requests WHERE request_id = $1 AND ($2 = '' OR tenant = $2) ORDER BY id DESC LIMIT $3`
)

// List gives requests, newest first.
func (l *Log) List(ctx context.Context, f Filter) (found Found, err error) {
	if f.Limit <= 0 {
		f.Limit = defaultOfList
	}
	f.Limit = min(f.Limit, maxOfList)
	list, last := listAll, lastAll
	args, lastArgs := []any{f.Before, lookedAt, f.Status, f.Endpoint}, []any{f.Before, lookedAt - 1}
	if f.Tenant != "" {
		list, last = listTenant, lastTenant
		args, lastArgs = append(args, f.Tenant), append(lastArgs, f.Tenant)
	}
	args = append(args, f.Limit+1)
	err = l.db.Read(db.Bulk(ctx, f.Tenant), func(tx *db.Tx) (err error) {
		found = Found{}
		if found.Requests, err = db.All(tx, list, args, (*Request).scan); err != nil {
			return err
		}
		if len(found.Requests) > f.Limit {
			found.Requests = found.Requests[:f.Limit]
			found.More = found.Requests[f.Limit-1].ID
			return nil
		}
		_, err = tx.One(last, lastArgs, &found.More)
		return err
	})
	return found, err
}

// Unlisted returns the newest request of at most limit addresses whose payouts were refused recently because the
// address is not on the tenant's list.
func (l *Log) Unlisted(ctx context.Context, tenant string, limit int) (list []Request, err error) {
	found, err := l.List(ctx, Filter{Tenant: tenant, Status: 403, Limit: maxOfList})
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, r := range found.Requests {
		if r.Code != "ip_not_whitelisted" || r.Origin == "" || seen[r.Origin] || len(list) == limit {
			continue
		}
		seen[r.Origin] = true
		list = append(list, r)
	}
	return list, nil
}

// Get gives one request, which must be the tenant's unless tenant is empty.
func (l *Log) Get(ctx context.Context, tenant, id string) (Request, error) {
	list, err := db.ReadAll(ctx, l.db, findOne, []any{id, tenant}, (*Request).scan)
	if err == nil && len(list) == 0 {
		err = problem.New(problem.NotFound, "request_not_found", "There is no such request in the log")
	}
	if err != nil {
		return Request{}, err
	}
	return list[0], nil
}

// ByRequestID gives the requests with a request id, newest first and at most 50: of a tenant, or of all where it is empty.
func (l *Log) ByRequestID(ctx context.Context, tenant, requestID string) ([]Request, error) {
	return db.ReadAll(ctx, l.db, byRequest, []any{requestID, tenant, maxOfOneID}, (*Request).scan)
}

func (r *Request) scan(row *db.Row) error {
	var took int64
	var fields string
	if err := row.Scan(&r.ID, &r.Tenant, &r.RequestID, &r.At, &took, &r.Method, &r.Endpoint, &r.Status, &r.Code, &r.Message, &fields, &r.Key, &r.Origin); err != nil {
		return err
	}
	r.Took = time.Duration(took) * time.Microsecond
	return json.Unmarshal([]byte(fields), &r.Fields)
}

const (
	pruneOld = `DELETE FROM refused_requests WHERE id IN (SELECT id FROM refused_requests WHERE at < $1 ORDER BY at LIMIT $2)`

	crowdedTenants = `SELECT tenant FROM refused_requests GROUP BY tenant HAVING count(*) > $1`
	pruneTenant    = `DELETE FROM refused_requests WHERE id IN
		(SELECT id FROM refused_requests WHERE tenant = $1 AND id <= $2 ORDER BY id LIMIT $3)`
	lastKept = `SELECT id FROM refused_requests WHERE tenant = $1 ORDER BY id DESC LIMIT 1 OFFSET $2`
)

// Prune removes requests older than keep (0: KeepFor), and those beyond KeepOfTenant of a tenant, in small
// transactions.
func (l *Log) Prune(ctx context.Context, keep time.Duration) error {
	before := l.clock.Now().Add(-cmp.Or(keep, KeepFor))
	if err := db.Prune(ctx, l.db, pruneOld, pruneAtOnce, before); err != nil {
		return err
	}
	var crowded []string
	err := l.db.Read(db.Bulk(ctx, ""), func(tx *db.Tx) (err error) {
		crowded, err = tx.Texts(crowdedTenants, KeepOfTenant)
		return err
	})
	for _, tenant := range crowded {
		if err == nil {
			err = l.pruneTenant(ctx, tenant)
		}
	}
	return err
}

func (l *Log) pruneTenant(ctx context.Context, tenant string) error {
	var id string
	found, err := l.db.ReadOne(db.Bulk(ctx, tenant), lastKept, []any{tenant, KeepOfTenant}, &id)
	if err != nil || !found {
		return err
	}
	return db.Prune(ctx, l.db, pruneTenant, pruneAtOnce, tenant, id)
}
