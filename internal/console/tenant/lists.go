package tenant

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/records"
	"github.com/makola/makola/internal/figures"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// tenantPaymentsFile returns the payments of one kind as a file.
func (ps *Pages) tenantPaymentsFile(n int) func(*console.Visit) (console.Answer, error) {
	return func(v *console.Visit) (console.Answer, error) {
		f, err := historyFilter(v, tenantLists[n].kind)
		if err != nil {
			return console.Answer{}, err
		}
		f.Size = 1
		if _, err := ps.Payments.History(v.Ctx, v.Tenant.ID, f); err != nil { // a page shows the error, a file cannot
			return console.Answer{}, err
		}
		return records.File(v, v.FileName(tenantLists[n].path[1:], "", f.From, f.To), func(each func(book.Payment) error) error {
			return ps.Payments.Export(v.Ctx, v.Tenant.ID, f, each)
		})
	}
}

// tenantLists are the lists of an account's payments.
var tenantLists = []struct {
	path, title, key string
	kind             book.Kind
	first            string // shown while the list is empty
	guide            string // link to the guide about this kind
}{

	{"/collections", "Collections", "c", book.KindCollection, "Mobile money payments from your customers appear here.", "/docs/collecting"},
	{"/payouts", "Payouts", "p", book.KindPayout, "Payments to wallets and bank accounts appear here.", "/docs/paying-out"},
	{"/airtime", "Airtime", "a", book.KindTopUp, "Airtime purchases appear here.", "/docs/airtime-data"},
	{"/data", "Data packages", "d", book.KindBundle, "Data package purchases appear here.", "/docs/airtime-data"},
}

// tenantPayments lists the payments of one kind with totals.
func (ps *Pages) tenantPayments(n int) func(*console.Visit) (console.Answer, error) {
	return func(v *console.Visit) (console.Answer, error) {
		kind, base := tenantLists[n], "/app/"+v.Tenant.ID
		if since := v.Param("newer"); since != "" {
			return records.Newer(v, func(ctx context.Context) (int64, error) {
				had, err := strconv.ParseInt(since, 10, 64)
				if err != nil || had < 0 {
					return 0, problem.Field("newer", "must be a number from 0")
				}
				total, err := ps.Payments.Total(ctx, v.Tenant.ID, kind.kind)
				return min(max(total-had, 0), book.MaxNewer), err
			})
		}
		f, err := historyFilter(v, kind.kind)
		if err != nil {
			return console.Answer{}, err
		}
		l := page.List{Title: kind.title, Active: v.Narrowed(listFilters...), Clear: base + kind.path}
		l.Filters = append([]page.Field{{Name: "status", Label: "Status", Options: records.AnyStatus, Value: v.Param("status")}}, append(v.DayFields(), records.AmountFields(v)...)...)
		if v.Can(roles.ExportPayments) {
			l.Files = records.WithBooks(console.FileLinks(base+kind.path, v.FilterQuery(listFilters...)))
		}
		if f.Any() {
			return ps.narrowedPayments(v, l, f)
		}
		found, err := ps.Payments.History(v.Ctx, v.Tenant.ID, f)
		if err != nil {
			return console.Answer{}, err
		}
		l.Grid = records.Grid(v, found.Rows, true, nil)
		if v.Can(roles.ExportPayments) {
			l.Count = page.Count(found.Total)
			if l.Lead, err = ps.totals(v, f); err != nil {
				return console.Answer{}, err
			}
		}
		pageByNumber(v, &l, found)
		if found.Page == 1 && l.Active == 0 {
			l.Newer = base + kind.path + "?newer=" + strconv.FormatInt(found.Total, 10)
		}
		l.Empty = emptyList(v, found, l.Active > 0, base+kind.path, kind.first, kind.guide)
		return console.Answer{Title: kind.title, Body: page.Listing(l)}, nil
	}
}

// listFilters are the parameters of the lists of payments.
var listFilters = []string{"status", "from", "to", "least", "most"}

