package accounts

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
)

// Contacts holds the commands of makola contacts.
type Contacts struct {
	Groups   contactsGroups   `cmd:"" help:"List an account's contact groups."`
	AddGroup contactsAddGroup `cmd:"" help:"Create an empty group, for example one that an account brings from another system with its id."`
	Import   contactsImport   `cmd:"" help:"Import contacts from a CSV or XLSX file into a group. Every bad row is reported."`
	Optouts  contactsOptouts  `cmd:"" help:"List the numbers to which an account may not send campaigns."`
	Optout   contactsOptout   `cmd:"" help:"Add numbers to the opt-out list."`
	Optin    contactsOptin    `cmd:"" help:"Remove a number from the opt-out list."`
}

func groupColumns() []frame.Column[contacts.Group] {
	return []frame.Column[contacts.Group]{
		{Name: "id", Value: func(g contacts.Group) any { return g.ID }},
		{Name: "name", Value: func(g contacts.Group) any { return g.Name }},
		{Name: "contacts", Value: func(g contacts.Group) any { return g.Contacts }},
		{Name: "created_at", Value: func(g contacts.Group) any { return g.CreatedAt }},
	}
}

type contactsGroups struct {
	frame.Common
	Tenant string `arg:"" name:"account" help:"Id or unique name of the account."`
}

// Run lists groups.
func (c *contactsGroups) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		groups, err := o.Contacts().Groups(e.Ctx, c.Tenant)
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, groupColumns(), groups)
	})
}

type contactsAddGroup struct {
	frame.Common
	frame.Reasoned
	Tenant string `arg:"" name:"account" help:"Id or unique name of the account."`
	Name   string `arg:"" help:"Name of the group."`
	ID     string `name:"id" placeholder:"UUID" help:"Id of the new group in the interface. Default: a generated id."`
}

// Run creates the group.
func (c *contactsAddGroup) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		id := cmp.Or(c.ID, frame.NewID())
		var g contacts.Group
		err := o.Change(e.Ctx, audit.Entry{Action: "contacts.add_group", Tenant: c.Tenant, Subject: id}, func(tx *db.Tx) (any, error) {
			var err error
			g, err = o.Contacts().CreateGroup(tx, c.Tenant, id, c.Name)
			return frame.WithChanges([]frame.Change{{What: "group", Before: "", After: g.Name}}), err
		})
		if err != nil {
			return err
		}
		return frame.PrintOne(e.Stdout, c.Output, groupColumns(), g)
	})
}

type contactsImport struct {
	frame.Common
	frame.Reasoned
	Tenant   string `arg:"" name:"account" help:"Id or unique name of the account."`
	File     string `arg:"" help:"CSV or XLSX file; - is standard input. Columns: phone_number, first_name, last_name, email, by heading or in this order."`
	Group    string `name:"group" xor:"group" placeholder:"ID" help:"Id of the group to import into."`
	NewGroup string `name:"new-group" xor:"group" placeholder:"NAME" help:"Name of a new group to import into. The group is deleted if the import fails."`
	frame.TableFlags
}

// importView is the printed result of an import.
type importView struct {
	group string
	notes []string
	contacts.Imported
}

var importColumns = []frame.Column[importView]{
	{Name: "group", Value: func(v importView) any { return v.group }},
	{Name: "rows", Value: func(v importView) any { return int64(v.Rows) }},
	{Name: "added", Value: func(v importView) any { return int64(v.Added) }},
	{Name: "duplicates", Value: func(v importView) any { return int64(v.Duplicates) }},
	{Name: "bad", Value: func(v importView) any { return int64(len(v.Bad)) }},
	{Name: "bad_rows", Value: func(v importView) any {
		texts := make([]string, len(v.Bad))
		for i, b := range v.Bad {
			texts[i] = fmt.Sprintf("line %d: %s", b.Row, b.Text)
		}
		return texts
	}},
	{Name: "notes", Value: func(v importView) any { return v.notes }},
}

// Run imports the contacts. It prints the table on stdout, and bad rows line by line on stderr. JSON and CSV
// contain both.
func (c *contactsImport) Run(e *frame.Env) error {
	if c.Group == "" && c.NewGroup == "" {
		return frame.Usage("Give the group: --group ID or --new-group NAME")
	}
	from, err := c.openFile()
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // an error of closing is ignored, because the file was only read
	file, err := sheet.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // if the copy cannot be removed, the system removes it later
	rows, err := file.Table(contacts.ImportForm(), c.Options())
	if err != nil {
		return err
	}
	frame.Note(e.Stderr, rows.Report)
	return c.With(e, func(o *frame.Opened) error { return c.add(e, o, rows) })
}

