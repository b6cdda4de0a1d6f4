package payments

import (
	"strings"

	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/payments/book"
)

// Limits of payments that a node processes at once, in total and for one rail. A rail that does not answer leaves
// capacity for the others.
const (
	workers      = 1024
	sendsPerRail = 384
)

// queryLine is the suffix of a rail's name in the name of its query line.
const queryLine = " asking"

// perLine returns the number of jobs of one line that run at once.
func perLine(line string) int {
	if strings.HasSuffix(line, queryLine) {
		return queriesPerRail
	}
	return sendsPerRail
}

// spareShare is the part of a rail's submissions that one tenant leaves to the others. A burst of one customer on a
// slow rail then delays no other customer.
const spareShare = 8

// perTenant returns the number of jobs of one line that a tenant may run at once.
func perTenant(_, line string) int {
	most := perLine(line)
	if strings.HasSuffix(line, queryLine) {
		return most // queries are short: taking turns is enough
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

// jobLine returns a job's line: its rail, with queries apart from submissions.
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
