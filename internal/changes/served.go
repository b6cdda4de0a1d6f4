package changes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/problem"
)

// olderPause is the pause of a request whose kind this server does not know.
const olderPause = time.Minute

// LeftToServers returns the handler of requests that commands left to a server.
func (a *Changes) LeftToServers() jobs.Handler {
	return jobs.Handler{Kind: jobKind, Workers: 1, Run: func(ctx context.Context, j jobs.Job) jobs.Outcome {
		done, err := a.applyLeft(ctx, j.Subject)
		switch {
		case err != nil:
			return jobs.Retry(err)
		case !done:
			return jobs.Later(olderPause)
		}
		return jobs.Done()
	}}
}

// applyLeft applies a request that a command left to a server. If the subject refuses it for good, applyLeft ends the request. done
// is false if this server does not know the kind.
func (a *Changes) applyLeft(ctx context.Context, id string) (done bool, err error) {
	r, err := a.Store.Get(ctx, id)
	if err != nil {
		return false, err
	}
	if r.State != Waiting || !r.byMachine() {
		return true, nil
	}
	k, known := a.kinds[r.Kind]
	if !known {
		return false, nil
	}
	by := By{Machine: r.RequesterName, Origin: r.Origin, Place: r.Place}
	_, err = a.do(ctx, by, k, r)
	var refused *problem.Error
	switch {
	case err == nil:
		return true, nil
	case !errors.As(err, &refused) || !slices.Contains(refusals, refused.Kind):
		return false, fmt.Errorf("changes: %s could not be applied: %w", id, err)
	}
	return true, a.Store.Write(ctx, func(tx *db.Tx) error { return a.Store.failLeft(tx, by, r, refused.Message) })
}

// failLeft ends a request in tx as failed. A command left the request to a server, and the change was refused. It does not
// change a request that has ended.
func (s *Store) failLeft(tx *db.Tx, by By, seen Request, why string) error {
	r, err := s.waiting(tx, by, seen)
	if problem.Is(err, problem.Duplicate) || problem.Is(err, problem.Gone) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.end(tx, by, r, Failed, why)
}
