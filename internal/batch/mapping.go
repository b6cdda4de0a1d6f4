package batch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
)

// Received is an uploaded file that waits until the person who uploaded it confirms its columns. It is deleted then,
// or after an hour.
type Received struct {
	ID, Tenant, Requester string
	Name                  string // of the batch
	Preview               sheet.Preview
	CreatedAt             time.Time
	parts                 int
}

// Mapping is a person's choice of columns for a file.
type Mapping struct {
	Sheet      string         // sheet of a workbook; empty: the one of the preview
	Columns    map[string]int // number of the column by field, from 0
	SkipHidden bool           // rows that a spreadsheet hides are left out
	SkipErrors bool           // rows with an error such as #N/A are left out
}

const (
	previewRows = 10
	fileTime    = time.Hour
	maxMappings = 50 // of an account
)

const (
	insertFile = `INSERT INTO batch_files (id, tenant, maker, name, parts, preview, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`

	insertPart = `INSERT INTO batch_file_parts (file, part, content) VALUES ($1, $2, $3)`

	selectFile = `SELECT id, name, parts, preview, created_at FROM batch_files WHERE tenant = $1 AND maker = $2 AND id = $3`

	selectPart = `SELECT content FROM batch_file_parts WHERE file = $1 AND part = $2`

	deletePartsOf = `DELETE FROM batch_file_parts WHERE file IN (SELECT id FROM batch_files WHERE tenant = $1 AND maker = $2)`

	deleteFilesOf = `DELETE FROM batch_files WHERE tenant = $1 AND maker = $2`

	deleteParts = `DELETE FROM batch_file_parts WHERE file = $1`

	// The ids of files increase with time.
	oldParts = `DELETE FROM batch_file_parts WHERE file < $1`

	oldFiles = `DELETE FROM batch_files WHERE id < $1`
)

// Receive stores a file until the person who uploaded it confirms its columns. An unusable file is refused and leaves
// nothing behind. A person's new file replaces the previous one.
func (s *Batches) Receive(ctx context.Context, u Upload, from io.Reader) (r Received, err error) {
	if _, err := s.check(ctx, &u); err != nil {
		return r, err
	}
	if err := s.db.Read(ctx, func(tx *db.Tx) error { return roomForDraft(tx, u.Tenant) }); err != nil {
		return r, err
	}
	leave, err := s.uploads.enter(u.Tenant)
	if err != nil {
		return r, err
	}
	defer leave()
	file, err := sheet.Open(from)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	preview, err := file.Preview(Form(), "", previewRows)
	if err != nil {
		return r, err
	}
	now := s.clock.Now()
	r = Received{ID: book.NewID(now), Tenant: u.Tenant, Requester: u.Requester, Name: u.Name, Preview: *preview, CreatedAt: now}
	if err := s.keepFile(ctx, &r, file.Content()); err != nil {
		return r, errors.Join(err, s.dropParts(context.WithoutCancel(ctx), r))
	}
	return r, nil
}

func (s *Batches) dropParts(ctx context.Context, r Received) error {
	_, err := s.db.Exec(db.Bulk(ctx, r.Tenant), deleteParts, r.ID)
	return err
}

// keepFile stores the parts of a file, and then the file.
func (s *Batches) keepFile(ctx context.Context, r *Received, content io.Reader) error {
	ctx = db.Bulk(ctx, r.Tenant)
	parts, err := sheet.Split(content, func(number int, part []byte) error {
		_, err := s.db.Exec(ctx, insertPart, r.ID, int64(number), part)
		return err
	})
	if err != nil {
		return err
	}
	r.parts = parts
	preview, err := json.Marshal(r.Preview)
	if err != nil {
		return fmt.Errorf("batch: encode a preview: %w", err)
	}
	return s.db.Write(ctx, func(tx *db.Tx) error {
		for _, sql := range []string{deletePartsOf, deleteFilesOf} {
			if _, err := tx.Exec(sql, r.Tenant, r.Requester); err != nil {
				return err
			}
		}
		_, err := tx.Exec(insertFile, r.ID, r.Tenant, r.Requester, r.Name, int64(r.parts), string(preview), db.Micros(r.CreatedAt))
		return err
	})
}

