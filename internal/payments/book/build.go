package book

import "github.com/prometheus/client_golang/prometheus"

// New opens a book. The caller must Close it.
func New(d Deps, h Hooks) *Book {
	bk := &Book{Reader: NewReader(d.DB, d.Ledger, d.Clock), jobs: d.Jobs, webhooks: d.Webhooks, tenants: d.Tenants, watch: d.Watch, hooks: h, counts: newCounts(h.Account)}
	bk.committers = newCommitters(d.Jobs.Node(), d.DB.Engine(), bk.Commit)
	bk.reads = newRowReader(d.DB)
	return bk
}

// Close waits for running transactions.
func (bk *Book) Close() {
	bk.committers.close()
	bk.reads.Close()
}

// Collectors returns the counters of committed payments, for a registry.
func (bk *Book) Collectors() []prometheus.Collector {
	return []prometheus.Collector{bk.counts.payments, bk.counts.cedis, bk.counts.seconds}
}
