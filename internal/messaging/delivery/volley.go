package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/tenant"
)

// volley is the small campaigns that one transaction marked with their charges. They share a job, which ends with the
// last of them; each is submitted and recorded by itself. A campaign with messages to be offered again leaves the
// volley and gets a job of its own, and so does every campaign of a volley whose node died.
type volley struct {
	job   *chunkJob
	works []*work
	begun bool // a later run reads the rows
}

// volleyKind is the kind of a volley's job, a permanent name.
func volleyKind(mode tenant.Mode) string { return "sms_volley_" + string(mode) }

// volleyPayload is the stored payload of a volley's job, version 1.
type volleyPayload struct {
	Version   int                 `json:"v"`
	Mode      tenant.Mode         `json:"mode"`
	Campaigns map[string][]string `json:"campaigns"` // ids by tenant
}

// volleyJob makes the job of small campaigns of one mode that are marked with their charges.
func volleyJob(mode tenant.Mode, works []*work) (jobs.Job, error) {
	v := &volley{job: &chunkJob{id: works[0].campaign.ID + "/volley", left: len(works)}, works: works}
	stored := volleyPayload{Version: 1, Mode: mode, Campaigns: map[string][]string{}}
	for _, w := range works {
		stored.Campaigns[w.campaign.Tenant] = append(stored.Campaigns[w.campaign.Tenant], w.campaign.ID)
	}
	payload, err := json.Marshal(stored)
	if err != nil {
		return jobs.Job{}, fmt.Errorf("the payload of a volley: %w", err)
	}
	return jobs.Job{ID: v.job.id, Kind: volleyKind(mode), Payload: payload, Memo: v}, nil
}

// deliverVolley handles the job of a volley.
func (d *runner) deliverVolley(ctx context.Context, job jobs.Job) jobs.Outcome {
	v, ok := job.Memo.(*volley)
	if !ok || v.begun {
		return d.splitVolley(ctx, job)
	}
	v.begun = true
	errs := make([]error, len(v.works))
	var group sync.WaitGroup
	for i, w := range v.works {
		group.Add(1)
		go func() {
			defer group.Done()
			errs[i] = d.deliverMarked(ctx, v, w)
		}()
	}
	group.Wait()
	switch err := errors.Join(errs...); {
	case errors.Is(err, errTakenOver), errors.Is(err, groupcommit.ErrClosed):
		return jobs.Later(noBindPause)
	case err != nil:
		return jobs.Retry(err)
	}
	return jobs.Done()
}

// deliverMarked submits one campaign of a volley and commits its results. Answers that come late have a step of their
// own; the last step ends the campaign's part of the volley.
func (d *runner) deliverMarked(ctx context.Context, v *volley, w *work) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if err != nil { // splitVolley reads the rows, and marks nothing
			d.sendingMarks.end(w.campaign.ID)
		}
	}()
	f := d.newFlight(ctx, w)
	defer f.end()
	f.submit(w.claim(w.campaign.CreatedAt, sliceSize))
	w.next = len(w.chunk.Recipients)
	for {
		results, err := f.collect(0)
		if err != nil {
			return err
		}
		s := &step{job: v.job, work: w, turn: w.turn, next: newTurn(), results: results, markedAt: f.markedAt(), inFlight: f.size()}
		if s.inFlight == 0 {
			d.sendingMarks.end(w.campaign.ID)
			s.last = len(w.retry)+len(s.queued()) == 0
			s.leaves = !s.last
		}
		if _, err = d.steps.commit(ctx, s); err != nil || s.inFlight == 0 {
			return err
		}
		w.turn, w.retry = s.next, append(w.retry, s.queued()...)
	}
}

const volleyPayloads = `SELECT payload FROM jobs WHERE kind IN ('sms_volley_test', 'sms_volley_live')`

// campaignsOfVolleys reads the ids of the campaigns in the jobs of volleys.
func campaignsOfVolleys(tx *db.Tx) ([]string, error) {
	ids := []string{}
	err := tx.Query(volleyPayloads, nil, func(r *db.Row) error {
		var payload []byte
		var stored volleyPayload
		err := r.Scan(&payload)
		if err == nil {
			err = json.Unmarshal(payload, &stored)
		}
		for _, campaigns := range stored.Campaigns {
			ids = append(ids, campaigns...)
		}
		return err
	})
	return ids, err
}

const jobsThere = `SELECT id FROM jobs WHERE id IN (SELECT value FROM texts($1))`

// splitVolley gives each campaign of a volley that has no job a job of its own.
func (d *runner) splitVolley(ctx context.Context, job jobs.Job) jobs.Outcome {
	var stored volleyPayload
	if err := json.Unmarshal(job.Payload, &stored); err != nil {
		return jobs.Retry(fmt.Errorf("the payload of a volley: %w", err))
	}
	missing, ids := map[string]jobs.Job{}, []string(nil)
	for tenant, campaigns := range stored.Campaigns {
		for _, id := range campaigns {
			one, err := chunk{Tenant: tenant, Campaign: id, Small: true}.payload().job(smallKind(stored.Mode))
			if err != nil {
				return jobs.Retry(err)
			}
			ids, missing[one.ID] = append(ids, one.ID), one
		}
	}
	err := d.db.Write(ctx, func(tx *db.Tx) error {
		wanted := maps.Clone(missing)
		if err := tx.Query(jobsThere, []any{ids}, func(r *db.Row) error {
			var id string
			err := r.Scan(&id)
			delete(wanted, id)
			return err
		}); err != nil {
			return err
		}
		d.jobs.Add(tx, slices.Collect(maps.Values(wanted))...)
		d.jobs.Finish(tx, job.ID)
		return nil
	})
	if err != nil {
		return jobs.Retry(err)
	}
	return jobs.Done()
}
