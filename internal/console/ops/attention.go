package ops

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/records"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/usertext"
)

// shownNote is the maximum number of characters of a note in a list.
const shownNote = 120

// The values of the filter by owner that are not the id of a person.
const (
	ownedByMe = "me"
	ownerless = "none"
)

// age returns how long something has been open.
func age(since, now time.Time) string {
	switch open := now.Sub(since); {
	case open < time.Minute:
		return "under a minute"
	case open < 2*time.Hour:
		return strconv.Itoa(int(open.Minutes())) + " min"
	case open < 48*time.Hour:
		return strconv.Itoa(int(open.Hours())) + " h"
	default:
		return strconv.Itoa(int(open.Hours()/24)) + " days"
	}
}

// mostOwners is the maximum number of people in the filter by owner.
const mostOwners = 200

// stuckFilter reads the filter of the page.
func stuckFilter(v *console.Visit) book.StuckFilter {
	f := book.StuckFilter{After: v.Param("after"), Limit: console.PageRows + 1}
	switch owner := v.Param("owner"); owner {
	case ownedByMe:
		f.Owner = v.Who.Person.ID
	case ownerless:
		f.Ownerless = true
	default:
		f.Owner = owner
	}
	return f
}

// stuck lists the payments that need attention, oldest first.
func (ps *Pages) stuck(v *console.Visit) (console.Answer, error) {
	f := stuckFilter(v)
	list, err := ps.Payments.StuckPage(v.Ctx, f)
	if err != nil {
		return console.Answer{}, err
	}
	n, _, err := ps.Payments.CountStuck(v.Ctx, f, mostSummed)
	if err != nil {
		return console.Answer{}, err
	}
	owners, err := ps.Payments.OwnersOfStuck(v.Ctx, mostOwners)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Needs attention", Lead: "Open payments with an unknown outcome, oldest first. Their money is on hold; do not pay again.", Count: upTo(n, mostSummed),
		Filters: []page.Field{{Name: "owner", Label: "Owner", Options: ownerOptions(owners, v.Param("owner")), Value: v.Param("owner")}}, Active: v.Narrowed("owner"), Clear: "/ops/stuck",
		Empty: page.Empty{Title: "Nothing needs attention", Text: "Every payment is settled or still within its usual time."}}
	list = console.Keyed(v, &l, "after", list, book.StuckCursor)
	if l.Grid, err = ps.stuckGrid(v, list); err != nil {
		return console.Answer{}, err
	}
	if l.Active > 0 {
		l.Empty = page.Empty{Title: "No results", Text: "No payment of this owner needs attention.", Href: "/ops/stuck", Do: "Clear filters"}
	}
	live, err := v.Part("stuck", 5, page.Listing(l))
	return console.Answer{Title: l.Title, Body: live}, err
}

// stuckGrid returns payments with their accounts, ages, owners and newest notes.
func (ps *Pages) stuckGrid(v *console.Visit, list []book.Payment) (page.Grid, error) {
	ids := make([]string, len(list))
	for i, p := range list {
		ids[i] = p.ID
	}
	care, err := ps.Payments.Cares(v.Ctx, ids)
	if err != nil {
		return page.Grid{}, err
	}
	names, err := ps.Records.Names(v, list)
	return console.Grid(stuckColumns(v, names, care), list, func(p book.Payment) string { return "/ops/payments/" + p.ID }), err
}

// stuckColumns returns the columns of payments, with their age, owner and newest note.
func stuckColumns(v *console.Visit, names map[string]string, care map[string]book.Care) []console.Column[book.Payment] {
	now := v.Now()
	return append(records.Columns(v, false, names),
		console.Text("Age", "", func(p book.Payment) string { return age(p.CreatedAt, now) }).Laid(console.Under),
		console.Shown("Owner", func(p book.Payment) templ.Component {
			o := care[p.ID].Owner
			return page.Join(page.Text(o.Name), records.Assignment(v, p, o, true))
		}),
		console.Text("Newest note", "", func(p book.Payment) string {
			return usertext.Cut(records.NoteText(v, p, care[p.ID].Note), shownNote)
		}).Laid(console.Minor))
}

// ownerOptions returns the choices of the filter by owner. chosen is among them.
func ownerOptions(owners []book.Owner, chosen string) []page.Option {
	list := []page.Option{{Text: "Anybody"}, {Value: ownedByMe, Text: "Me"}, {Value: ownerless, Text: "Nobody"}}
	for _, o := range owners {
		list = append(list, page.Option{Value: o.Person, Text: cmp.Or(o.Name, o.Person)})
	}
	if !slices.ContainsFunc(list, func(o page.Option) bool { return o.Value == chosen }) { // a person who no longer has a payment
		list = append(list, page.Option{Value: chosen, Text: "Another person"})
	}
	return list
}
