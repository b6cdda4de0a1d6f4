package batches

import (
	"context"
	"fmt"
	"strconv"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/roles"
)

// nameBadges are the results of comparing a registered name with the name in the file.
var nameBadges = map[batch.NameState]page.Badge{
	batch.NameSame:      {Tone: page.Good, Word: "Same"},
	batch.NameNear:      {Tone: page.Open, Word: "Similar"},
	batch.NameDifferent: {Tone: page.Bad, Word: "Different"},
	batch.NameFound:     {Tone: page.Plain, Word: "No name in the file"},
	batch.NameUnknown:   {Tone: page.Unknown, Word: "Unknown"},
	batch.NameChanged:   {Tone: page.Bad, Word: "Changed since the request"},
	batch.NameUnasked:   {Tone: page.Plain, Word: "Not looked up"},
}

// nameOrder is the order of the results on pages: differences first.
var nameOrder = []batch.NameState{batch.NameChanged, batch.NameDifferent, batch.NameUnknown, batch.NameNear, batch.NameFound, batch.NameSame, batch.NameUnasked}

// shownNames is the maximum number of rows with another registered name on a page.
const shownNames = 100

// names compares the registered names with the names in the file, and shows a running lookup and the differing rows.
func (ps *Pages) names(v *console.Visit, b batch.Batch, n batch.Counts) (templ.Component, error) {
	if n.Rows[batch.RowReady] == 0 {
		return nil, nil
	}
	asked := n.Rows[batch.RowReady] - n.Names[batch.NameUnasked]
	var parts []templ.Component
	if b.LooksUp() {
		live, err := v.Part("names", 3, progress(asked, n.Rows[batch.RowReady],
			fmt.Sprintf("%s of %s names looked up. An account may look up %s names a day; the rest follows the next day.", page.Count(int64(asked)), page.Count(int64(n.Rows[batch.RowReady])), page.Count(batch.MaxLookups))))
		if err != nil {
			return nil, err
		}
		parts = append(parts, live)
	}
	if asked > 0 {
		var list []page.Fact
		for _, state := range nameOrder {
			if count := n.Names[state]; count > 0 {
				list = append(list, page.Fact{Name: nameBadges[state].Word, Value: page.Text(rowsText(count))})
			}
		}
		parts = append(parts, page.Facts(list))
		table, err := ps.differing(v, b)
		if err != nil {
			return nil, err
		}
		parts = append(parts, table)
	}
	if b.Status == batch.Draft && !b.LooksUp() && n.Names[batch.NameUnasked] > 0 && v.Can(roles.RequestPayouts) && !v.Viewing {
		parts = append(parts, page.ActionButton(here(v, b)+"/names", "Look up registered names", ""))
	}
	if len(parts) == 0 {
		return nil, nil
	}
	return page.Panel("Registered names", stack(parts...)), nil
}

func rowsText(n int) string {
	if n == 1 {
		return "1 row"
	}
	return page.Count(int64(n)) + " rows"
}

// differing shows the rows whose registered name is not that in the file.
func (ps *Pages) differing(v *console.Visit, b batch.Batch) (templ.Component, error) {
	rows, err := ps.Batches.Differing(v.Ctx, b, shownNames)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	if err := ps.viewed(v, b); err != nil {
		return nil, err
	}
	columns := []console.Column[batch.Row]{
		console.Text("Row", "", func(r batch.Row) string { return strconv.Itoa(r.Line) }),
		console.Text("Name in the file", "", func(r batch.Row) string { return name(v, b, r) }),
		console.Text("Registered name", "", func(r batch.Row) string { return registered(v, b, r) }),
		console.Shown("Result", func(r batch.Row) templ.Component { return page.Mark(nameBadges[r.Named]) }),
		console.Text("Number", "", func(r batch.Row) string { return number(v, b, r) }).Laid(console.Minor),
		console.Shown("Amount", func(r batch.Row) templ.Component { return page.Money(r.Amount) }).Laid(page.Display{Right: true}),
	}
	title := "Names that differ"
	if len(rows) == shownNames {
		title += fmt.Sprintf(": first %d", shownNames)
	}
	return page.Table(title, console.Grid(columns, rows, mendsAt(v, b, func(r batch.Row) int { return r.Line }))), nil
}

func registered(v *console.Visit, b batch.Batch, r batch.Row) string {
	if !whole(v, b) {
		return ""
	}
	return r.Registered
}

// lookUp starts the lookup of the registered names.
func (ps *Pages) lookUp(v *console.Visit) (console.Answer, error) {
	return ps.to(v, func(ctx context.Context, b batch.Batch) error {
		return ps.Batches.AskNames(ctx, b.Tenant, b.ID, ps.Audit.Writing(v.Entry("batch.names", b.Tenant, b.ID)))
	})
}
