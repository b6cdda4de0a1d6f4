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

// auditList lists the entries of the audit log, newest first.
func (ps *Pages) auditList(v *console.Visit) (console.Answer, error) {
	f, err := auditFilter(v)
	if err != nil {
		return console.Answer{}, err
	}
	list, err := ps.Audit.List(v.Ctx, f)
	if err != nil {
		return console.Answer{}, err
	}
	account, err := v.AccountField()
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Audit log", Lead: "Actions of people, on pages and on the command line. Entries are chained, so that a later change to one is detected.",
		Active: v.Narrowed(auditFilters...), Clear: "/ops/audit",
		Filters: append([]page.Field{{Name: "words", Label: "Words", Value: f.Words, Max: maxWords}, {Name: "actor", Label: "Person", Value: f.Actor, Max: 254}, {Name: "action", Label: "Action", Value: f.Action, Max: 60}, account}, v.DayFields()...),
		Empty:   page.Empty{Title: "No entries", Text: "Changes, exports and views as an account appear here."}}
	if l.Active > 0 {
		l.Empty = page.Empty{Title: "No results", Text: "No entry matches these filters.", Href: "/ops/audit", Do: "Clear filters"}
	}
	list = console.Keyed(v, &l, "before", list, func(e audit.Entry) string { return e.ID })
	if v.Can(roles.ExportPayments) {
		l.Files = console.FileLinks("/ops/audit", v.FilterQuery(auditFilters...))
	}
	l.Grid = console.Grid(auditColumns(ps.accountNames(v, list)), list, nil)
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// accountNames returns the names of the accounts of entries. An account that cannot be read has its ID for a name.
func (ps *Pages) accountNames(v *console.Visit, list []audit.Entry) map[string]string {
	names := map[string]string{"": ""}
	for _, e := range list {
		if _, known := names[e.Tenant]; !known {
			names[e.Tenant] = v.NameOf(e.Tenant)
		}
	}
	return names
}

// maxWords is the maximum number of characters of the filter by words.
const maxWords = 200

// auditFilters are the parameters of the audit log.
var auditFilters = []string{"words", "actor", "action", "tenant", "from", "to"}

// auditInputs are the inputs of these filters.
var auditInputs = []console.Input{{Name: "words", Max: maxWords}, {Name: "actor", Max: 254}, {Name: "action", Max: 60}, {Name: "tenant", Max: 120}, {Name: "from", Max: 10}, {Name: "to", Max: 10}}

// auditFilter reads the filters of the audit log.
func auditFilter(v *console.Visit) (audit.Filter, error) {
	from, to, err := v.Days()
	if !to.IsZero() {
		to = to.AddDate(0, 0, 1)
	}
	if err != nil {
		return audit.Filter{}, err
	}
	of, err := v.AccountParam()
	f := audit.Filter{Words: v.Param("words"), Actor: v.Param("actor"), Action: v.Param("action"), Tenant: of, From: from, To: to, Before: v.Param("before"), Limit: console.PageRows + 1}
	if err == nil {
		err = f.Valid()
	}
	return f, err
}

// actorOf names the person of an entry. A break-glass command is red.
func actorOf(e audit.Entry) templ.Component {
	if e.BrokeGlass() {
		return page.Mark(page.Badge{Tone: page.Bad, Word: e.Actor})
	}
	return page.Text(e.Actor)
}

// changeTexts returns the changes of an entry as one text.
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

// auditFile returns the audit log as a file, with the filters of its list.
func (ps *Pages) auditFile(v *console.Visit) (console.Answer, error) {
	f, err := auditFilter(v)
	if err != nil {
		return console.Answer{}, err
	}
	return console.Exported(v, v.FileName("audit", f.Tenant, f.From, dayBefore(f.To)), auditColumns(nil), func(each func(audit.Entry) error) error {
		return console.ByPage(func(e audit.Entry) string { return e.ID }, func(before string, limit int) ([]audit.Entry, error) {
			f.Before, f.Limit = before, limit
			return ps.Audit.List(v.Ctx, f)
		}, each)
	}), nil
}

// auditColumns returns the columns of the audit log. names has the accounts of the entries of a page.
func auditColumns(names map[string]string) []console.Column[audit.Entry] {
	type entry = audit.Entry
	return []console.Column[entry]{
		console.Time("Time", "at", func(e entry) time.Time { return e.At }).Laid(console.Under),
		console.Coded("Person", "actor", actorOf, func(e entry) string { return e.Actor }),
		console.Text("IP address", "from", func(e entry) string { return e.Origin }).Laid(console.Wide),
		console.Text("Action", "action", func(e entry) string { return e.Action }).Laid(console.Link),
		console.Coded("Account", "tenant", func(e entry) templ.Component { return page.Text(names[e.Tenant]) }, func(e entry) string { return e.Tenant }).Laid(console.Minor),
		console.Text("", "subject", func(e entry) string { return e.Subject }),
		console.Text("Changes", "changes", changeTexts).Laid(console.Minor),
		console.Text("Reason", "reason", func(e entry) string { return e.Reason }).Laid(console.Minor),
		console.Column[entry]{Head: "Chain position", Name: "link", Cell: func(e entry) templ.Component {
			if e.Link == 0 {
				return page.Text("pending")
			}
			return page.Text(strconv.FormatInt(e.Link, 10))
		}, Value: func(e entry) sheet.Value {
			if e.Link == 0 {
				return sheet.String("")
			}
			return sheet.Integer(e.Link)
		}}.Laid(console.Wide),
		console.Text("", "id", func(e entry) string { return e.ID }),
	}
}
