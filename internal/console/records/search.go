package records

import (
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/roles"
)

// Search finds payments as `makola payouts find` does: of all accounts, or of one.
func (ps *Pages) Search(v *console.Visit) (console.Answer, error) {
	text, base := v.Param("q"), v.Base()
	l := page.List{Title: "Search"}
	if text == "" {
		l.Empty = page.Empty{Title: "Search payments", Text: "Enter a reference (whole, or at least its first six characters), an amount, a campaign ID or the ID of a failed request." + ps.alsoPeople(v)}
		return console.Answer{Title: "Search", Body: page.Listing(l)}, nil
	}
	for _, called := range []func(v *console.Visit, base, text string) (string, error){ps.requestCalled, ps.campaignCalled} {
		if to, err := called(v, base, text); to != "" || err != nil {
			return console.Answer{To: to}, err
		}
	}
	found, err := ps.payments(v, book.Search{Text: text, Tenant: v.Tenant.ID, Before: v.Param("before"), Limit: console.PageRows})
	if err != nil {
		return console.Answer{}, err
	}
	if len(found.Payments) == 1 && found.More == "" && v.Param("before") == "" {
		return console.Answer{To: base + "/payments/" + found.Payments[0].ID}, nil
	}
	var names map[string]string
	if v.Route.Site == console.Operators {
		if names, err = ps.Names(v, found.Payments); err != nil {
			return console.Answer{}, err
		}
	}
	l.Title = "Search: " + page.Visible(text)
	l.Grid = Grid(v, found.Payments, false, names)
	PageByKey(v, &l, found)
	l.Empty = page.Empty{Title: "No results", Text: "No payment matches." + ps.alsoPeople(v)}
	return console.Answer{Title: "Search", Body: page.Listing(l)}, nil
}

// alsoPeople returns the sentence about searches for people, which need a permission.
func (ps *Pages) alsoPeople(v *console.Visit) string {
	if v.Can(roles.SearchNumbers) {
		return " You can also search by phone number, bank account or part of a name. Each such search is recorded in the audit log."
	}
	return " Your role cannot search by phone number, bank account or name."
}

// payments searches by references and amounts first. A search by number or name needs a permission and is limited for each visitor.
// The audit log keeps a keyed hash of it.
func (ps *Pages) payments(v *console.Visit, s book.Search) (book.Found, error) {
	s.Anonymous = true
	person := s.Person() || s.Number()
	if !person || !v.Can(roles.SearchNumbers) {
		return ps.Payments.Search(v.Ctx, s)
	}
	if !s.Number() {
		if found, err := ps.Payments.Search(v.Ctx, s); err != nil || len(found.Payments) > 0 {
			return found, err
		}
	}
	hash := identity.NumberHash(ps.NumberKey, s.Text)
	if err := v.Use(identity.SearchesOfNumbers, hash, v.Entry("numbers.search", v.Tenant.ID, hash)); err != nil {
		return book.Found{}, err
	}
	s.Anonymous = false
	return ps.Payments.Search(v.Ctx, s)
}
