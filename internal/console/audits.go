package console

import (
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
)

// auditList lists what people did, the latest first.
func auditList(v *visit) (answer, error) {
	f := v.auditFilter()
	list, err := v.console.Audit.List(v.ctx, f)
	if err != nil {
		return answer{}, err
	}
	l := page.List{Title: "Audit log", Lead: "What people did, on pages and by commands. Each entry is linked into a chain that shows what was changed.",
		Columns: []page.Column{{Name: "When"}, {Name: "Who"}, {Name: "From", Wide: true}, {Name: "What"}, {Name: "Account", Minor: true}, {Name: "Changes", Minor: true}, {Name: "Reason", Minor: true}, {Name: "Link", Right: true, Wide: true}},
		Active:  f.Actor != "" || f.Action != "" || f.Tenant != "", Clear: "/ops/audit",
		Filters: []page.Field{{Name: "actor", Label: "Who", Value: f.Actor, Max: 254}, {Name: "action", Label: "What", Value: f.Action, Max: 60}, {Name: "tenant", Label: "Account's id", Value: f.Tenant, Max: 36}},
		Empty:   page.Empty{Title: "No entries", Text: "What somebody changes, takes away or looks at as another appears here."}}
	if len(list) > pageRows {
		list = list[:pageRows]
		l.Next = v.query("before", list[pageRows-1].ID)
	}
	if f.Before != "" {
		l.Prev = v.query("before", "")
	}
	if v.can(identity.ExportPayments) {
		l.Files = exportLinks("/ops/audit", v.filterQuery("actor", "action", "tenant"))
	}
	names := map[string]string{}
	for _, e := range list {
		name, known := names[e.Tenant]
		if !known && e.Tenant != "" {
			name = e.Tenant
			if t, err := v.console.Tenants.Get(v.ctx, e.Tenant); err == nil { // a name that cannot be read now is left out
				name = t.Name
			}
			names[e.Tenant] = name
		}
		link := "not yet"
		if e.Link > 0 {
			link = strconv.FormatInt(e.Link, 10)
		}
		l.Rows = append(l.Rows, page.Row{Cells: []templ.Component{page.Time(e.At), actorOf(e), page.Text(e.Origin), page.Text(e.Action), page.Text(name), page.Text(changeTexts(e)), page.Text(e.Reason), page.Text(link)}})
	}
	return answer{title: l.Title, body: page.Listing(l)}, nil
}

// auditFilter reads the filters of the audit log.
func (v *visit) auditFilter() audit.Filter {
	return audit.Filter{Actor: v.param("actor"), Action: v.param("action"), Tenant: v.param("tenant"), Before: v.param("before"), Limit: pageRows + 1}
}

// actorOf is who did it. A command in production that no person stands for is red.
func actorOf(e audit.Entry) templ.Component {
	if e.BrokeGlass() {
		return page.Mark(page.Badge{Tone: page.Bad, Word: e.Actor})
	}
	return page.Text(e.Actor)
}

// changeTexts are the changes of an entry in one text.
func changeTexts(e audit.Entry) string {
	var texts []string
	for _, c := range e.Changes() {
		before, after := c.Before, c.After
		if before == "" {
			before = "none"
		}
		if after == "" {
			after = "none"
		}
		texts = append(texts, c.What+": "+before+" → "+after)
	}
	return strings.Join(texts, "; ")
}
