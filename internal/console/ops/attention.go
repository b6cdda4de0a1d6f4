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

// stuck lists the payments that need attention, oldest first.
func (ps *Pages) stuck(v *console.Visit) (console.Answer, error) {
	list, err := ps.Payments.Stuck(v.Ctx)
	if err != nil {
		return console.Answer{}, err
	}
	care, err := ps.Payments.CareOfStuck(v.Ctx)
	if err != nil {
		return console.Answer{}, err
	}
	owners := ownerOptions(care, v.Param("owner"))
	list = slices.DeleteFunc(list, func(p book.Payment) bool { return !ownedBy(v, care[p.ID].Owner.Person) })
	names, err := ps.Records.Names(v, list)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Needs attention", Lead: "Open payments with an unknown outcome, oldest first. Their money is on hold; do not pay again.", Count: strconv.Itoa(len(list)),
		Filters: []page.Field{{Name: "owner", Label: "Owner", Options: owners, Value: v.Param("owner")}}, Active: v.Narrowed("owner"), Clear: "/ops/stuck",
		Empty: page.Empty{Title: "Nothing needs attention", Text: "Every payment is settled, or its provider still has time."}}
	l.Grid = console.Grid(stuckColumns(v, names, care), list, func(p book.Payment) string { return "/ops/payments/" + p.ID })
	if l.Active {
		l.Empty = page.Empty{Title: "No results", Text: "No payment of this owner needs attention.", Href: "/ops/stuck", Do: "Clear filters"}
	}
	live, err := v.Part("stuck", 5, page.Listing(l))
	return console.Answer{Title: l.Title, Body: live}, err
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

// ownedBy reports whether the filter of the page includes the payments of an owner.
func ownedBy(v *console.Visit, owner string) bool {
	switch wanted := v.Param("owner"); wanted {
	case "":
		return true
	case ownedByMe:
		return owner == v.Who.Person.ID
	case ownerless:
		return owner == ""
	default:
		return owner == wanted
	}
}

// ownerOptions returns the choices of the filter by owner, with the people who own payments by name. chosen is among them.
func ownerOptions(care map[string]book.Care, chosen string) []page.Option {
	list := []page.Option{{Value: "", Text: "Anybody"}, {Value: ownedByMe, Text: "Me"}, {Value: ownerless, Text: "Nobody"}}
	people := map[string]string{}
	for _, c := range care {
		if c.Owner.Person != "" {
			people[c.Owner.Person] = c.Owner.Name
		}
	}
	if !slices.ContainsFunc(list, func(o page.Option) bool { return o.Value == chosen }) {
		people[chosen] = cmp.Or(people[chosen], "Another person")
	}
	fixed := len(list)
	for id, name := range people {
		list = append(list, page.Option{Value: id, Text: name})
	}
	slices.SortFunc(list[fixed:], func(a, b page.Option) int {
		return cmp.Or(cmp.Compare(a.Text, b.Text), cmp.Compare(a.Value, b.Value))
	})
	return list
}
