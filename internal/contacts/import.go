package contacts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// Imported is what became of a file of contacts.
type Imported struct {
	Rows       int // read so far, the heading not counted
	Added      int
	Duplicates int          // numbers that the group, or the file before them, had already
	Bad        []BadContact // Row is the line in the file
}

// headings are the names under which files carry our columns.
var headings = map[string][]string{
	"phone":  {"phone_number", "phone", "phonenumber", "number", "msisdn", "mobile", "tel", "telephone", "contact"},
	"first":  {"first_name", "firstname", "first", "name", "given_name"},
	"last":   {"last_name", "lastname", "last", "surname", "family_name"},
	"e-mail": {"email", "e-mail", "email_address", "mail"},
}

// add counts what became of a set; lines are those of its rows in the file.
func (i *Imported) add(set Added, lines []int) {
	i.Added += set.New
	i.Duplicates += set.Duplicates
	for _, b := range set.Bad {
		i.Bad = append(i.Bad, BadContact{Row: lines[b.Row-1], Text: b.Text})
	}
}

// Import reads contacts from CSV into a group: columns by a heading (phone_number, first_name, last_name, email, or what
// spreadsheets call them), or in that order without one; commas, semicolons or tabs. A bad row is reported and left out,
// and does not stop the rest. It works in sets of 1,000 rows, each committed and told to progress; what was added before
// an error stays, and the same file may come again.
func (s *Store) Import(ctx context.Context, tenant, group string, file io.Reader, progress func(Imported)) (Imported, error) {
	var done Imported
	quotas, err := s.quotasOf(ctx, tenant)
	if err != nil {
		return done, err
	}
	rows, err := newContactReader(file)
	if err != nil {
		return done, err
	}
	for more := true; more; {
		var list []NewContact
		var lines []int
		if list, lines, more, err = rows.set(&done); err != nil {
			return done, fmt.Errorf("read the contacts: %w", err)
		}
		added, err := s.addSet(db.Bulk(ctx, tenant), tenant, group, list, quotas.Contacts)
		if err != nil {
			return done, err
		}
		done.add(added, lines)
		if progress != nil {
			progress(done)
		}
	}
	slices.SortStableFunc(done.Bad, func(a, b BadContact) int { return a.Row - b.Row })
	return done, nil
}

// badRow is a row that cannot be read; the next may be.
type badRow struct {
	line int
	why  string
}

func (b *badRow) Error() string { return b.why }

// contactReader reads rows and knows what the columns are.
type contactReader struct {
	records *recordReader
	columns map[string]int // by the keys of headings
	first   []string       // the first row, when it was no heading
}

func newContactReader(file io.Reader) (*contactReader, error) {
	buffered := bufio.NewReader(file)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = buffered.Discard(3) // what spreadsheets begin with
	}
	start, _ := buffered.Peek(4096)
	if end := bytes.IndexAny(start, "\r\n"); end >= 0 {
		start = start[:end]
	}
	r := &contactReader{records: &recordReader{file: buffered, comma: ','}}
	r.records.alone = r.hasNumber
	for _, separator := range []rune{';', '\t'} {
		if bytes.ContainsRune(start, separator) && !bytes.ContainsRune(start, ',') {
			r.records.comma = separator
		}
	}
	row, _, err := r.records.read()
	var bad *badRow
	switch {
	case errors.Is(err, io.EOF):
		return nil, problem.Field("file", "has no rows")
	case errors.As(err, &bad):
		return nil, problem.Field("file", fmt.Sprintf("begins with a line that %s", bad.why))
	case err != nil:
		return nil, err
	}
	r.columns = headingOf(row)
	if _, there := r.columns["phone"]; there {
		return r, nil
	}
	if !slices.ContainsFunc(row, func(cell string) bool { _, err := msisdn.Parse(cell); return err == nil }) {
		return nil, problem.Field("file", "must begin with a heading that names the column phone_number, or with a phone number")
	}
	r.columns = map[string]int{"phone": 0, "first": 1, "last": 2, "e-mail": 3}
	r.first = row
	return r, nil
}

// hasNumber says whether a phone number stands where one belongs.
func (r *contactReader) hasNumber(cells []string) bool {
	if i, known := r.columns["phone"]; known {
		cells = cells[min(i, len(cells)):min(i+1, len(cells))]
	}
	return slices.ContainsFunc(cells, func(cell string) bool {
		_, err := msisdn.Parse(strings.Trim(cell, `" `))
		return err == nil
	})
}

// set reads at most atOnce contacts with the lines of each, and counts every row in done, bad ones included. more says
// that the file may have others.
func (r *contactReader) set(done *Imported) (list []NewContact, lines []int, more bool, err error) {
	for len(list) < atOnce {
		contact, line, err := r.next()
		if errors.Is(err, io.EOF) {
			return list, lines, false, nil
		}
		var bad *badRow
		if err != nil && !errors.As(err, &bad) {
			return nil, nil, false, err
		}
		done.Rows++
		if bad != nil {
			done.Bad = append(done.Bad, BadContact{Row: bad.line, Text: bad.why})
			continue
		}
		list, lines = append(list, contact), append(lines, line)
	}
	return list, lines, true, nil
}

// headingOf finds our columns in a heading.
func headingOf(row []string) map[string]int {
	columns := map[string]int{}
	for i, cell := range row {
		name := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(cell)), " ", "_")
		for column, names := range headings {
			if _, taken := columns[column]; !taken && slices.Contains(names, name) {
				columns[column] = i
			}
		}
	}
	return columns
}

// next gives the next contact and its line, a badRow, or the error of the file.
func (r *contactReader) next() (NewContact, int, error) {
	row, line := r.first, 1
	if r.first = nil; row == nil {
		var err error
		if row, line, err = r.records.read(); err != nil {
			return NewContact{}, 0, err
		}
	}
	if !utf8.ValidString(strings.Join(row, "")) {
		return NewContact{}, 0, &badRow{line, "is not UTF-8 text"}
	}
	cell := func(column string) string {
		i, there := r.columns[column]
		if !there || i >= len(row) {
			return ""
		}
		return strings.TrimSpace(row[i])
	}
	return NewContact{Phone: cell("phone"), FirstName: cell("first"), LastName: cell("last"), Email: cell("e-mail")}, line, nil
}
