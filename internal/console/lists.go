package console

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
)

const seeNumbers = identity.ReadNumbers

// pageRows is how many rows a page of a list has.
const pageRows = 50

// names are those of the tenants of payments, each looked up once.
func (v *visit) names(list []book.Payment) (map[string]string, error) {
	names := map[string]string{}
	for _, p := range list {
		if names[p.Tenant] != "" {
			continue
		}
		t, err := v.console.Tenants.Get(v.ctx, p.Tenant)
		if err != nil {
			return nil, err
		}
		names[p.Tenant] = t.Name
	}
	return names, nil
}

// Further columns of a list of payments.
const (
	ofOneKind    = iota
	ofOneAccount // its kind
	ofAll        // its kind, and whose it is
)

// rowsOf are payments as rows of a table. The names are those of the accounts of a list of all.
func (v *visit) rowsOf(list []book.Payment, base string, of int, names map[string]string) []page.Row {
	rows := make([]page.Row, len(list))
	for i, p := range list {
		cells := []templ.Component{page.ID(v.referenceOf(p))}
		if of == ofAll {
			cells = append(cells, page.Text(names[p.Tenant]))
		}
		if of != ofOneKind {
			cells = append(cells, page.Text(kindWords[p.Kind]))
		}
		cells = append(cells, page.Text(p.Channel), page.Text(v.account(p.Account)), page.Money(p.Amount), page.Mark(badgeOf(p)), page.Minute(p.CreatedAt))
		rows[i] = page.Row{Href: base + p.ID, Cells: cells}
	}
	return rows
}

// columnsOf are the columns of rowsOf.
func columnsOf(of int) []page.Column {
	columns := []page.Column{{Name: "Reference"}}
	if of == ofAll {
		columns = append(columns, page.Column{Name: "Account", Minor: true})
	}
	if of != ofOneKind {
		columns = append(columns, page.Column{Name: "Kind", Minor: true})
	}
	return append(columns, page.Column{Name: "Channel", Wide: true}, page.Column{Name: "Number", Wide: true}, page.Column{Name: "Amount", Right: true},
		page.Column{Name: "State"}, page.Column{Name: "Accepted", Minor: true})
}

// opsFilters are the parameters of the list of all payments.
var opsFilters = []string{"tenant", "kind", "status", "provider", "from", "to"}

// narrow reads the filters of the list of all payments.
func (v *visit) narrow() (book.Narrow, error) {
	from, to, err := v.days()
	if !to.IsZero() {
		to = to.AddDate(0, 0, 1)
	}
	if err != nil {
		return book.Narrow{}, err
	}
	of, err := v.tenantParam()
	return book.Narrow{Tenant: of, Kind: book.Kind(v.param("kind")), Status: v.param("status"), Rail: v.param("provider"),
		From: from, To: to, Before: v.param("before"), Limit: pageRows}, err
}

// allPayments is the list of all tenants' payments, newest first and without a total.
func allPayments(v *visit) (answer, error) {
	if since := v.param("newer"); since != "" {
		return v.newer(func(ctx context.Context) (int64, error) { return v.console.Payments.Newer(ctx, since) })
	}
	narrow, err := v.narrow()
	if err != nil {
		return answer{}, err
	}
	found, err := v.console.Payments.Latest(v.ctx, narrow)
	if err != nil {
		return answer{}, err
	}
	names, err := v.names(found.Payments)
	if err != nil {
		return answer{}, err
	}
	fields, err := v.opsFields()
	if err != nil {
		return answer{}, err
	}
	l := page.List{Title: "Payments", Filters: fields, Active: v.narrowed(opsFilters...), Clear: "/ops/payments", Columns: columnsOf(ofAll), Rows: v.rowsOf(found.Payments, "/ops/payments/", ofAll, names)}
	if v.can(identity.ExportPayments) {
		l.Files = withBooks(exportLinks("/ops/payments", v.filterQuery(opsFilters...)))
	}
	v.pageByKey(&l, found)
	if narrow.Before == "" && !l.Active {
		newest := "0"
		if len(found.Payments) > 0 {
			newest = found.Payments[0].ID
		}
		l.Newer = "/ops/payments?newer=" + newest
	}
	l.Empty = v.noPayments("Payments of all accounts appear here as they are accepted.")
	if l.Active || narrow.Before != "" {
		l.Empty = page.Empty{Title: "Nothing matches", Text: "No payment that was looked at passes these filters.", Href: "/ops/payments", Do: "Clear the filters"}
	}
	return answer{title: l.Title, body: page.Listing(l)}, nil
}

