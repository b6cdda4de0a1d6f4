package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/usertext"
)

// Draft is the first file of a source. A person must confirm how it is read.
type Draft struct {
	ID        string
	Source    string
	FileName  string
	Requester string
	parts     int
	MadeAt    time.Time
}

// Limits of drafts.
const (
	maxDrafts = 10
	draftTime = 24 * time.Hour
)

const (
	countDrafts = `SELECT count(*) FROM statement_drafts`

	insertDraft = `INSERT INTO statement_drafts (id, source, file_name, maker, parts, made_at) VALUES ($1, $2, $3, $4, $5, $6)`

	insertPart = `INSERT INTO statement_draft_parts (draft, number, bytes) VALUES ($1, $2, $3)`

	selectDraft = `SELECT id, source, file_name, maker, parts, made_at FROM statement_drafts WHERE id = $1`

	selectPart = `SELECT bytes FROM statement_draft_parts WHERE draft = $1 AND number = $2`

	deleteDraft = `DELETE FROM statement_drafts WHERE id = $1`

	deletePart = `DELETE FROM statement_draft_parts WHERE draft = $1 AND number = $2`

	oldDrafts = `SELECT id, source, file_name, maker, parts, made_at FROM statement_drafts WHERE made_at < $1 ORDER BY id LIMIT 50`

	// Parts without a draft, by the time in their ids.
	lostParts = `DELETE FROM statement_draft_parts WHERE draft < $1 AND NOT EXISTS (SELECT 1 FROM statement_drafts WHERE id = statement_draft_parts.draft)`
)

func (d *Draft) scan(r *db.Row) error {
	return r.Scan(&d.ID, &d.Source, &d.FileName, &d.Requester, &d.parts, &d.MadeAt)
}

// Keep stores a file as a draft.
func (s *store) Keep(ctx context.Context, u Upload, file *sheet.File) (d Draft, err error) {
	source, err := ParseSource(u.Source)
	if err != nil {
		return d, err
	}
	var drafts int
	if _, err := s.db.ReadOne(ctx, countDrafts, nil, &drafts); err != nil {
		return d, err
	}
	if drafts >= maxDrafts {
		return d, problem.New(problem.Invalid, "too_many_drafts", fmt.Sprintf("%d files wait to be confirmed: confirm or discard one first", drafts))
	}
	d = Draft{ID: newID(), Source: source.ID, FileName: usertext.Cut(usertext.Visible(u.FileName), 100), Requester: u.By, MadeAt: s.clock.Now()}
	d.parts, err = sheet.Split(file.Content(), func(number int, part []byte) error {
		_, err := s.db.Exec(db.Bulk(ctx, ""), insertPart, d.ID, int64(number), part)
		return err
	})
	if err != nil {
		return d, fmt.Errorf("reconcile: store a file: %w", err)
	}
	return d, s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(insertDraft, d.ID, d.Source, d.FileName, d.Requester, int64(d.parts), d.MadeAt)
		return err
	})
}

// OpenDraft returns a draft of a person and its file. The caller closes the file.
func (s *store) OpenDraft(ctx context.Context, id, person string) (d Draft, file *sheet.File, err error) {
	found := false
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		return tx.Query(selectDraft, []any{id}, func(r *db.Row) error {
			found = true
			return d.scan(r)
		})
	})
	if err == nil && (!found || d.Requester != person) {
		err = problem.New(problem.NotFound, "draft_not_found", "The file is no longer here. Upload it again")
	}
	if err != nil {
		return d, nil, err
	}
	file, err = sheet.Open(sheet.Joined(d.parts, func(number int) ([]byte, error) { return s.part(ctx, d, number) }))
	return d, file, err
}

// part reads a part of the file of a draft.
func (s *store) part(ctx context.Context, d Draft, number int) (part []byte, err error) {
	found, err := s.db.ReadOne(db.Bulk(ctx, ""), selectPart, []any{d.ID, int64(number)}, &part)
	if err == nil && !found {
		err = problem.New(problem.NotFound, "draft_not_found", "The file is no longer here. Upload it again")
	}
	return part, err
}

// Discard deletes a draft.
func (s *store) Discard(ctx context.Context, d Draft) error {
	return s.db.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error {
		for number := range d.parts {
			if _, err := tx.Exec(deletePart, d.ID, int64(number+1)); err != nil {
				return err
			}
		}
		_, err := tx.Exec(deleteDraft, d.ID)
		return err
	})
}

// Sweep deletes drafts that nobody has confirmed.
func (s *store) Sweep(ctx context.Context) error {
	before := s.clock.Now().Add(-draftTime)
	list, err := db.ReadAll(ctx, s.db, oldDrafts, []any{before}, (*Draft).scan)
	for _, d := range list {
		err = errors.Join(err, s.Discard(ctx, d))
	}
	return errors.Join(err, s.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(lostParts, idAt(before))
		return err
	}))
}
