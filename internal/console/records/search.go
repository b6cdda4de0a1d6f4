package records

import (
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/roles"
)

// Search finds payments as `makola payouts find` does, of one tenant where the path names one.
func (ps *Pages) Search(v *console.Visit) (console.Answer, error) {
	text, base := v.Param("q"), v.Base()
	of := OfOneAccount
	if v.Route.Site == console.Operators {
		of = OfAll
	}
	l := page.List{Title: "Search", Columns: Columns(of)}
	if text == "" {
		l.Empty = page.Empty{Title: "What are you looking for?", Text: "A reference of yours, ours or the provider's, or its first six characters or more, an amount, the id of a campaign, or that of a request that was refused." + ps.alsoPeople(v)}
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
	l.Rows = Rows(v, found.Payments, base+"/payments/", of, names)
	PageByKey(v, &l, found)
	l.Empty = page.Empty{Title: "Nothing found", Text: "No payment that was looked at matches." + ps.alsoPeople(v)}
	return console.Answer{Title: "Search", Body: page.Listing(l)}, nil
}

// alsoPeople tells the visitor whether a search finds people.
func (ps *Pages) alsoPeople(v *console.Visit) string {
	if v.Can(roles.SearchNumbers) {
		return " A phone number, an account or a part of a name finds payments, too: each search for one is in the audit log."
	}
	return " Your role does not search by phone number, account or name."
}

// payments searches first for what finds no person. A search for a person needs the permission, is limited for each person, and
// is in the audit log with a keyed hash.
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