// noPayments is the place where the first payment will be. A development server says how there will be many.
func (v *visit) noPayments(text string) page.Empty {
	e := page.Empty{Title: "No payments yet", Text: text, Href: "/docs/quickstart", Do: "Read how"}
	if v.console.Development {
		e.Text += " To see full pages, run makola sample: it makes a data folder with 90 days of two accounts."
		e.Href, e.Do = "/sim", "Make one with the handsets"
	}
	return e
}

// pageByKey adds the links of a list that goes on by key.
func (v *visit) pageByKey(l *page.List, found book.Found) {
	if v.param("before") != "" {
		l.Prev = v.query("before", "")
	}
	switch {
	case found.More == "":
	case len(found.Payments) == pageRows:
		l.Next = v.query("before", found.More)
	default:
		l.Further = v.query("before", found.More)
		l.Shown = money.Grouped(strconv.Itoa(found.Looked)) + " payments were looked at; there are older ones"
	}
}

// opsFields are the filters as a form.
func (v *visit) opsFields() ([]page.Field, error) {
	tenants, err := v.tenantField()
	if err != nil {
		return nil, err
	}
	providers := append([]page.Option{{Value: "", Text: "Any"}}, v.providerOptions()...)
	return append([]page.Field{
		tenants,
		{Name: "kind", Label: "Kind", Options: anyKind, Value: v.param("kind")},
		{Name: "status", Label: "State", Options: anyStatus, Value: v.param("status")},
		{Name: "provider", Label: "Provider", Options: providers, Value: v.param("provider")},
	}, v.dayFields()...), nil
}

// mostTenants is how many tenants a filter offers. Where there are more, it takes an id or a name.
const mostTenants = 200

// tenantParam reads the filter by tenant: an id, or the name of one tenant alone. Of a tenant that does not exist there is
// nothing.
func (v *visit) tenantParam() (id string, err error) {
	text := strings.TrimSpace(v.param("tenant"))
	if text == "" {
		return "", nil
	}
	if _, err := uuid.Parse(text); err == nil {
		return text, nil
	}
	t, err := v.console.Tenants.Get(v.ctx, text)
	if problem.Is(err, problem.NotFound) {
		t, err = v.console.Tenants.Named(v.ctx, text)
	}
	if problem.Is(err, problem.NotFound) {
		err = problem.Field("tenant", "must be the id of an account, or the name of one alone")
	}
	return t.ID, err
}

// tenantField is the filter by tenant.
func (v *visit) tenantField() (page.Field, error) {
	f := page.Field{Name: "tenant", Label: "Account", Options: []page.Option{{Value: "", Text: "Any"}}, Value: v.param("tenant")}
	all, err := v.console.Tenants.List(v.ctx, "", mostTenants+1)
	if err != nil {
		return f, err
	}
	if len(all) > mostTenants {
		return page.Field{Name: f.Name, Label: "Account, by id or name", Value: f.Value, Max: 120}, nil
	}
	offered := f.Value == ""
	for _, t := range all {
		f.Options = append(f.Options, page.Option{Value: t.ID, Text: t.Name})
		offered = offered || t.ID == f.Value
	}
	if !offered { // so that sending the form again keeps the filter
		name := f.Value
		if t, err := v.console.Tenants.Get(v.ctx, f.Value); err == nil { // a name that cannot be read now is left out
			name = t.Name
		}
		f.Options = append(f.Options, page.Option{Value: f.Value, Text: name})
	}
	return f, nil
}

// filterQuery is the query of some parameters.
func (v *visit) filterQuery(names ...string) string {
	q := url.Values{}
	for _, name := range names {
		if value := v.param(name); value != "" {
			q.Set(name, value)
		}
	}
	return q.Encode()
}

// newer answers the line that says how many rows came since a page was made.
func (v *visit) newer(count func(context.Context) (int64, error)) (answer, error) {
	n, err := count(v.ctx)
	if err != nil || n == 0 {
		return answer{same: true}, err
	}
	text := strconv.FormatInt(n, 10)
	if n == book.MaxNewer {
		text += " or more"
	}
	if text == v.param("seen") {
		return answer{same: true}, nil
	}
	poll := v.r.URL.Path + "?" + url.Values{"newer": {v.param("newer")}, "seen": {text}}.Encode()
	return answer{part: page.Newer(poll, text, v.r.URL.Path, 5)}, nil
}