// Received finds a file that its requester uploaded within the last hour.
func (s *Batches) Received(ctx context.Context, tenant, requester, id string) (r Received, err error) {
	var preview string
	found := false
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		r = Received{Tenant: tenant, Requester: requester}
		return tx.Query(selectFile, []any{tenant, requester, id}, func(row *db.Row) error {
			found = true
			return row.Scan(&r.ID, &r.Name, &r.parts, &preview, &r.CreatedAt)
		})
	})
	switch {
	case err != nil:
		return r, err
	case !found:
		return r, problem.New(problem.NotFound, "file_not_found", "The file is no longer here. Upload it again")
	}
	return r, json.Unmarshal([]byte(preview), &r.Preview)
}

// PreviewSheet returns a file with the preview of another of its sheets.
func (s *Batches) PreviewSheet(ctx context.Context, r Received, name string) (Received, error) {
	err := s.opened(ctx, r, func(file *sheet.File) error {
		preview, err := file.Preview(Form(), name, previewRows)
		if err == nil {
			r.Preview = *preview
		}
		return err
	})
	return r, err
}

// opened passes a stored file to a function.
func (s *Batches) opened(ctx context.Context, r Received, do func(*sheet.File) error) (err error) {
	leave, err := s.uploads.enter(r.Tenant)
	if err != nil {
		return err
	}
	defer leave()
	file, err := sheet.Open(sheet.Joined(r.parts, func(number int) ([]byte, error) { return s.part(ctx, r, number) }))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return do(file)
}

// part reads a part of a stored file.
func (s *Batches) part(ctx context.Context, r Received, number int) (content []byte, err error) {
	found, err := s.db.ReadOne(db.Bulk(ctx, r.Tenant), selectPart, []any{r.ID, int64(number)}, &content)
	if err == nil && !found {
		err = problem.New(problem.NotFound, "file_not_found", "The file is no longer here. Upload it again")
	}
	return content, err
}

// Confirm creates a draft from a received file by the columns that its requester chose, and remembers them for files
// with the same headings. Its results are those of ReadFile. The file is kept if there is no draft.
func (s *Batches) Confirm(ctx context.Context, u Upload, id string, m Mapping) (b Batch, replayed bool, err error) {
	r, err := s.Received(ctx, u.Tenant, u.Requester, id)
	if err != nil {
		return Batch{}, false, err
	}
	u.Name, m.Sheet = r.Name, cmp.Or(m.Sheet, r.Preview.Sheet)
	err = s.opened(ctx, r, func(file *sheet.File) error {
		if m.Sheet != r.Preview.Sheet {
			preview, err := file.Preview(Form(), m.Sheet, previewRows)
			if err != nil {
				return err
			}
			r.Preview = *preview
		}
		if err := m.check(r.Preview); err != nil {
			return err
		}
		b, replayed, err = s.read(ctx, u, file, sheet.Options{Sheet: m.Sheet, Places: m.Columns}, omission{m.SkipHidden, m.SkipErrors})
		return err
	})
	if err != nil {
		return Batch{}, false, err
	}
	return b, replayed, s.remember(ctx, r, m)
}

// check refuses a mapping that does not fit the file.
func (m Mapping) check(p sheet.Preview) error {
	var bad problem.Fields
	taken := map[int]string{}
	for _, field := range Form().Fields {
		column, is := m.Columns[field.Name]
		switch other := taken[column]; {
		case !is && field.Required:
			bad.Add(field.Name, "is required")
		case !is:
		case column < 0 || column >= len(p.Names):
			bad.Add(field.Name, "must be a column of the file")
		case other != "":
			bad.Add(field.Name, "has the same column as "+other)
		default:
			taken[column] = field.Name
		}
	}
	return bad.Err()
}

