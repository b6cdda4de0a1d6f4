package contacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/sheet"
)

// Imported is the result of importing a file of contacts.
type Imported struct {
	Rows       int // number of rows read so far, without the heading
	Added      int
	Duplicates int          // numbers that the group, or an earlier row of the file, had already
	Bad        []BadContact // Row is the line in the file, or the row in the sheet
}

// Fields of the rows of a file of contacts.
const (
	fieldPhone = "phone_number"
	fieldFirst = "first_name"
	fieldLast  = "last_name"
	fieldEmail = "email"
)

// ImportForm returns the fields of a file of contacts, with the headings that phones, address books and spreadsheets give
// them.
func ImportForm() sheet.Form {
	return sheet.Form{Fields: []sheet.Field{
		{Name: fieldPhone, Required: true, Looks: isNumber, Headings: []string{
			"phone", "phonenumber", "phone no", "phone num", "mobile", "mobile number", "mobile no", "mobile phone", "mobile phone number",
			"mobilenumber", "msisdn", "telephone", "telephone number", "telephone no", "tel", "tel no", "tel number", "cell", "cell phone",
			"cellphone", "cell number", "cell no", "momo number", "momo no", "whatsapp", "whatsapp number", "contact number", "contact no",
			"contact phone", "phone 1 value", "primary phone", "number", "contact", "recipient",
		}},
		{Name: fieldFirst, Headings: []string{"firstname", "first", "given name", "name", "full name", "fullname", "customer name", "contact name"}},
		{Name: fieldLast, Headings: []string{"lastname", "last", "surname", "family name"}},
		{Name: fieldEmail, Headings: []string{"e mail", "email address", "e mail address", "mail", "e mail 1 value", "email 1 value"}},
	}}
}

func isNumber(text string) bool {
	_, err := msisdn.ParseCell(text)
	return err == nil
}

// add adds the result of a set. lines are the lines of its rows in the file.
func (i *Imported) add(set Added, lines []int) {
	i.Added += set.New
	i.Duplicates += set.Duplicates
	for _, b := range set.Bad {
		i.Bad = append(i.Bad, BadContact{Row: lines[b.Row-1], Text: b.Text})
	}
}

// Import adds the rows of a table of ImportForm to a group. A bad row is reported and left out, and does not stop the
// rest. It works in sets of 1,000 rows, each committed and reported to progress. Rows added before an error stay, and
// the same file may be imported again.
func (s *Store) Import(ctx context.Context, tenant, group string, rows *sheet.Table, progress func(Imported)) (Imported, error) {
	var done Imported
	quotas, err := s.quotasOf(ctx, tenant)
	if err != nil {
		return done, err
	}
	for more := true; more; {
		var list []NewContact
		var lines []int
		if list, lines, more, err = readSet(rows, &done); err != nil {
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

// ImportNew makes a group for the rows of a table. The group is deleted when the import fails.
func (s *Store) ImportNew(ctx context.Context, tenant, name string, rows *sheet.Table, progress func(Imported)) (Group, Imported, error) {
	g, _, err := s.AddGroup(ctx, idempotency.Caller{Tenant: tenant}, name, "")
	if err != nil {
		return Group{}, Imported{}, err
	}
	done, err := s.Import(ctx, tenant, g.ID, rows, progress)
	if err != nil { // even if the caller has given up
		err = errors.Join(err, s.DeleteGroup(context.WithoutCancel(ctx), tenant, g.ID))
	}
	return g, done, err
}

// readSet reads at most atOnce contacts with their line numbers. It counts every row in done, including bad rows.
// more reports whether the file may have further rows.
func readSet(rows *sheet.Table, done *Imported) (list []NewContact, lines []int, more bool, err error) {
	for len(list) < atOnce {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return list, lines, false, nil
		}
		var bad *sheet.BadRow
		if err != nil && !errors.As(err, &bad) {
			return nil, nil, false, err
		}
		done.Rows++
		if bad != nil {
			done.Bad = append(done.Bad, BadContact{Row: bad.Line, Text: bad.Why})
			continue
		}
		contact, err := contactOf(row)
		if err != nil {
			done.Bad = append(done.Bad, BadContact{Row: row.Line, Text: err.Error()})
			continue
		}
		list, lines = append(list, contact), append(lines, row.Line)
	}
	return list, lines, true, nil
}

// contactOf reads one row.
func contactOf(row sheet.Row) (n NewContact, err error) {
	for _, field := range []struct {
		name string
		to   *string
	}{{fieldPhone, &n.Phone}, {fieldFirst, &n.FirstName}, {fieldLast, &n.LastName}, {fieldEmail, &n.Email}} {
		if *field.to, err = row.Text(field.name); err != nil {
			return n, err
		}
	}
	number, err := msisdn.ParseCell(n.Phone)
	if err != nil {
		return n, fmt.Errorf("the phone number %w", err)
	}
	n.Phone = string(number)
	return n, nil
}
