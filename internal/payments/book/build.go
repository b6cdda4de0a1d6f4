package book

import "github.com/prometheus/client_golang/prometheus"

// New opens the book. Close ends it.
func New(d Deps, h Hooks) *Book {
	bk := &Book{Reader: NewReader(d.DB, d.Ledger, d.Clock), jobs: d.Jobs, webhooks: d.Webhooks, tenants: d.Tenants, watch: d.Watch, hooks: h, counts: newCounts(h.Account)}
	bk.lanes = newLanes(d.Jobs.Node(), d.DB.Engine(), bk.Commit)
	bk.reads = newReadLane(d.DB)
	return bk
}

// Close waits for the transactions that are under way.
func (bk *Book) Close() {
	bk.lanes.close()
	bk.reads.Close()
}

// Collectors gives the counters of what was committed, for a registry.
func (bk *Book) Collectors() []prometheus.Collector {
	return []prometheus.Collector{bk.counts.payments, bk.counts.cedis, bk.counts.seconds}
}
