package tenant

import (
	"context"
	"fmt"
	"strconv"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/records"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// tenantPaymentsFile is a tenant's list as a file.
func (ps *Pages) tenantPaymentsFile(n int) func(*console.Visit) (console.Answer, error) {
	return func(v *console.Visit) (console.Answer, error) {
		f, err := historyFilter(v, tenantLists[n].kind)
		if err != nil {
			return console.Answer{}, err
		}
		f.Size = 1
		if _, err := ps.Payments.History(v.Ctx, v.Tenant.ID, f); err != nil { // said on a page, not in the file
			return console.Answer{}, err
		}
		return records.File(v, v.FileName(tenantLists[n].path[1:], "", f.From, f.To), func(each func(book.Payment) error) error {
			return ps.Payments.Export(v.Ctx, v.Tenant.ID, f, each)
		})
	}
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
		found, err := ps.Payments.History(v.Ctx, v.Tenant.ID, f)
		if err != nil {
			return console.Answer{}, err
		}
		l := page.List{Title: kind.title, Active: v.Narrowed("status", "from", "to"), Clear: base + kind.path, Columns: records.Columns(records.OfOneKind),
			Rows: records.Rows(v, found.Rows, base+"/payments/", records.OfOneKind, nil)}
		l.Filters = append([]page.Field{{Name: "status", Label: "State", Options: records.AnyStatus, Value: f.Status}}, v.DayFields()...)
		if v.Can(roles.ExportPayments) {
			l.Count = money.Grouped(strconv.FormatInt(found.Total, 10))
			l.Files = records.WithBooks(console.FileLinks(base+kind.path, v.FilterQuery("status", "from", "to")))
		}
		pageByNumber(v, &l, found)
		if found.Page == 1 && !l.Active {
			l.Newer = base + kind.path + "?newer=" + strconv.FormatInt(found.Total, 10)
		}
		l.Empty = emptyList(v, found, l.Active, base+kind.path, kind.first, kind.guide)
		return console.Answer{Title: kind.title, Body: page.Listing(l)}, nil
	}
}

func emptyList(v *console.Visit, found book.Page, narrowed bool, clear, first, guide string) page.Empty {
	switch {
	case found.Total > 0:
		return page.Empty{Title: "Past the end", Text: fmt.Sprintf("There are %d pages.", found.LastPage), Href: v.Query("page", ""), Do: "To the first page"}
	case narrowed:
		return page.Empty{Title: "Nothing matches", Text: "No payment passes these filters.", Href: clear, Do: "Clear the filters"}
	}
	return page.Empty{Title: "None yet", Text: first, Href: guide, Do: "Read how"}
}

// historyFilter reads the filters of a tenant's list.
func historyFilter(v *console.Visit, kind book.Kind) (book.Filter, error) {
	f := book.Filter{Kind: kind, Status: v.Param("status"), Size: console.PageRows, Page: 1}
	var err error
	if f.From, f.To, err = v.Days(); err != nil {
		return f, err
	}
	if text := v.Param("page"); text != "" {
		if f.Page, err = strconv.Atoi(text); err != nil || f.Page < 1 {
			return f, problem.Field("page", "must be a number from 1")
		}
	}
	return f, nil
}

// pageByNumber adds the links of a list with numbered pages.
func pageByNumber(v *console.Visit, l *page.List, found book.Page) {
	if found.From > 0 {
		l.Shown = money.Grouped(strconv.FormatInt(found.From, 10)) + " to " + money.Grouped(strconv.FormatInt(found.To, 10))
		if v.Can(roles.ExportPayments) {
			l.Shown += " of " + money.Grouped(strconv.FormatInt(found.Total, 10))
		}
	}
	if found.Page > 1 {
		l.Prev = v.Query("page", strconv.Itoa(found.Page-1))
	}
	if int64(found.Page) < found.LastPage {
		l.Next = v.Query("page", strconv.Itoa(found.Page+1))
	}
}