const (
	upsertMapping = `INSERT INTO batch_mappings (tenant, key, headings, columns, changed_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant, key) DO UPDATE SET columns = excluded.columns, changed_at = excluded.changed_at`

	selectMappings = `SELECT headings, columns, changed_at FROM batch_mappings WHERE tenant = $1 ORDER BY changed_at DESC, key LIMIT $2`

	dropMappings = `DELETE FROM batch_mappings WHERE tenant = $1 AND key NOT IN (
	SELECT key FROM batch_mappings WHERE tenant = $1 ORDER BY changed_at DESC, key LIMIT $2)`
)

// remember stores the confirmed columns of a file, and deletes the file.
func (s *Batches) remember(ctx context.Context, r Received, m Mapping) error {
	headings := r.Preview.HeadingKey()
	text, err := json.Marshal(headings)
	if err != nil {
		return fmt.Errorf("batch: encode headings: %w", err)
	}
	columns, err := json.Marshal(m.Columns)
	if err != nil {
		return fmt.Errorf("batch: encode columns: %w", err)
	}
	return s.db.Write(db.Bulk(ctx, r.Tenant), func(tx *db.Tx) error {
		if _, err := tx.Exec(upsertMapping, r.Tenant, digestOf(headings), string(text), string(columns), db.Micros(s.clock.Now())); err != nil {
			return err
		}
		if _, err := tx.Exec(dropMappings, r.Tenant, int64(maxMappings)); err != nil {
			return err
		}
		if _, err := tx.Exec(deletePartsOf, r.Tenant, r.Requester); err != nil {
			return err
		}
		_, err := tx.Exec(deleteFilesOf, r.Tenant, r.Requester)
		return err
	})
}

// Remembered are the columns that were confirmed for an earlier file of the account.
type Remembered struct {
	Columns   map[string]int // columns whose headings the new file has
	At        time.Time
	New, Gone []string // headings that differ between the files; none: the headings are the same
}

// Same reports whether the earlier file had the same headings.
func (r Remembered) Same() bool { return len(r.New)+len(r.Gone) == 0 }

// Remember returns the columns that were confirmed for the same headings. Otherwise it returns those of the file with
// the most headings in common, if these are at least half. found is false if there is none.
func (s *Batches) Remember(ctx context.Context, r Received) (best Remembered, found bool, err error) {
	headings := r.Preview.HeadingKey()
	common := 0
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		best, found, common = Remembered{}, false, 0
		return tx.Query(selectMappings, []any{r.Tenant, int64(maxMappings)}, func(row *db.Row) error {
			var text, columns string
			var at time.Time
			var old []string
			if err := row.Scan(&text, &columns, &at); err != nil {
				return err
			}
			chosen := map[string]int{}
			if err := errors.Join(json.Unmarshal([]byte(text), &old), json.Unmarshal([]byte(columns), &chosen)); err != nil {
				return fmt.Errorf("batch: parse a stored mapping: %w", err)
			}
			same := slices.Equal(old, headings)
			n := len(old) - len(without(old, headings))
			if best.Same() && found || !same && (n <= common || 2*n < len(old)) {
				return nil
			}
			best, found, common = remembered(old, headings, chosen, at), true, n
			return nil
		})
	})
	return best, found, err
}

// remembered translates columns of an old file to those of a new one.
func remembered(old, headings []string, chosen map[string]int, at time.Time) Remembered {
	r := Remembered{Columns: map[string]int{}, At: at, New: without(headings, old), Gone: without(old, headings)}
	same := slices.Equal(old, headings)
	if !same && r.Same() {
		r.New = headings // the headings are the same, in another order
	}
	for field, column := range chosen {
		if column >= len(old) {
			continue
		}
		if same {
			r.Columns[field] = column
		} else if i := slices.Index(headings, old[column]); i >= 0 && old[column] != "" {
			r.Columns[field] = i
		}
	}
	return r
}

// without returns the texts of a list that another list does not have.
func without(list, others []string) (rest []string) {
	for _, text := range list {
		if !slices.Contains(others, text) {
			rest = append(rest, text)
		}
	}
	return rest
}