// tenantLists are the lists of a tenant's payments.
var tenantLists = []struct {
	path, title, key string
	kind             book.Kind
	first            string // what there is to say before the first one
	guide            string // says how to make one
}{
	{"/collections", "Collections", "c", book.KindCollection, "Money that your customers pay you by mobile money appears here.", "/docs/collecting"},
	{"/payouts", "Payouts", "p", book.KindPayout, "Money that you send to wallets and bank accounts appears here.", "/docs/paying-out"},
	{"/airtime", "Airtime", "a", book.KindTopUp, "Airtime that you buy appears here.", "/docs/airtime-data"},
	{"/data", "Data packages", "d", book.KindBundle, "Data packages that you buy appear here.", "/docs/airtime-data"},
}

// tenantPayments is a list of one tenant's payments of one kind, with totals.
func tenantPayments(n int) func(*visit) (answer, error) {
	return func(v *visit) (answer, error) {
		kind, base := tenantLists[n], "/app/"+v.tenant.ID
		if since := v.param("newer"); since != "" {
			return v.newer(func(ctx context.Context) (int64, error) {
				had, err := strconv.ParseInt(since, 10, 64)
				if err != nil || had < 0 {
					return 0, problem.Field("newer", "must be a number from 0")
				}
				total, err := v.console.Payments.Total(ctx, v.tenant.ID, kind.kind)
				return min(max(total-had, 0), book.MaxNewer), err
			})
		}
		f, err := v.historyFilter(kind.kind)
		if err != nil {
			return answer{}, err
		}
		found, err := v.console.Payments.History(v.ctx, v.tenant.ID, f)
		if err != nil {
			return answer{}, err
		}
		l := page.List{Title: kind.title, Active: v.narrowed("status", "from", "to"), Clear: base + kind.path, Columns: columnsOf(ofOneKind),
			Rows: v.rowsOf(found.Rows, base+"/payments/", ofOneKind, nil)}
		l.Filters = append([]page.Field{{Name: "status", Label: "State", Options: anyStatus, Value: f.Status}}, v.dayFields()...)
		if v.can(identity.ExportPayments) {
			l.Count = money.Grouped(strconv.FormatInt(found.Total, 10))
			l.Files = withBooks(exportLinks(base+kind.path, v.filterQuery("status", "from", "to")))
		}
		v.pageByNumber(&l, found)
		if found.Page == 1 && !l.Active {
			l.Newer = base + kind.path + "?newer=" + strconv.FormatInt(found.Total, 10)
		}
		l.Empty = v.emptyList(found, l.Active, base+kind.path, kind.first, kind.guide)
		return answer{title: kind.title, body: page.Listing(l)}, nil
	}
}

func (v *visit) emptyList(found book.Page, narrowed bool, clear, first, guide string) page.Empty {
	switch {
	case found.Total > 0:
		return page.Empty{Title: "Past the end", Text: fmt.Sprintf("There are %d pages.", found.LastPage), Href: v.query("page", ""), Do: "To the first page"}
	case narrowed:
		return page.Empty{Title: "Nothing matches", Text: "No payment passes these filters.", Href: clear, Do: "Clear the filters"}
	}
	return page.Empty{Title: "None yet", Text: first, Href: guide, Do: "Read how"}
}

// historyFilter reads the filters of a tenant's list.
func (v *visit) historyFilter(kind book.Kind) (book.Filter, error) {
	f := book.Filter{Kind: kind, Status: v.param("status"), Size: pageRows, Page: 1}
	var err error
	if f.From, f.To, err = v.days(); err != nil {
		return f, err
	}
	if text := v.param("page"); text != "" {
		if f.Page, err = strconv.Atoi(text); err != nil || f.Page < 1 {
			return f, problem.Field("page", "must be a number from 1")
		}
	}
	return f, nil
}

// pageByNumber adds the links of a list with numbered pages.
func (v *visit) pageByNumber(l *page.List, found book.Page) {
	if found.From > 0 {
		l.Shown = money.Grouped(strconv.FormatInt(found.From, 10)) + " to " + money.Grouped(strconv.FormatInt(found.To, 10))
		if v.can(identity.ExportPayments) {
			l.Shown += " of " + money.Grouped(strconv.FormatInt(found.Total, 10))
		}
	}
	if found.Page > 1 {
		l.Prev = v.query("page", strconv.Itoa(found.Page-1))
	}
	if int64(found.Page) < found.LastPage {
		l.Next = v.query("page", strconv.Itoa(found.Page+1))
	}
}
