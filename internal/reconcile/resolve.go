package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// MaxSelected is the maximum number of exceptions of one request.
const MaxSelected = 500

// Selection are the open exceptions of one request, as the requester saw them.
type Selection struct {
	List   []Exception // in the order of their ids
	Sum    money.Pesewas
	Digest string // hash of the exceptions with the versions of their lines
	Files  []File // files that contained the lines

	versions map[string]int // sum of the lines
}

// File is a statement file with the person who imported it. That person approves no resolution of its lines.
type File struct {
	Name, Uploader, UploaderName string
	Line                         string // id of the line in the file; empty: the file has an earlier version of it
	Row                          int    // of the line
}

const (
	filesOfLines = `SELECT statement_lines.id, statement_lines.version, statement_lines.file_row, statements.file_name, statements.uploader, statements.uploader_name
FROM statement_lines JOIN statements ON statements.id = statement_lines.statement WHERE statement_lines.id IN (SELECT value FROM texts($1)) ORDER BY statement_lines.id`

	uploadersOfVersions = `SELECT DISTINCT statements.file_name, statements.uploader, statements.uploader_name
FROM statement_versions JOIN statements ON statements.id = statement_versions.statement WHERE statement_versions.line IN (SELECT value FROM texts($1)) ORDER BY 1, 2, 3`

	selectExceptions = `SELECT ` + exceptionColumns + ` FROM statement_exceptions WHERE id IN (SELECT value FROM texts($1)) AND ended_at = 0 ORDER BY id`

	selectSuspended = `SELECT ` + exceptionColumns + ` FROM statement_exceptions WHERE id IN (SELECT value FROM texts($1)) AND ending = 'suspense' ORDER BY id`
)

// Select returns the exceptions of a filter, all of them or none: more than MaxSelected are refused. They are open, or in suspense
// where the filter has that ending.
func (s *store) Select(ctx context.Context, f Filter) (Selection, error) {
	f.Ended, f.Before, f.Limit = false, "", MaxSelected+1
	list, err := s.Exceptions(ctx, f)
	switch {
	case err != nil:
		return Selection{}, err
	case len(list) > MaxSelected:
		return Selection{}, problem.New(problem.Invalid, "too_many_exceptions", fmt.Sprintf("More than %d exceptions match: narrow the filter", MaxSelected))
	}
	ids := make([]string, len(list))
	for i, e := range list {
		ids[i] = e.ID
	}
	if f.Ending == EndedSuspend {
		return s.Suspended(ctx, ids)
	}
	return s.Selected(ctx, ids)
}

// Selected returns the exceptions with these ids. An exception that has ended is left out.
func (s *store) Selected(ctx context.Context, ids []string) (Selection, error) {
	return s.selected(ctx, selectExceptions, ids, "There is no such open exception")
}

// Suspended returns the exceptions with these ids whose money is in suspense.
func (s *store) Suspended(ctx context.Context, ids []string) (Selection, error) {
	return s.selected(ctx, selectSuspended, ids, "There is no such exception with money in suspense")
}

func (s *store) selected(ctx context.Context, sql string, ids []string, none string) (n Selection, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		n, err = selection(tx, sql, ids)
		return err
	})
	if err == nil && len(n.List) == 0 {
		err = problem.New(problem.NotFound, "exception_not_found", none)
	}
	return n, err
}

func selection(tx *db.Tx, sql string, ids []string) (n Selection, err error) {
	if n.List, err = queryExceptions(tx, sql, ids); err != nil {
		return n, err
	}
	lines := []string{}
	for _, e := range n.List {
		n.Sum += e.Amount
		if e.Line != "" {
			lines = append(lines, e.Line)
		}
	}
	n.versions = map[string]int{}
	if err := tx.Query(filesOfLines, []any{lines}, func(r *db.Row) error {
		var version int
		var f File
		err := r.Scan(&f.Line, &version, &f.Row, &f.Name, &f.Uploader, &f.UploaderName)
		n.versions[f.Line] = version
		n.Files = append(n.Files, f)
		return err
	}); err != nil {
		return n, err
	}
	err = tx.Query(uploadersOfVersions, []any{lines}, func(r *db.Row) error {
		var f File
		err := r.Scan(&f.Name, &f.Uploader, &f.UploaderName)
		n.Files = append(n.Files, f)
		return err
	})
	n.Digest = n.DigestOf(n.List...)
	return n, err
}

// DigestOf returns the digest that a selection of only these exceptions would have.
func (n Selection) DigestOf(list ...Exception) string {
	sum := sha256.New()
	for _, e := range list {
		fmt.Fprintf(sum, "%s %s %s %s %d %d %d\n", e.ID, e.Kind, e.Line, e.Payment, e.Amount, e.Delta, n.versions[e.Line])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Uploaders returns the ids of the people who imported the files.
func (n Selection) Uploaders() (ids []string) {
	for _, f := range n.Files {
		if f.Uploader != "" && !slices.Contains(ids, f.Uploader) {
			ids = append(ids, f.Uploader)
		}
	}
	return ids
}

// WriteOff ends exceptions without moving money. It refuses if an exception differs from the digest.
func (s *store) WriteOff(tx *db.Tx, ids []string, digest, act string) error {
	list, err := s.lock(tx, selectExceptions, ids, digest)
	if err != nil {
		return err
	}
	return s.end(tx, list, EndedWritten, act)
}

// lock reads exceptions in tx. It refuses if an exception differs from the digest.
func (s *store) lock(tx *db.Tx, sql string, ids []string, digest string) ([]Exception, error) {
	n, err := selection(tx, sql+` FOR UPDATE`, ids)
	if err == nil && (n.Digest != digest || len(n.List) != len(ids)) {
		err = problem.New(problem.Invalid, "changed_since", "An exception has changed or ended since this was requested")
	}
	return n.List, err
}
