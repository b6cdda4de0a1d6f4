package batch

import (
	"context"
	"io"

	"github.com/makola/makola/internal/problem"
)

// Retry makes a draft of the rows of a batch that were not paid and never will be: failed, refused and returned rows.
// It leaves out rows with an unknown outcome.
func (s *Batches) Retry(ctx context.Context, u Upload, id string) (b Batch, replayed bool, err error) {
	return s.copied(ctx, u, id, func(r Result) bool {
		switch r.Status {
		case "failed", "declined", string(RowRefused), statusReturned:
			return true
		}
		return false
	})
}

// Copy makes a draft of all rows of an earlier batch, such as the salaries of last month.
func (s *Batches) Copy(ctx context.Context, u Upload, id string) (b Batch, replayed bool, err error) {
	return s.copied(ctx, u, id, func(r Result) bool { return r.State != RowDropped && r.State != RowBad })
}

// copied makes a draft from rows of a batch that has started. The rows get new references, because their own are
// used.
func (s *Batches) copied(ctx context.Context, u Upload, id string, wanted func(Result) bool) (b Batch, replayed bool, err error) {
	from, err := s.Get(ctx, u.Tenant, id)
	if err != nil {
		return Batch{}, false, err
	}
	if from.StartedAt.IsZero() {
		return Batch{}, false, problem.New(problem.Invalid, "batch_status", "The batch is "+from.Status.words()+": it has not begun")
	}
	leave, err := s.uploads.enter(u.Tenant)
	if err != nil {
		return Batch{}, false, err
	}
	defer leave()
	known, err := s.banksFor(ctx, u.Tenant)
	if err != nil {
		return Batch{}, false, err
	}
	rows := &copiedRows{ctx: ctx, batches: s, known: known, from: from, wanted: wanted, set: 1}
	return s.draft(ctx, u, rows, func() []string { return nil })
}

// copiedRows are rows of another batch.
type copiedRows struct {
	ctx     context.Context
	batches *Batches
	known   banks
	from    Batch
	wanted  func(Result) bool
	set     int // the first line that was not read yet
	read    []Result
	line    int
}

func (c *copiedRows) next() (Row, error) {
	for {
		for len(c.read) == 0 {
			if c.set > c.from.Lines {
				return Row{}, io.EOF
			}
			var err error
			if c.read, err = c.batches.Results(c.ctx, c.from.Tenant, c.from.ID, c.set); err != nil {
				return Row{}, err
			}
			c.set += blockRows
		}
		r := c.read[0]
		if c.read = c.read[1:]; !c.wanted(r) {
			continue
		}
		if r.Account == "" {
			return Row{}, problem.New(problem.Gone, "batch_erased", "Personal data was erased from this batch: upload the file again")
		}
		c.line++
		return cells.row(c.line, r.Source, Given{Number: r.Account, Network: PlaceOf(r.Row), Amount: r.Amount.String(), Name: r.Name, Note: r.Note}, c.known), nil
	}
}