// narrowedPayments lists the payments of an amount, or with an unknown outcome.
func (ps *Pages) narrowedPayments(v *console.Visit, l page.List, f book.Filter) (console.Answer, error) {
	found, err := ps.Payments.Narrowed(v.Ctx, v.Tenant.ID, f, v.Param("before"))
	if err != nil {
		return console.Answer{}, err
	}
	l.Grid = records.Grid(v, found.Payments, true, nil)
	records.PageByKey(v, &l, found)
	if v.Can(roles.ExportPayments) && found.More == "" && v.Param("before") == "" {
		l.Count = page.Count(len(found.Payments))
		var amount, charges money.Pesewas
		for _, p := range found.Payments {
			amount, charges = amount+p.Amount, charges+p.Charges
		}
		l.Lead = records.Totals(amount, charges)
	}
	l.Empty = page.Empty{Title: "No results", Text: "No payment matches these filters.", Href: l.Clear, Do: "Clear filters"}
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// firstDay is before every payment.
var firstDay = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// totals returns the sums of the whole filter, which are as complete as the figures.
func (ps *Pages) totals(v *console.Visit, f book.Filter) (string, error) {
	span := figures.Span{Tenant: v.Tenant.ID, Mode: string(v.Tenant.Mode), From: f.From, To: v.Now().AddDate(0, 0, 2)}
	if f.From.IsZero() {
		span.From = firstDay
	}
	if !f.To.IsZero() {
		span.To = f.To.AddDate(0, 0, 1)
	}
	list, err := ps.Figures.Days(v.Ctx, span)
	if err != nil {
		return "", err
	}
	to, err := ps.Figures.CountedTo(v.Ctx)
	if err != nil || to.IsZero() {
		return "", err
	}
	var amount, charges money.Pesewas
	for _, one := range list {
		if one.Kind == f.Kind && (f.Status == "" || f.Status == book.Payment{Kind: one.Kind, Status: one.Status}.PublicStatus()) {
			amount, charges = amount+one.Amount, charges+one.Charges
		}
	}
	return records.Totals(amount, charges) + " These sums are complete to " + page.When(to) + ".", nil
}

func emptyList(v *console.Visit, found book.Page, narrowed bool, clear, first, guide string) page.Empty {
	switch {
	case found.Total > 0:
		return page.Empty{Title: "No such page", Text: fmt.Sprintf("The list has %d pages.", found.LastPage), Href: v.Query("page", ""), Do: "Go to the first page"}
	case narrowed:
		return page.Empty{Title: "No results", Text: "No payment matches these filters.", Href: clear, Do: "Clear filters"}
	}
	return page.Empty{Title: "Nothing here yet", Text: first, Href: guide, Do: "Read the guide"}
}

// historyFilter reads the filters of a list.
func historyFilter(v *console.Visit, kind book.Kind) (book.Filter, error) {
	f := book.Filter{Kind: kind, Status: v.Param("status"), Size: console.PageRows}
	if f.Unknown = f.Status == records.UnknownStatus; f.Unknown {
		f.Status = ""
	}
	var err error
	if f.Least, f.Most, err = records.Amounts(v); err != nil {
		return f, err
	}
	if f.From, f.To, err = v.Days(); err != nil {
		return f, err
	}
	f.Page, err = v.PageNumber(0)
	return f, err
}

// pageByNumber adds the links to the neighbours of a numbered page.
func pageByNumber(v *console.Visit, l *page.List, found book.Page) {
	if found.From > 0 {
		l.Shown = page.Count(found.From) + " to " + page.Count(found.To)
		if v.Can(roles.ExportPayments) {
			l.Shown += " of " + page.Count(found.Total)
		}
	}
	if found.Page > 1 {
		l.Prev = v.Query("page", strconv.Itoa(found.Page-1))
	}
	if int64(found.Page) < found.LastPage {
		l.Next = v.Query("page", strconv.Itoa(found.Page+1))
	}
}
