package batches

import (
	"context"
	"slices"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/problem"
)

// shown are the kinds of refusals that the page of a batch shows.
var shown = []problem.Kind{problem.Invalid, problem.Duplicate, problem.InProgress, problem.Forbidden, problem.InsufficientFunds, problem.RateLimited, problem.Gone, problem.Unavailable}

// done redirects to the batch, or shows the batch with the refusal.
func (ps *Pages) done(v *console.Visit, b batch.Batch, err error) (console.Answer, error) {
	e := problem.From(err)
	if err == nil || e.Code == console.CodeStepUp || !slices.Contains(shown, e.Kind) {
		return console.Answer{To: here(v, b)}, err
	}
	is, found := ps.find(v)
	if found != nil {
		return console.Answer{}, found
	}
	return ps.show(v, is, err)
}

// to performs an action on the batch of the path.
func (ps *Pages) to(v *console.Visit, do func(ctx context.Context, b batch.Batch) error) (console.Answer, error) {
	b, err := ps.find(v)
	if err != nil {
		return console.Answer{}, err
	}
	return ps.done(v, b, do(v.Ctx, b))
}

// keepNew drops the rows that an earlier batch paid.
func (ps *Pages) keepNew(v *console.Visit) (console.Answer, error) {
	return ps.to(v, func(ctx context.Context, b batch.Batch) error {
		_, err := ps.Batches.KeepNew(ctx, b.Tenant, b.ID)
		return err
	})
}

// discard deletes a draft.
func (ps *Pages) discard(v *console.Visit) (console.Answer, error) {
	b, err := ps.find(v)
	if err != nil {
		return console.Answer{}, err
	}
	if err := ps.Batches.Discard(v.Ctx, b.Tenant, b.ID); err != nil {
		return ps.done(v, b, err)
	}
	return console.Answer{To: path(v)}, nil
}

// request requests the batch. The batch then waits for another person, or starts.
func (ps *Pages) request(v *console.Visit) (console.Answer, error) {
	b, err := ps.find(v)
	if err != nil {
		return console.Answer{}, err
	}
	v.FormPage = here(v, b)
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	r, err := ps.Approvals.Changes.Do(v.Ctx, approvals.By(v), changes.KindSendBatch, v.R.PostFormValue("id"),
		changes.Values{changes.FieldTenant: b.Tenant, "batch": b.ID, "again": v.R.PostFormValue("again"), "different": v.R.PostFormValue("different")}, v.R.PostFormValue("reason"))
	if err == nil && r.Refused != nil {
		err = r.Refused
	}
	if err == nil && r.State == changes.Waiting {
		return console.Answer{To: approvals.Path(v) + "/" + r.ID}, nil
	}
	return ps.done(v, b, err)
}

func (ps *Pages) pause(v *console.Visit) (console.Answer, error) {
	return ps.to(v, func(ctx context.Context, b batch.Batch) error {
		return ps.Batches.Pause(ctx, b.Tenant, b.ID, ps.Audit.Writing(v.Entry("batch.pause", b.Tenant, b.ID)))
	})
}

func (ps *Pages) resume(v *console.Visit) (console.Answer, error) {
	return ps.to(v, func(ctx context.Context, b batch.Batch) error {
		return ps.Batches.Resume(ctx, b.Tenant, b.ID, ps.Audit.Writing(v.Entry("batch.resume", b.Tenant, b.ID)))
	})
}

func (ps *Pages) cancel(v *console.Visit) (console.Answer, error) {
	reason := v.R.PostFormValue("reason")
	return ps.to(v, func(ctx context.Context, b batch.Batch) error {
		if reason == "" {
			return problem.Field("reason", "is required")
		}
		e := v.Entry("batch.cancel", b.Tenant, b.ID)
		e.Reason = reason
		return ps.Batches.Cancel(ctx, b.Tenant, b.ID, reason, v.Who.Person.Email, ps.Audit.Writing(e))
	})
}
