package batch

import "github.com/makola/makola/internal/cache"

// New builds the domain and registers its jobs.
func New(d Deps) *Batches {
	s := &Batches{db: d.DB, ledger: d.Ledger, tenants: d.Tenants, payments: d.Payments, treasury: d.Treasury, jobs: d.Jobs, recovery: d.Recovery, clock: d.Clock, log: d.Log,
		codes: codes{d.Secret.Derive("batch/code")}, pace: pace{time: setTime, most: setRows}, runSets: blockRows, maxOpen: maxOpen, access: d.Access, routes: d.Routes, lookups: d.Lookups, answers: d.Answers, webhooks: d.Webhooks, maxLookups: MaxLookups}
	s.overlaps = cache.New(d.Clock, overlapAge, 100, s.loadOverlaps)
	s.register()
	s.registerNames()
	s.jobs.Periodic("batches", sweepEvery, s.sweep)
	return s
}
