package batch

import (
	"context"
	"fmt"
	"slices"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// Mend replaces the input of a row of a draft and checks the row again. The row may be a dropped one.
func (s *Batches) Mend(ctx context.Context, tenant, id string, line int, g Given) (row Row, err error) {
	t, err := s.tenants.Get(ctx, tenant)
	if err != nil {
		return Row{}, err
	}
	known, err := s.banksFor(ctx, tenant)
	if err != nil {
		return Row{}, err
	}
	err = s.edit(ctx, tenant, id, func(tx *db.Tx, b Batch) error {
		old, err := rowOf(tx, id, line)
		if err != nil {
			return err
		}
		row = cells.row(line, old.Source, g, known)
		if err := s.checkRow(ctx, t, &row); err != nil {
			return err
		}
		b.replaces(old, row)
		return writeRow(tx, id, row)
	})
	return row, err
}

// Drop removes a row of a draft from payment.
func (s *Batches) Drop(ctx context.Context, tenant, id string, line int) error {
	return s.edit(ctx, tenant, id, func(tx *db.Tx, b Batch) error {
		row, err := rowOf(tx, id, line)
		if err != nil {
			return err
		}
		old := row
		row.State, row.Problems, row.unsettled = RowDropped, nil, ""
		b.replaces(old, row)
		return writeRow(tx, id, row)
	})
}

// KeepNew drops the rows of a draft that earlier batches paid, and returns their number.
func (s *Batches) KeepNew(ctx context.Context, tenant, id string) (dropped int, err error) {
	ctx = db.Bulk(ctx, tenant)
	b, err := s.Get(ctx, tenant, id)
	if err != nil {
		return 0, err
	}
	paid, err := db.ReadAll(ctx, s.db, overlapLines, []any{id, s.overlapSince()}, func(row *storedRow, r *db.Row) error {
		row.batch = id
		return r.Scan(&row.Line)
	})
	if err != nil {
		return 0, err
	}
	err = s.edit(ctx, tenant, id, func(tx *db.Tx, is Batch) error {
		if is.version != b.version {
			return problem.New(problem.InProgress, "batch_moved", "The draft was changed at the same time: reload it")
		}
		dropped = 0
		for set := range slices.Chunk(paid, blockRows) {
			n, err := tx.Exec(dropLines, db.RowsOf(lineColumns, set))
			if err != nil {
				return err
			}
			dropped += int(n)
		}
		c, err := countIn(tx, id)
		*is.tally = c
		return err
	})
	return dropped, err
}

var lineColumns = []db.Column[storedRow]{
	{Name: "batch", Text: func(r storedRow) string { return r.batch }},
	{Name: "line", Int: func(r storedRow) int64 { return int64(r.Line) }},
}

// edit changes rows of a draft.
func (s *Batches) edit(ctx context.Context, tenant, id string, change func(tx *db.Tx, b Batch) error) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		b, err := lock(tx, tenant, id)
		if err != nil {
			return err
		}
		if b.Status != Draft {
			return problem.New(problem.Invalid, "batch_frozen", "The batch is "+b.Status.words()+": its rows cannot be changed")
		}
		if err := b.counted(tx); err != nil {
			return err
		}
		if err := change(tx, b); err != nil {
			return err
		}
		return s.store(tx, b)
	})
}

func writeRow(tx *db.Tx, id string, r Row) error { return writeRows(tx, id, []Row{r}) }

// writeRows stores rows of a draft after they were checked again.
func writeRows(tx *db.Tx, id string, rows []Row) error {
	set := make([]storedRow, len(rows))
	for i, r := range rows {
		set[i] = storedRow{batch: id, Row: r}
	}
	n, err := tx.Exec(updateRows, db.RowsOf(insertColumns, set))
	if err == nil && int(n) != len(rows) {
		err = fmt.Errorf("batch: rows of %s changed under its lock", id)
	}
	return err
}

const deleteDraft = `DELETE FROM batches WHERE tenant = $1 AND id = $2 AND status = 'draft'`

// Discard deletes a draft with its rows.
func (s *Batches) Discard(ctx context.Context, tenant, id string) error {
	b, err := s.Get(ctx, tenant, id)
	if err != nil {
		return err
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(deleteDraft, tenant, id)
		if err == nil && n == 0 {
			err = problem.New(problem.Invalid, "batch_status", "The batch is not a draft")
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.erase(ctx, tenant, id, b.Lines)
}
