package console

import (
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
)

// search finds payments as `makola payouts find` does, of one tenant where the path names one.
func search(v *visit) (answer, error) {
	text, base := v.param("q"), v.base()
	of := ofOneAccount
	if v.route.Site == operators {
		of = ofAll
	}
	l := page.List{Title: "Search", Columns: columnsOf(of)}
	if text == "" {
		l.Empty = page.Empty{Title: "What are you looking for?", Text: "A reference of yours, ours or the provider's, or its first six characters or more, an amount, the id of a campaign, or that of a request that was refused." + v.alsoPeople()}
		return answer{title: "Search", body: page.Listing(l)}, nil
	}
	for _, called := range []func(base, text string) (string, error){v.requestCalled, v.campaignCalled} {
		if to, err := called(base, text); to != "" || err != nil {
			return answer{to: to}, err
		}
	}
	found, err := v.payments(book.Search{Text: text, Tenant: v.tenant.ID, Before: v.param("before"), Limit: pageRows})
	if err != nil {
		return answer{}, err
	}
	if len(found.Payments) == 1 && found.More == "" && v.param("before") == "" {
		return answer{to: base + "/payments/" + found.Payments[0].ID}, nil
	}
	var names map[string]string
	if v.route.Site == operators {
		if names, err = v.names(found.Payments); err != nil {
			return answer{}, err
		}
	}
	l.Title = "Search: " + page.Visible(text)
	l.Rows = v.rowsOf(found.Payments, base+"/payments/", of, names)
	v.pageByKey(&l, found)
	l.Empty = page.Empty{Title: "Nothing found", Text: "No payment that was looked at matches." + v.alsoPeople()}
	return answer{title: "Search", body: page.Listing(l)}, nil
}

// alsoPeople tells the visitor whether a search finds people.
func (v *visit) alsoPeople() string {
	if v.can(identity.SearchNumbers) {
		return " A phone number, an account or a part of a name finds payments, too: each search for one is in the audit log."
	}
	return " Your role does not search by phone number, account or name."
}

// payments searches first for what finds no person. A search for a person needs the permission, is limited for each person, and
// is in the audit log with a keyed hash.
func (v *visit) payments(s book.Search) (book.Found, error) {
	s.Anonymous = true
	person := s.Person() || s.Number()
	if !person || !v.can(identity.SearchNumbers) {
		return v.console.Payments.Search(v.ctx, s)
	}
	if !s.Number() {
		if found, err := v.console.Payments.Search(v.ctx, s); err != nil || len(found.Payments) > 0 {
			return found, err
		}
	}
	hash := identity.NumberHash(v.console.NumberKey, s.Text)
	if err := v.console.Identity.Use(v.ctx, identity.SearchesOfNumbers, v.who.Person.ID, hash, v.entry("numbers.search", v.tenant.ID, hash)); err != nil {
		return book.Found{}, err
	}
	s.Anonymous = false
	return v.console.Payments.Search(v.ctx, s)
}
