package webhook

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Failing is an account whose webhooks fail.
type Failing struct {
	Tenant  string
	Waiting int       // events that were tried and are not delivered
	Oldest  time.Time // the oldest of these events
}

const (
	// failingTries is the number of failed attempts from which an event counts as failing. The third attempt comes
	// after half an hour.
	failingTries = 3
	mostFailing  = 20_000
)

// Failing lists the accounts with failing events that were queued longer than within ago, by id.
func (w *Webhooks) Failing(ctx context.Context, within time.Duration) ([]Failing, error) {
	all := map[string]*Failing{}
	err := w.queue.Retried(ctx, jobKind, failingTries, w.clock.Now().Add(-within), mostFailing, func(raw json.RawMessage, added time.Time) {
		var p payload
		if json.Unmarshal(raw, &p) != nil || p.Tenant == "" {
			return
		}
		if all[p.Tenant] == nil {
			all[p.Tenant] = &Failing{Tenant: p.Tenant, Oldest: added}
		}
		all[p.Tenant].Waiting++
	})
	list := make([]Failing, 0, len(all))
	for _, f := range all {
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b Failing) int { return strings.Compare(a.Tenant, b.Tenant) })
	return list, err
}
