package records

import (
	"cmp"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// addNote returns the form for a note. It is empty for visitors who may not write one.
func (ps *Pages) addNote(v *console.Visit, p book.Payment) templ.Component {
	if v.Route.Site != console.Operators || !v.Can(roles.NotePayments) || p.Account == book.Erased {
		return templ.NopComponent
	}
	return page.Panel("New note", page.Asking(noteForm(v, p)))
}

func noteForm(v *console.Visit, p book.Payment) page.Form {
	return page.Form{ID: "note", Action: "/ops/payments/" + p.ID + "/notes", Submit: "Add note", Fields: []page.Field{
		{Name: "id", Type: "hidden", Value: cmp.Or(v.R.PostFormValue("id"), uuid.Must(uuid.NewV7()).String())},
		{Name: "note", Label: "Note", Value: v.R.PostFormValue("note"), Max: book.MaxNote, Required: true, Hint: "Operators see it, the account does not. It cannot be changed."}}}
}

// AddNote stores a note about a payment, with an entry in the audit log. The entry lacks the text, which can be erased. It
// belongs to the installation, so that the account does not see it.
func (ps *Pages) AddNote(v *console.Visit) (console.Answer, error) {
	p, err := ps.Find(v)
	if err != nil {
		return console.Answer{}, err
	}
	here := "/ops/payments/" + p.ID
	n := book.Note{Payment: p.ID, ID: v.R.PostFormValue("id"), Author: v.Who.Person.ID, AuthorName: v.Who.Person.Name, Text: v.R.PostFormValue("note")}
	err = ps.Payments.AddNote(v.Ctx, n, ps.Audit.Writing(v.Entry("payment.note", roles.Installation, p.ID)))
	if problem.Is(err, problem.Invalid) {
		const title = "New note"
		body := page.Join(page.Head(title, "About "+ReferenceOf(v, p)), page.Asking(console.Faulty(noteForm(v, p), err)), page.Anchor(here, "Back"))
		return console.Answer{Title: title, Body: body, Wrong: true}, nil
	}
	return console.Answer{To: here + "#notes"}, err
}

// Take assigns a payment that needs attention to the visitor.
func (ps *Pages) Take(v *console.Visit) (console.Answer, error) {
	return ps.assign(v, func(p book.Payment) error {
		owner := book.Owner{Person: v.Who.Person.ID, Name: v.Who.Person.Name}
		return ps.Payments.Take(v.Ctx, p.ID, owner, ps.Audit.Writing(v.Entry("payment.take", roles.Installation, p.ID)))
	})
}

// Release removes a payment's owner. It refuses if the owner is not the person that the page showed.
func (ps *Pages) Release(v *console.Visit) (console.Answer, error) {
	return ps.assign(v, func(p book.Payment) error {
		owner := v.R.PostFormValue("owner")
		entry := v.Entry("payment.release", roles.Installation, p.ID)
		entry.Details = map[string]any{"owner": owner}
		return ps.Payments.Release(v.Ctx, p.ID, owner, ps.Audit.Writing(entry))
	})
}

// assign changes the owner of the payment of the path, and shows the page or the list that has the button.
func (ps *Pages) assign(v *console.Visit, change func(book.Payment) error) (console.Answer, error) {
	p, err := ps.Find(v)
	if err != nil {
		return console.Answer{}, err
	}
	to := "/ops/payments/" + p.ID
	if v.R.PostFormValue("list") != "" {
		to = "/ops/stuck"
	}
	v.FormPage = to
	return console.Answer{To: to}, change(p)
}

// Assignment returns the button that assigns a payment to the visitor, or that releases it. list leads back to the list of
// payments that need attention.
func Assignment(v *console.Visit, p book.Payment, o book.Owner, list bool) templ.Component {
	var fields []page.Field
	if list {
		fields = append(fields, page.Field{Name: "list", Value: "y"})
	}
	here := "/ops/payments/" + p.ID
	switch {
	case !v.Can(roles.NotePayments):
		return templ.NopComponent
	case o.Person != "":
		return page.ActionButton(here+"/release", "Release", "", append(fields, page.Field{Name: "owner", Value: o.Person})...)
	case !p.EscalatedAt.IsZero():
		return page.ActionButton(here+"/take", "Assign to me", "", fields...)
	}
	return templ.NopComponent
}

// NoteText returns the text of a note as the visitor may see it.
func NoteText(v *console.Visit, p book.Payment, n book.Note) string {
	return masks(v, p.Account).Replace(n.Text)
}
