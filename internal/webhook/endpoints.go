package webhook

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
)

const (
	// EndpointEvents is the number of newest events that Endpoints reads.
	EndpointEvents = 10_000
	// mostEndpoints is the maximum number of endpoints that Endpoints returns.
	mostEndpoints = 50
)

// An Endpoint is an address that received webhooks of an account.
type Endpoint struct {
	URL                                    string
	Delivered, Failed, Pending, Superseded int64
	Last                                   time.Time // creation of the newest event
	LastStatus                             int       // HTTP status of its last attempt; 0: no response
	LastError                              string
}

// Rate returns the share of delivered events among the ended ones, in tenths of a percent. known is false if no event
// has ended.
func (e Endpoint) Rate() (tenths int64, known bool) {
	ended := e.Delivered + e.Failed
	if ended == 0 {
		return 0, false
	}
	return (e.Delivered*1000 + ended/2) / ended, true
}

const sqlEndpoints = `SELECT url, state, status, error, created_at FROM webhook_events WHERE tenant = $1 ORDER BY subject DESC, id DESC LIMIT $2`

// Endpoints returns the addresses of an account's newest events, the busiest first. read is the number of events that
// were read.
func (w *Webhooks) Endpoints(ctx context.Context, tenant string) (list []Endpoint, read int, err error) {
	err = w.db.Read(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		list, read = nil, 0
		at := map[string]int{}
		return tx.Query(sqlEndpoints, []any{tenant, EndpointEvents}, func(r *db.Row) error {
			var one Endpoint
			var state State
			if err := r.Scan(&one.URL, &state, &one.LastStatus, &one.LastError, &one.Last); err != nil {
				return err
			}
			read++
			one.LastError = plainly(one.LastStatus, one.LastError)
			i, known := at[one.URL]
			if !known {
				i = len(list)
				at[one.URL] = i
				list = append(list, one)
			}
			list[i].count(state)
			return nil
		})
	})
	slices.SortStableFunc(list, func(a, b Endpoint) int { return cmp.Compare(b.events(), a.events()) })
	return list[:min(len(list), mostEndpoints)], read, err
}

func (e Endpoint) events() int64 { return e.Delivered + e.Failed + e.Pending + e.Superseded }

func (e *Endpoint) count(s State) {
	switch s {
	case Delivered:
		e.Delivered++
	case Failed:
		e.Failed++
	case Superseded:
		e.Superseded++
	default:
		e.Pending++
	}
}
