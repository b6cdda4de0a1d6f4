package reconcile

import (
	"context"
	"slices"
	"strings"

	"github.com/makola/makola/internal/db"
)

const (
	linesWithTexts = `SELECT id, judged, ` + lineColumns + ` FROM statement_lines WHERE id > $1 AND (party <> '' OR narrative <> '') ORDER BY id LIMIT $2`

	eraseLine = `UPDATE statement_lines SET party = '', narrative = '' WHERE id = $1 AND judged = 1`

	exceptionsWithNotes = `SELECT id, note, source, at FROM statement_exceptions WHERE id > $1 AND note <> '' ORDER BY id LIMIT $2`

	eraseNote = `UPDATE statement_exceptions SET note = '' WHERE id = $1`

	erasedAtOnce = 1000
)

// OfNumber returns the lines of statements with a number, in any of its spellings. It reads all lines. judged reports
// whether matching has decided about the line.
func OfNumber(ctx context.Context, d *db.DB, spellings []string, each func(l Line, judged bool) error) error {
	type one struct {
		Line
		judged bool
	}
	return db.Walk(db.Bulk(ctx, ""), d, linesWithTexts, erasedAtOnce, func(after string) []any { return []any{after} }, func(r *db.Row, id *string) (o one, wanted bool, err error) {
		err = o.scan(r, id, &o.judged)
		return o, slices.ContainsFunc(spellings, func(text string) bool { return o.Party == text || strings.Contains(o.Text, text) }), err
	}, func(list []one) error {
		for _, o := range list {
			if err := each(o.Line, o.judged); err != nil {
				return err
			}
		}
		return nil
	})
}

// Erase removes a person from a line that matching has decided about. The line and its amount stay.
func Erase(ctx context.Context, d *db.DB, line string) (erased bool, err error) {
	err = d.Write(db.Bulk(ctx, ""), func(tx *db.Tx) error {
		n, err := tx.Exec(eraseLine, line)
		erased = n == 1
		return err
	})
	return erased, err
}

// NotesOfNumber returns the exceptions whose note contains a number, in any of its spellings. It reads all notes.
func NotesOfNumber(ctx context.Context, d *db.DB, spellings []string, each func(Exception) error) error {
	return db.Walk(db.Bulk(ctx, ""), d, exceptionsWithNotes, erasedAtOnce, func(after string) []any { return []any{after} }, func(r *db.Row, id *string) (e Exception, wanted bool, err error) {
		err = r.Scan(id, &e.Note, &e.Source, &e.At)
		e.ID = *id
		return e, slices.ContainsFunc(spellings, func(text string) bool { return strings.Contains(e.Note, text) }), err
	}, func(list []Exception) error {
		for _, e := range list {
			if err := each(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// EraseNote deletes the note of an exception.
func EraseNote(ctx context.Context, d *db.DB, exception string) error {
	_, err := d.Exec(db.Bulk(ctx, ""), eraseNote, exception)
	return err
}
