package payments

import (
	"strings"

	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/payments/book"
)

// Limits of payments that a node processes at once, in total and for one rail. The limit for one rail keeps a rail
// that does not answer from using up the node's capacity.
const (
	workers      = 1024
	sendsPerRail = 384
)

// queryLine is appended to a rail's name to name the line of its queries.
const queryLine = " asking"

// perLine returns the number of jobs of one line that run at once.
func perLine(line string) int {
	if strings.HasSuffix(line, queryLine) {
		return queriesPerRail
	}
	return sendsPerRail
}

// spareShare is the divisor of a rail's capacity for submissions that one tenant cannot use. With it, a burst of one
// customer on a slow rail delays no other customer.
const spareShare = 8

// perTenant returns the number of jobs of one line that a tenant may run at once.
func perTenant(_, line string) int {
	most := perLine(line)
	if strings.HasSuffix(line, queryLine) {
		return most // queries are short, so it is enough that the tenants of a line take turns
	}
	return most - most/spareShare
}

// jobTenant returns the tenant of a job.
func (f *follower) jobTenant(j jobs.Job) string {
	if a := f.live.byID(j.Subject); a != nil {
		return a.tenant
	}
	p, err := book.PayloadOf(j)
	if err != nil {
		return ""
	}
	return p.Tenant
}

// jobLine returns a job's line. Each rail has one line for submissions and one for queries.
func (f *follower) jobLine(j jobs.Job) string {
	if a := f.live.byID(j.Subject); a != nil {
		if a.queryNext.Load() {
			return a.rail + queryLine
		}
		return a.rail
	}
	p, err := book.PayloadOf(j)
	if err != nil {
		return ""
	}
	return p.Rail
}