// add adds the rows of a file that can be used.
func (c *contactsImport) add(e *frame.Env, o *frame.Opened, rows *sheet.Table) error {
	if err := o.Known(e.Ctx, &c.Tenant); err != nil {
		return err
	}
	var err error
	view := importView{group: c.Group, notes: rows.Notes()}
	show := frame.ProgressOn(e.Stderr, func(n int64) string { return fmt.Sprintf("%d rows", n) })
	progress := func(i contacts.Imported) { show("contacts", int64(i.Rows), int64(rows.Rows)) }
	if c.NewGroup != "" {
		var g contacts.Group
		g, view.Imported, err = o.Contacts().ImportNew(e.Ctx, c.Tenant, c.NewGroup, rows, progress)
		view.group = g.ID
	} else {
		view.Imported, err = o.Contacts().Import(e.Ctx, c.Tenant, c.Group, rows, progress)
	}
	show("", 0, 0)
	entry := audit.Entry{Action: "contacts.import", Tenant: c.Tenant, Subject: view.group}
	if audit := o.Change(e.Ctx, entry, func(*db.Tx) (any, error) {
		return map[string]any{"rows": view.Rows, "added": view.Added, "duplicates": view.Duplicates, "bad": len(view.Bad)}, nil
	}); err == nil {
		err = audit
	}
	if err != nil {
		return err
	}
	columns := importColumns
	if c.Output == "table" {
		columns = columns[:len(columns)-2]
		for _, b := range view.Bad {
			fmt.Fprintf(e.Stderr, "line %d: %s\n", b.Row, frame.Cell(b.Text))
		}
	}
	return frame.PrintOne(e.Stdout, c.Output, columns, view)
}

// openFile opens the file to read.
func (c *contactsImport) openFile() (io.ReadCloser, error) {
	if c.File == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	file, err := os.Open(c.File)
	if err != nil {
		return nil, problem.Wrap(err, problem.Malformed, "no_file", "Cannot open the file: "+err.Error())
	}
	return file, nil
}

func optoutColumns() []frame.Column[contacts.OptOut] {
	return []frame.Column[contacts.OptOut]{
		{Name: "number", Value: func(o contacts.OptOut) any { return string(o.MSISDN) }},
		{Name: "reason", Value: func(o contacts.OptOut) any { return o.Reason }},
		{Name: "created_at", Value: func(o contacts.OptOut) any { return o.CreatedAt }},
	}
}

type contactsOptouts struct {
	frame.Common
	Tenant string      `arg:"" name:"account" help:"Id or unique name of the account."`
	After  string      `name:"after" placeholder:"NUMBER" help:"List numbers after this one."`
	Limit  frame.Count `name:"limit" default:"1000" help:"Maximum number of rows."`
}

// Run lists.
func (c *contactsOptouts) Run(e *frame.Env) error {
	return c.With(e, func(o *frame.Opened) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		list, err := o.Contacts().OptOuts(e.Ctx, c.Tenant, msisdn.MSISDN(c.After), int(c.Limit))
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, optoutColumns(), list)
	})
}

type contactsOptout struct {
	frame.Common
	frame.Writing
	Tenant  string   `arg:"" name:"account" help:"Id or unique name of the account."`
	Numbers []string `arg:"" help:"Mobile numbers."`
	Reason  string   `name:"reason" placeholder:"TEXT" help:"Reason, for the audit log, such as how the person asked for it."`
}

// Run adds numbers to the opt-out list.
func (c *contactsOptout) Run(e *frame.Env) error {
	numbers, err := parseNumbers(c.Numbers...)
	if err != nil {
		return err
	}
	return c.With(e, func(o *frame.Opened) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		entry := audit.Entry{Action: "contacts.optout", Tenant: c.Tenant, Reason: c.Reason}
		err := o.Change(e.Ctx, entry, func(tx *db.Tx) (any, error) {
			o.Contacts().OptOut(tx, c.Tenant, c.Reason, numbers...)
			return map[string]any{"numbers": masked(numbers)}, nil
		})
		if err != nil {
			return err
		}
		return frame.PrintOne(e.Stdout, c.Output, changedColumns("opted_out"), numbers)
	})
}

type contactsOptin struct {
	frame.Common
	frame.Writing
	Tenant string `arg:"" name:"account" help:"Id or unique name of the account."`
	Number string `arg:"" help:"Mobile number."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// Run removes a number from the opt-out list.
func (c *contactsOptin) Run(e *frame.Env) error {
	numbers, err := parseNumbers(c.Number)
	if err != nil {
		return err
	}
	return c.With(e, func(o *frame.Opened) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		entry := audit.Entry{Action: "contacts.optin", Tenant: c.Tenant, Reason: c.Reason}
		err := o.Change(e.Ctx, entry, func(tx *db.Tx) (any, error) {
			was, err := o.Contacts().OptIn(tx, c.Tenant, numbers[0])
			if err == nil && !was {
				err = problem.New(problem.NotFound, "not_opted_out", "The number is not on the opt-out list")
			}
			return map[string]any{"numbers": masked(numbers)}, err
		})
		if err != nil {
			return err
		}
		return frame.PrintOne(e.Stdout, c.Output, changedColumns("opted_in"), numbers)
	})
}

// changedColumns are the columns for the numbers that a command changed.
func changedColumns(name string) []frame.Column[[]msisdn.MSISDN] {
	return []frame.Column[[]msisdn.MSISDN]{{Name: name, Value: func(numbers []msisdn.MSISDN) any {
		texts := make([]string, len(numbers))
		for i, n := range numbers {
			texts[i] = string(n)
		}
		return texts
	}}}
}

func parseNumbers(texts ...string) ([]msisdn.MSISDN, error) {
	numbers := make([]msisdn.MSISDN, len(texts))
	for i, text := range texts {
		var err error
		if numbers[i], err = msisdn.Parse(text); err != nil {
			return nil, problem.Field(text, err.Error())
		}
	}
	return numbers, nil
}

func masked(numbers []msisdn.MSISDN) []string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = n.Masked()
	}
	return texts
}
