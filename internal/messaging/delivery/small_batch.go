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

// smallBatch is the set of small campaigns that one transaction charged and claimed. They share a job, which ends
// with the last of them. Each campaign is submitted and recorded separately. A campaign with messages to submit again
// leaves the batch and gets its own job. If the node of a batch dies, all its campaigns get their own jobs.
type smallBatch struct {
	job   *chunkJob
	works []*work
	begun bool // set after the first run; later runs read the rows
}

// smallBatchKind is the kind of a batch's job. The stored name never changes.
func smallBatchKind(mode tenant.Mode) string { return "sms_volley_" + string(mode) }

// smallBatchPayload is the stored payload of a batch's job, in version 1.
type smallBatchPayload struct {
	Version   int                 `json:"v"`
	Mode      tenant.Mode         `json:"mode"`
	Campaigns map[string][]string `json:"campaigns"` // ids by tenant
}

// smallBatchJob returns the job of small campaigns of one mode that were claimed in the transaction of their charge.
func smallBatchJob(mode tenant.Mode, works []*work) (jobs.Job, error) {
	v := &smallBatch{job: &chunkJob{id: works[0].campaign.ID + "/volley", left: len(works)}, works: works}
	stored := smallBatchPayload{Version: 1, Mode: mode, Campaigns: map[string][]string{}}
	for _, w := range works {
		stored.Campaigns[w.campaign.Tenant] = append(stored.Campaigns[w.campaign.Tenant], w.campaign.ID)
	}
	payload, err := json.Marshal(stored)
	if err != nil {
		return jobs.Job{}, fmt.Errorf("encode the payload of a small batch: %w", err)
	}
	return jobs.Job{ID: v.job.id, Kind: smallBatchKind(mode), Payload: payload, Memo: v}, nil
}

// deliverSmallBatch runs the job of a batch of small campaigns.
func (d *runner) deliverSmallBatch(ctx context.Context, job jobs.Job) jobs.Outcome {
	v, ok := job.Memo.(*smallBatch)
	if !ok || v.begun {
		return d.splitSmallBatch(ctx, job)
	}
	v.begun = true
	errs := make([]error, len(v.works))
	var group sync.WaitGroup
	for i, w := range v.works {
		group.Add(1)
		go func() {
			defer group.Done()
			errs[i] = d.deliverClaimed(ctx, v, w)
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

// deliverClaimed submits one campaign of a batch and commits its results. Late responses are stored in further steps.
// The last step ends the campaign's part of the batch.
func (d *runner) deliverClaimed(ctx context.Context, v *smallBatch, w *work) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if err != nil { // splitSmallBatch then reads the rows and claims nothing
			d.claims.end(w.campaign.ID)
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
		s := &step{job: v.job, work: w, turn: w.turn, next: newTurn(), results: results, claimedAt: f.claimedAt(), inFlight: f.size()}
		if s.inFlight == 0 {
			d.claims.end(w.campaign.ID)
			s.last = len(w.retry)+len(s.queued()) == 0
			s.leaves = !s.last
		}
		if _, err = d.steps.commit(ctx, s); err != nil || s.inFlight == 0 {
			return err
		}
		w.turn, w.retry = s.next, append(w.retry, s.queued()...)
	}
}

const smallBatchPayloads = `SELECT payload FROM jobs WHERE kind IN ('sms_volley_test', 'sms_volley_live')`

// campaignsOfBatches returns the ids of the campaigns in the jobs of batches.
func campaignsOfBatches(tx *db.Tx) ([]string, error) {
	ids := []string{}
	err := tx.Query(smallBatchPayloads, nil, func(r *db.Row) error {
		var payload []byte
		var stored smallBatchPayload
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

// splitSmallBatch adds a job for each campaign of a batch that has none.
func (d *runner) splitSmallBatch(ctx context.Context, job jobs.Job) jobs.Outcome {
	var stored smallBatchPayload
	if err := json.Unmarshal(job.Payload, &stored); err != nil {
		return jobs.Retry(fmt.Errorf("parse the payload of a small batch: %w", err))
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
