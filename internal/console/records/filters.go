package records

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
)

// The filters of lists of payments.
var (
	AnyStatus = []page.Option{{Value: "", Text: "Any"}, {Value: "pending", Text: "Pending"}, {Value: "submitted", Text: "Submitted"}, {Value: "success", Text: "Success"},
		{Value: "failed", Text: "Failed"}, {Value: "declined", Text: "Declined"}, {Value: "invalid", Text: "Invalid"}}
	AnyKind = []page.Option{{Value: "", Text: "Any"}, {Value: string(book.KindCollection), Text: "Collections"}, {Value: string(book.KindPayout), Text: "Payouts"},
		{Value: string(book.KindTopUp), Text: "Airtime"}, {Value: string(book.KindBundle), Text: "Data"}}
)

// mostTenants is how many tenants a filter offers. Where there are more, it takes an id or a name.
const mostTenants = 200

// TenantParam reads the filter by tenant: an id, or the name of one tenant alone. Of a tenant that does not exist there is
// nothing.
func (ps *Pages) TenantParam(v *console.Visit) (id string, err error) {
	text := strings.TrimSpace(v.Param("tenant"))
	if text == "" {
		return "", nil
	}
	if _, err := uuid.Parse(text); err == nil {
		return text, nil
	}
	t, err := ps.Tenants.Get(v.Ctx, text)
	if problem.Is(err, problem.NotFound) {
		t, err = ps.Tenants.Named(v.Ctx, text)
	}
	if problem.Is(err, problem.NotFound) {
		err = problem.Field("tenant", "must be the id of an account, or the name of one alone")
	}
	return t.ID, err
}

// TenantField is the filter by tenant.
func (ps *Pages) TenantField(v *console.Visit) (page.Field, error) {
	f := page.Field{Name: "tenant", Label: "Account", Options: []page.Option{{Value: "", Text: "Any"}}, Value: v.Param("tenant")}
	all, err := ps.Tenants.List(v.Ctx, "", mostTenants+1)
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
		if t, err := ps.Tenants.Get(v.Ctx, f.Value); err == nil { // a name that cannot be read now is left out
			name = t.Name
		}
		f.Options = append(f.Options, page.Option{Value: f.Value, Text: name})
	}
	return f, nil
}

// Newer answers the line that says how many rows came since a page was made.
func Newer(v *console.Visit, count func(context.Context) (int64, error)) (console.Answer, error) {
	n, err := count(v.Ctx)
	if err != nil || n == 0 {
		return console.Answer{Same: true}, err
	}
	text := strconv.FormatInt(n, 10)
	if n == book.MaxNewer {
		text += " or more"
	}
	if text == v.Param("seen") {
		return console.Answer{Same: true}, nil
	}
	poll := v.R.URL.Path + "?" + url.Values{"newer": {v.Param("newer")}, "seen": {text}}.Encode()
	return console.Answer{Part: page.Newer(poll, text, v.R.URL.Path, 5)}, nil
}
