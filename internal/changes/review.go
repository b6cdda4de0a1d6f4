package changes

import (
	"context"
	"slices"

	"github.com/makola/makola/internal/problem"
)

// Review is a request with all facts that an approver should see.
type Review struct {
	Request
	Now     Facts          // facts computed for this page; empty unless the request waits
	Refused *problem.Error // reason why the request cannot be applied now, if Check finds one
	Shown   string         // argument of Approve: the digest of the request and of Now
}

// Missing lists the requester's facts that Check no longer finds.
func (r Review) Missing() (list []Fact) {
	for _, one := range r.Facts.List {
		if !r.Now.has(one) {
			list = append(list, one)
		}
	}
	return list
}

// Review returns a request of a place with its facts computed again.
func (a *Changes) Review(ctx context.Context, place, id string) (r Review, err error) {
	if r.Request, err = a.Get(ctx, place, id); err != nil {
		return r, err
	}
	r.Shown = r.Digest
	k, known := a.kinds[r.Kind]
	if !known || r.State != Waiting {
		return r, nil
	}
	r.Now, err = a.check(ctx, k, r.Request)
	if refused := problem.From(err); err != nil && slices.Contains(refusals, refused.Kind) {
		r.Refused, err = refused, nil
	}
	r.Shown = a.shownOf(r.Digest, r.Now)
	return r, err
}
