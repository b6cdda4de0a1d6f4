package statements

import (
	"cmp"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/sheet"
)

// maxText is the most bytes of a text of the form.
const maxText = 200

// bankOf is the option "Another bank account". Another field then names the bank.
const bankOf = "bank"

// uploaded is the form of an upload without the file.
type uploaded struct{ source, bank, mode string }

// name returns the name of the source.
func (u uploaded) name() string {
	if u.source == bankOf {
		return reconcile.BankSource(u.mode, u.bank)
	}
	return u.source
}

// ask asks for a file. The second factor is required before a person chooses a file, because a chosen file is lost on
// another page.
func (ps *Pages) ask(v *console.Visit) (console.Answer, error) {
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	return ps.asking(v, uploaded{}, nil)
}

func (ps *Pages) asking(v *console.Visit, u uploaded, wrong error) (console.Answer, error) {
	options, err := ps.sourceOptions(v)
	if err != nil {
		return console.Answer{}, err
	}
	f := page.Form{ID: "statement", Action: base + "/new", Submit: "Read the file", Fields: []page.Field{
		{Name: "source", Label: "Account of the statement", Options: options, Value: u.source},
		{Name: "bank", Label: "New bank account", Value: u.bank, Max: 31, Hint: "For a bank account without a statement so far, enter a short name such as gcb or ecobank-2."},
		{Name: "mode", Label: "Mode of a new bank account", Options: []page.Option{{Value: "live", Text: "Live"}, {Value: "test", Text: "Test"}}, Value: cmp.Or(u.mode, "live")},
		{Name: "file", Label: "File (CSV or XLSX)", Type: "file", Required: true, Hint: "Upload the file as it was downloaded. At most 20 MB and 100,000 rows."}}}
	if wrong != nil {
		f = console.Faulty(f, wrong)
	}
	body := page.Join(page.Head("Import a statement", "A file moves no money. Its lines are compared with our payments."), page.Asking(f))
	return console.Answer{Title: "Import a statement", Wrong: wrong != nil, Body: body}, nil
}

// sourceOptions returns the accounts at providers, and the bank accounts that have statements.
func (ps *Pages) sourceOptions(v *console.Visit) (options []page.Option, err error) {
	for _, mode := range []string{"live", "test"} {
		for _, p := range reconcile.Profiles() {
			for _, account := range provider.AccountNames() {
				if p.Provider == "" {
					continue
				}
				s, err := reconcile.ParseSource(mode + "/" + p.Name + "/" + account)
				if err != nil {
					return nil, err
				}
				options = append(options, page.Option{Value: s.ID, Text: s.Title()})
			}
		}
	}
	known, err := ps.Reconcile.Sources(v.Ctx)
	for _, s := range known {
		if s.Bank() {
			options = append(options, page.Option{Value: s.ID, Text: s.Title()})
		}
	}
	return append(options, page.Option{Value: bankOf, Text: "Another bank account"}), err
}

// upload reads the file as it arrives.
func (ps *Pages) upload(v *console.Visit) (console.Answer, error) {
	v.FormPage = base + "/new"
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	var u uploaded
	part, err := v.Upload(maxText, func(field, text string) {
		switch field {
		case "source":
			u.source = text
		case "bank":
			u.bank = text
		case "mode":
			u.mode = text
		}
	})
	switch {
	case err != nil:
		return console.Answer{}, err
	case part == nil:
		return ps.asking(v, u, problem.Field("file", "is required"))
	}
	file, err := sheet.Open(part)
	if err == nil {
		defer func() { _ = file.Close() }() // if it fails, the system removes the copy later
		var to string
		if to, err = ps.take(v, u, part.FileName(), file); err == nil {
			return console.Answer{To: to}, nil
		}
	}
	if problem.Is(err, problem.Invalid) || problem.Is(err, problem.InProgress) {
		return ps.asking(v, u, err)
	}
	return console.Answer{}, console.BrokenUpload(err)
}

// take imports a file of a known source, or stores the first file of a new source for confirmation. It returns the
// next page.
func (ps *Pages) take(v *console.Visit, u uploaded, name string, file *sheet.File) (to string, err error) {
	upload := ps.by(v, u.name(), name)
	done, err := ps.Reconcile.Import(v.Ctx, upload, file)
	switch {
	case err != nil:
		return "", err
	case done.Reading == nil:
		return ps.imported(v, done)
	}
	d, err := ps.Reconcile.Keep(v.Ctx, upload, file)
	return base + "/drafts/" + d.ID, err
}

func (ps *Pages) by(v *console.Visit, source, name string) reconcile.Upload {
	return reconcile.Upload{Source: source, FileName: name, By: v.Who.Person.ID, ByName: v.Who.Person.Name}
}

// imported records an import in the audit log and returns the page of the statement.
func (ps *Pages) imported(v *console.Visit, done reconcile.Imported) (to string, err error) {
	s := done.Statement
	if !done.Repeated {
		e := v.Entry("statements.import", "", s.ID)
		e.Details = map[string]any{"source": s.Source, "file": s.FileName, "digest": s.Digest, "lines": s.Lines, "added": s.Added, "changed": s.Changed}
		err = ps.Audit.Record(v.Ctx, e)
	}
	return base + "/" + s.ID, err
}
