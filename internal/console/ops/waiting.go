package ops

import (
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/roles"
)

// mostCounted is the maximum of a count in the navigation.
const mostCounted = 99

// Waiting counts what awaits the visitor, by the path of its page under the site.
func (ps *Pages) Waiting(p console.Place) (map[string]int, error) {
	counts := map[string]int{}
	var err error
	if counts["/acts"], err = ps.Approvals.Count(p); err != nil || p.Tenant != roles.Installation {
		return counts, err
	}
	if p.Can(roles.ReadPayments) {
		if counts["/stuck"], _, err = ps.Payments.CountStuck(p.Ctx, book.StuckFilter{}, mostCounted); err != nil {
			return nil, err
		}
	}
	if p.Can(roles.ReadStatements) {
		if counts["/exceptions"], err = ps.Reconcile.Open(p.Ctx, mostCounted); err != nil {
			return nil, err
		}
	}
	if p.Can(roles.ReviewSenders) {
		senders, err := ps.Senders.Waiting(p.Ctx, mostCounted)
		if err != nil {
			return nil, err
		}
		counts["/senders"] = len(senders)
	}
	if p.Can(roles.ReadChecks) {
		dead, err := ps.Jobs.List(p.Ctx, jobs.Filter{Dead: true, Limit: mostCounted})
		if err != nil {
			return nil, err
		}
		counts["/jobs"] = len(dead)
	}
	return counts, nil
}
