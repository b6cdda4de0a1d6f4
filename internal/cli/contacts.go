package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
)

type contactsCommands struct {
	Groups   contactsGroups   `cmd:"" help:"List a customer's contact groups."`
	AddGroup contactsAddGroup `cmd:"" help:"Make an empty group, such as one that a customer brings with its id."`
	Import   contactsImport   `cmd:"" help:"Read contacts from a CSV or XLSX file into a group; every bad row is reported."`
	Optouts  contactsOptouts  `cmd:"" help:"List the numbers that a customer may not send campaigns to."`
	Optout   contactsOptout   `cmd:"" help:"Put numbers on that list."`
	Optin    contactsOptin    `cmd:"" help:"Take a number off that list."`
}

// contacts are the contacts as an operator keeps them: the customer's own quotas hold, the servers' do not.
func (o *opened) contacts() *contacts.Store {
	return contacts.New(o.db, o.tenants, o.answers, o.clock, config.Quotas{})
}

func groupColumns() []column[contacts.Group] {
	return []column[contacts.Group]{
		{"id", func(g contacts.Group) any { return g.ID }},
		{"name", func(g contacts.Group) any { return g.Name }},
		{"contacts", func(g contacts.Group) any { return g.Contacts }},
		{"created_at", func(g contacts.Group) any { return g.CreatedAt }},
	}
}

type contactsGroups struct {
	common
	Tenant string `arg:"" help:"Id or unique name of the customer."`
}

// Run lists groups.
func (c *contactsGroups) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		groups, err := o.contacts().Groups(e.ctx, c.Tenant)
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, groupColumns(), groups)
	})
}

type contactsAddGroup struct {
	common
	reasoned
	Tenant string `arg:"" help:"Id or unique name of the customer."`
	Name   string `arg:"" help:"Name of the group."`
	ID     string `name:"id" placeholder:"UUID" help:"The id that the customer's programs send; made when absent."`
}

// Run makes the group.
func (c *contactsAddGroup) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		id := cmp.Or(c.ID, newID())
		var g contacts.Group
		err := o.act(e.ctx, audit.Entry{Action: "contacts.add_group", Tenant: c.Tenant, Subject: id}, func(tx *db.Tx) (any, error) {
			var err error
			g, err = o.contacts().CreateGroup(tx, c.Tenant, id, c.Name)
			return withChanges([]change{{"group", "", g.Name}}), err
		})
		if err != nil {
			return err
		}
		return printOne(e.stdout, c.Output, groupColumns(), g)
	})
}

type contactsImport struct {
	common
	reasoned
	Tenant   string `arg:"" help:"Id or unique name of the customer."`
	File     string `arg:"" help:"CSV or XLSX; - reads from the standard input. Columns phone_number, first_name, last_name, email, by a heading or in this order."`
	Group    string `name:"group" xor:"group" placeholder:"ID" help:"Group that the contacts go to."`
	NewGroup string `name:"new-group" xor:"group" placeholder:"NAME" help:"Make a group for them. It is deleted if the import fails."`
	tableFlags
}

// tableFlags are a person's choices about a file with a table.
type tableFlags struct {
	Column map[string]string `name:"column" mapsep:"none" placeholder:"FIELD=HEADING" help:"Read a field from the column with this heading, such as phone_number=Cell."`
	Sheet  string            `name:"sheet" placeholder:"NAME" help:"Sheet of a workbook; the first one that has rows when absent."`
}

func (f tableFlags) options() sheet.Options { return sheet.Options{Columns: f.Column, Sheet: f.Sheet} }

// note prints what is unusual about a file.
func note(to io.Writer, report sheet.Report) {
	for _, text := range report.Notes() {
		fmt.Fprintln(to, cell(text))
	}
}

// importView is what an import came to.
type importView struct {
	group string
	notes []string
	contacts.Imported
}

var importColumns = []column[importView]{
	{"group", func(v importView) any { return v.group }},
	{"rows", func(v importView) any { return int64(v.Rows) }},
	{"added", func(v importView) any { return int64(v.Added) }},
	{"duplicates", func(v importView) any { return int64(v.Duplicates) }},
	{"bad", func(v importView) any { return int64(len(v.Bad)) }},
	{"bad_rows", func(v importView) any {
		texts := make([]string, len(v.Bad))
		for i, b := range v.Bad {
			texts[i] = fmt.Sprintf("line %d: %s", b.Row, b.Text)
		}
		return texts
	}},
	{"notes", func(v importView) any { return v.notes }},
}

// Run imports. The table goes to stdout, bad rows to stderr line by line; JSON and CSV hold both.
func (c *contactsImport) Run(e *env) error {
	if c.Group == "" && c.NewGroup == "" {
		return usage("Say which group: --group ID or --new-group NAME")
	}
	from, err := c.openFile()
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was only read
	file, err := sheet.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // a copy that stays is the system's to remove
	rows, err := file.Table(contacts.ImportForm(), c.options())
	if err != nil {
		return err
	}
	note(e.stderr, rows.Report)
	return c.with(e, func(o *opened) error { return c.add(e, o, rows) })
}

