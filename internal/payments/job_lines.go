package payments

import (
	"strings"

	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/payments/book"
)

// How many payments a node works on at once, and how many of one rail it sends.
// A rail that does not answer leaves room for the others.
const (
	workers      = 1024
	sendsPerRail = 384
)

// asking is what the line of a rail's questions has behind the rail's name.
const asking = " asking"

// perLine is how many jobs of one line run at once.
func perLine(line string) int {
	if strings.HasSuffix(line, asking) {
		return asksPerRail
	}
	return sendsPerRail
}

// spareTurns is the part of what a rail is sent at once that one tenant leaves to the
// others: a burst of one customer's airtime, however slow the rail, delays no other customer.
const spareTurns = 8

// perTurn is how many jobs of one line a tenant has at once.
func perTurn(_, line string) int {
	most := perLine(line)
	if strings.HasSuffix(line, asking) {
		return most // a question is short: taking turns is enough
	}
	return most - most/spareTurns
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

// jobLine sorts jobs by rail, questions apart.
func (f *follower) jobLine(j jobs.Job) string {
	if a := f.live.byID(j.Subject); a != nil {
		if a.asking.Load() {
			return a.rail + asking
		}
		return a.rail
	}
	p, err := book.PayloadOf(j)
	if err != nil {
		return ""
	}
	return p.Rail
}
