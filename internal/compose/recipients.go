package compose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/usertext"
)

const (
	// maxValue is the maximum number of characters of a value; a longer one is cut.
	maxValue = 100
	// maxColumns is the maximum number of columns of a file that are read. Further columns are ignored.
	maxColumns = 20
)

// The fields of contacts.
const (
	firstName = "first_name"
	lastName  = "last_name"
	email     = "email"
)

// list has the recipients of a draft: each row is a number and the values of the fields.
type list struct {
	Fields []string   `json:"fields,omitempty"`
	Rows   [][]string `json:"rows"`
}

// reading collects the recipients of a draft.
type reading struct {
	draft *Draft
	seen  map[msisdn.MSISDN]bool
	size  int // bytes of the rows
}

// add adds a recipient with the values of fields. It returns an error if the campaign then has too many recipients.
func (r *reading) add(number msisdn.MSISDN, values ...string) error {
	d := r.draft
	if r.seen[number] {
		d.Repeated++
		return nil
	}
	if r.seen[number] = true; len(r.seen) > messaging.MaxRecipients {
		return problem.Field("recipients", fmt.Sprintf("must be at most %d numbers, groups and file included", messaging.MaxRecipients))
	}
	row := make([]string, 1, len(values)+1)
	row[0] = string(number)
	for _, v := range values {
		row = append(row, cleaned(v))
	}
	for len(row) > 1 && row[len(row)-1] == "" {
		row = row[:len(row)-1]
	}
	for _, cell := range row {
		r.size += len(cell)
	}
	if r.size > maxStored {
		return errTooLarge()
	}
	d.Recipients.Rows = append(d.Recipients.Rows, row)
	return nil
}

func errTooLarge() error {
	return problem.Field("file", "has more values than a campaign may hold: remove columns that the text does not use")
}

// cleaned returns a value on one line, cut at maxValue.
func cleaned(value string) string {
	value = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(value, ""), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	return usertext.Cut(value, maxValue)
}

// read reads the recipients of a source. The file and the groups come first, because their recipients have fields.
func (s *Store) read(ctx context.Context, d *Draft, from Source) error {
	r := &reading{draft: d, seen: map[msisdn.MSISDN]bool{}}
	if from.File != nil {
		if err := r.file(from.File); err != nil {
			return err
		}
	}
	if len(from.Groups) > 0 {
		if err := s.groups(ctx, r, from.Groups); err != nil {
			return err
		}
	}
	if err := r.numbers(from.Numbers); err != nil {
		return err
	}
	if d.Count = len(d.Recipients.Rows); d.Count == 0 {
		text := "must have at least one valid number"
		if d.Invalid > 0 {
			text = fmt.Sprintf("must have at least one valid number: none of the %d is", d.Invalid)
		}
		return problem.Field("recipients", text)
	}
	return nil
}

// numbers reads pasted numbers. Spaces may be part of a number: they separate numbers only if the part between two separators
// is not a number itself.
func (r *reading) numbers(text string) error {
	for _, part := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune("\n\r,;\t", c) }) {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		list := []string{part}
		if _, err := msisdn.ParseCell(part); err != nil {
			list = strings.Fields(part)
		}
		for _, one := range list {
			number, err := msisdn.ParseCell(one)
			if err != nil {
				r.draft.Invalid++
				continue
			}
			if err := r.add(number); err != nil {
				return err
			}
		}
	}
	return nil
}

// column returns the place of a field among the values of a row. It adds the field if it is new.
func (r *reading) column(name string) int {
	at := slices.Index(r.draft.Recipients.Fields, name)
	if at < 0 {
		at = len(r.draft.Recipients.Fields)
		r.draft.Recipients.Fields = append(r.draft.Recipients.Fields, name)
	}
	return at
}

// groups reads the contacts of groups from one snapshot.
func (s *Store) groups(ctx context.Context, r *reading, ids []string) error {
	if len(ids) > messaging.MaxGroups {
		return problem.Field("groups", fmt.Sprintf("must be at most %d groups", messaging.MaxGroups))
	}
	first, last, mail := r.column(firstName), r.column(lastName), r.column(email)
	before, fields := *r.draft, len(r.draft.Recipients.Fields)
	return s.db.ReadSnapshot(db.Bulk(ctx, r.draft.Tenant), func(tx *db.Tx) error {
		r.draft.Recipients.Rows, r.draft.Repeated = before.Recipients.Rows[:len(before.Recipients.Rows):len(before.Recipients.Rows)], before.Repeated
		r.seen = map[msisdn.MSISDN]bool{} // the transaction may run again
		for _, row := range r.draft.Recipients.Rows {
			r.seen[msisdn.MSISDN(row[0])] = true
		}
		groups, err := contacts.OwnGroups(tx, r.draft.Tenant, ids)
		if err != nil {
			return err
		}
		var all int64
		for _, g := range groups {
			all += g.Contacts
		}
		if all > messaging.MaxRead {
			return problem.Field("groups", fmt.Sprintf("must have at most %d contacts together", messaging.MaxRead))
		}
		for _, g := range groups {
			if err := contacts.Each(tx, g, func(c contacts.Contact) error {
				values := make([]string, fields)
				values[first], values[last], values[mail] = c.FirstName, c.LastName, c.Email
				return r.add(c.MSISDN, values...)
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// file reads the rows of a file. Every column with a heading is a field.
func (r *reading) file(from io.Reader) (err error) {
	f, err := sheet.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	form, err := formOf(f)
	if err != nil {
		return err
	}
	rows, err := f.Table(form, sheet.Options{})
	if err != nil {
		return err
	}
	names := make([]string, 0, len(form.Fields)-1)
	for _, field := range form.Fields[1:] {
		names = append(names, field.Name)
		r.column(field.Name)
	}
	for {
		row, err := rows.Next()
		var bad *sheet.BadRow
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &bad):
			r.draft.Invalid++
			continue
		case err != nil:
			return err
		}
		text, _ := row.Text(form.Fields[0].Name) // a cell without text is not a number
		number, err := msisdn.ParseCell(text)
		if err != nil {
			r.draft.Invalid++
			continue
		}
		values := make([]string, len(names))
		for i, name := range names {
			values[i] = row.Cell(name).Text
		}
		if err := r.add(number, values...); err != nil {
			return err
		}
	}
}

// formOf returns the form for imports of contacts, with an added field for each further heading of the file.
func formOf(f *sheet.File) (sheet.Form, error) {
	form := contacts.ImportForm()
	shown, err := f.Preview(form, "", 1)
	if err != nil || !shown.Headed {
		return form, err
	}
	taken := map[int]bool{}
	for _, at := range shown.Columns {
		taken[at] = true
	}
	known := func(name string) bool {
		return slices.ContainsFunc(form.Fields, func(f sheet.Field) bool { return f.Name == name })
	}
	for i, heading := range shown.Names {
		if name := fieldName(heading); !taken[i] && name != "" && !known(name) && len(form.Fields) < maxColumns {
			form.Fields = append(form.Fields, sheet.Field{Name: name, Headings: []string{heading}})
		}
	}
	return form, nil
}
