package ops

import (
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/sheet"
)

// auditList lists what people did, the latest first.
func (ps *Pages) auditList(v *console.Visit) (console.Answer, error) {
	f := auditFilter(v)
	list, err := ps.Audit.List(v.Ctx, f)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Audit log", Lead: "What people did, on pages and by commands. Each entry is linked into a chain that shows what was changed.",
		Columns: []page.Column{{Name: "When"}, {Name: "Who"}, {Name: "From", Wide: true}, {Name: "What"}, {Name: "Account", Minor: true}, {Name: "Changes", Minor: true}, {Name: "Reason", Minor: true}, {Name: "Link", Right: true, Wide: true}},
		Active:  f.Actor != "" || f.Action != "" || f.Tenant != "", Clear: "/ops/audit",
		Filters: []page.Field{{Name: "actor", Label: "Who", Value: f.Actor, Max: 254}, {Name: "action", Label: "What", Value: f.Action, Max: 60}, {Name: "tenant", Label: "Account's id", Value: f.Tenant, Max: 36}},
		Empty:   page.Empty{Title: "No entries", Text: "What somebody changes, takes away or looks at as another appears here."}}
	if len(list) > console.PageRows {
		list = list[:console.PageRows]
		l.Next = v.Query("before", list[console.PageRows-1].ID)
	}
	if f.Before != "" {
		l.Prev = v.Query("before", "")
	}
	if v.Can(roles.ExportPayments) {
		l.Files = console.FileLinks("/ops/audit", v.FilterQuery("actor", "action", "tenant"))
	}
	names := map[string]string{}
	for _, e := range list {
		name, known := names[e.Tenant]
		if !known && e.Tenant != "" {
			name = e.Tenant
			if t, err := ps.Tenants.Get(v.Ctx, e.Tenant); err == nil { // a name that cannot be read now is left out
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
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// auditFilter reads the filters of the audit log.
func auditFilter(v *console.Visit) audit.Filter {
	return audit.Filter{Actor: v.Param("actor"), Action: v.Param("action"), Tenant: v.Param("tenant"), Before: v.Param("before"), Limit: console.PageRows + 1}
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

// auditFile is the audit log as a file, with the filters of its list.
func (ps *Pages) auditFile(v *console.Visit) (console.Answer, error) {
	f := auditFilter(v)
	return console.Exported(v, v.FileName("audit", f.Tenant, time.Time{}, time.Time{}), auditColumns, func(each func(audit.Entry) error) error {
		return console.ByPage(func(e audit.Entry) string { return e.ID }, func(before string, limit int) ([]audit.Entry, error) {
			f.Before, f.Limit = before, limit
			return ps.Audit.List(v.Ctx, f)
		}, each)
	}), nil
}

var auditColumns = []sheet.Column[audit.Entry]{
	{Head: "at", Value: func(e audit.Entry) sheet.Value { return sheet.Time(e.At) }},
	{Head: "actor", Value: func(e audit.Entry) sheet.Value { return sheet.String(e.Actor) }},
	{Head: "from", Value: func(e audit.Entry) sheet.Value { return sheet.String(e.Origin) }},
	{Head: "action", Value: func(e audit.Entry) sheet.Value { return sheet.String(e.Action) }},
	{Head: "tenant", Value: func(e audit.Entry) sheet.Value { return sheet.String(e.Tenant) }},
	{Head: "subject", Value: func(e audit.Entry) sheet.Value { return sheet.String(e.Subject) }},
	{Head: "changes", Value: func(e audit.Entry) sheet.Value { return sheet.String(changeTexts(e)) }},
	{Head: "reason", Value: func(e audit.Entry) sheet.Value { return sheet.String(e.Reason) }},
	{Head: "link", Value: func(e audit.Entry) sheet.Value {
		if e.Link == 0 {
			return sheet.String("")
		}
		return sheet.Integer(e.Link)
	}},
	{Head: "id", Value: func(e audit.Entry) sheet.Value { return sheet.String(e.ID) }},
}