// add adds the rows of a file that can be used.
func (c *contactsImport) add(e *env, o *opened, rows *sheet.Table) error {
	if err := o.known(e.ctx, &c.Tenant); err != nil {
		return err
	}
	var err error
	view := importView{group: c.Group, notes: rows.Notes()}
	show := progressOn(e.stderr, func(n int64) string { return fmt.Sprintf("%d rows", n) })
	progress := func(i contacts.Imported) { show("contacts", int64(i.Rows), int64(rows.Rows)) }
	if c.NewGroup != "" {
		var g contacts.Group
		g, view.Imported, err = o.contacts().ImportNew(e.ctx, c.Tenant, c.NewGroup, rows, progress)
		view.group = g.ID
	} else {
		view.Imported, err = o.contacts().Import(e.ctx, c.Tenant, c.Group, rows, progress)
	}
	show("", 0, 0)
	entry := audit.Entry{Action: "contacts.import", Tenant: c.Tenant, Subject: view.group}
	if audit := o.act(e.ctx, entry, func(*db.Tx) (any, error) {
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
			fmt.Fprintf(e.stderr, "line %d: %s\n", b.Row, cell(b.Text))
		}
	}
	return printOne(e.stdout, c.Output, columns, view)
}

// openFile opens what to read.
func (c *contactsImport) openFile() (io.ReadCloser, error) {
	if c.File == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	file, err := os.Open(c.File)
	if err != nil {
		return nil, problem.Wrap(err, problem.Malformed, "no_file", "The file cannot be opened: "+err.Error())
	}
	return file, nil
}

func optoutColumns() []column[contacts.OptOut] {
	return []column[contacts.OptOut]{
		{"number", func(o contacts.OptOut) any { return string(o.MSISDN) }},
		{"reason", func(o contacts.OptOut) any { return o.Reason }},
		{"created_at", func(o contacts.OptOut) any { return o.CreatedAt }},
	}
}

type contactsOptouts struct {
	common
	Tenant string `arg:"" help:"Id or unique name of the customer."`
	After  string `name:"after" placeholder:"NUMBER" help:"Only those that follow this number."`
	Limit  count  `name:"limit" default:"1000" help:"Most that are listed."`
}

// Run lists.
func (c *contactsOptouts) Run(e *env) error {
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		list, err := o.contacts().OptOuts(e.ctx, c.Tenant, msisdn.MSISDN(c.After), int(c.Limit))
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, optoutColumns(), list)
	})
}

type contactsOptout struct {
	common
	writing
	Tenant  string   `arg:"" help:"Id or unique name of the customer."`
	Numbers []string `arg:"" help:"Mobile numbers."`
	Reason  string   `name:"reason" placeholder:"TEXT" help:"Why, such as how the number asked for it."`
}

// Run puts numbers on the list.
func (c *contactsOptout) Run(e *env) error {
	numbers, err := parseNumbers(c.Numbers...)
	if err != nil {
		return err
	}
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		entry := audit.Entry{Action: "contacts.optout", Tenant: c.Tenant, Reason: c.Reason}
		err := o.act(e.ctx, entry, func(tx *db.Tx) (any, error) {
			o.contacts().OptOut(tx, c.Tenant, c.Reason, numbers...)
			return map[string]any{"numbers": masked(numbers)}, nil
		})
		if err != nil {
			return err
		}
		return printOne(e.stdout, c.Output, changedColumns("opted_out"), numbers)
	})
}

type contactsOptin struct {
	common
	writing
	Tenant string `arg:"" help:"Id or unique name of the customer."`
	Number string `arg:"" help:"Mobile number."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Why, for the audit log."`
}

// Run takes a number off the list.
func (c *contactsOptin) Run(e *env) error {
	numbers, err := parseNumbers(c.Number)
	if err != nil {
		return err
	}
	return c.with(e, func(o *opened) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		entry := audit.Entry{Action: "contacts.optin", Tenant: c.Tenant, Reason: c.Reason}
		err := o.act(e.ctx, entry, func(tx *db.Tx) (any, error) {
			was, err := o.contacts().OptIn(tx, c.Tenant, numbers[0])
			if err == nil && !was {
				err = problem.New(problem.NotFound, "not_opted_out", "The number is not on the list")
			}
			return map[string]any{"numbers": masked(numbers)}, err
		})
		if err != nil {
			return err
		}
		return printOne(e.stdout, c.Output, changedColumns("opted_in"), numbers)
	})
}

// changedColumns are the numbers that a command was about.
func changedColumns(name string) []column[[]msisdn.MSISDN] {
	return []column[[]msisdn.MSISDN]{{name, func(numbers []msisdn.MSISDN) any {
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
