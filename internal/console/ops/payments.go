package ops

import (
	"context"
	"time"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/records"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/roles"
)

// dayBefore returns the last day of a period that ends before a day. It is zero for no end.
func dayBefore(end time.Time) time.Time {
	if end.IsZero() {
		return end
	}
	return end.AddDate(0, 0, -1)
}

// allPaymentsFile returns the payments of all accounts as a file.
func (ps *Pages) allPaymentsFile(v *console.Visit) (console.Answer, error) {
	narrow, err := ps.narrow(v)
	if err != nil {
		return console.Answer{}, err
	}
	name := v.FileName("payments", narrow.Tenant, narrow.From, dayBefore(narrow.To))
	narrow.Limit = book.MaxPageSize
	first, err := ps.Payments.Latest(v.Ctx, narrow) // the page shows errors in the filters; the file does not
	if err != nil {
		return console.Answer{}, err
	}
	return records.File(v, name, func(each func(book.Payment) error) error {
		for found := first; ; {
			for _, p := range found.Payments {
				if err := each(p); err != nil {
					return err
				}
			}
			if found.More == "" {
				return nil
			}
			narrow.Before = found.More
			if found, err = ps.Payments.Latest(v.Ctx, narrow); err != nil {
				return err
			}
		}
	})
}

// opsFilters are the parameters of the list of all payments.
var opsFilters = []string{"tenant", "kind", "status", "provider", "from", "to", "least", "most"}

// narrow reads the filters of the list of all payments.
func (ps *Pages) narrow(v *console.Visit) (book.LatestFilter, error) {
	from, to, err := v.Days()
	if !to.IsZero() {
		to = to.AddDate(0, 0, 1)
	}
	if err != nil {
		return book.LatestFilter{}, err
	}
	of, err := v.AccountParam()
	if err != nil {
		return book.LatestFilter{}, err
	}
	f := book.LatestFilter{Tenant: of, Kind: book.Kind(v.Param("kind")), Status: v.Param("status"), Rail: v.Param("provider"),
		From: from, To: to, Before: v.Param("before"), Limit: console.PageRows}
	if f.Unknown = f.Status == records.UnknownStatus; f.Unknown {
		f.Status = ""
	}
	f.Least, f.Most, err = records.Amounts(v)
	return f, err
}

// allPayments lists the payments of all accounts, newest first and without a total.
func (ps *Pages) allPayments(v *console.Visit) (console.Answer, error) {
	if since := v.Param("newer"); since != "" {
		return records.Newer(v, func(ctx context.Context) (int64, error) { return ps.Payments.Newer(ctx, since) })
	}
	narrow, err := ps.narrow(v)
	if err != nil {
		return console.Answer{}, err
	}
	found, err := ps.Payments.Latest(v.Ctx, narrow)
	if err != nil {
		return console.Answer{}, err
	}
	names, err := ps.Records.Names(v, found.Payments)
	if err != nil {
		return console.Answer{}, err
	}
	fields, err := ps.opsFields(v)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Payments", Filters: fields, Active: v.Narrowed(opsFilters...), Clear: "/ops/payments", Grid: records.Grid(v, found.Payments, false, names)}
	if v.Can(roles.ExportPayments) {
		l.Files = records.WithBooks(console.FileLinks("/ops/payments", v.FilterQuery(opsFilters...)))
	}
	records.PageByKey(v, &l, found)
	if narrow.Before == "" && l.Active == 0 {
		newest := "0"
		if len(found.Payments) > 0 {
			newest = found.Payments[0].ID
		}
		l.Newer = "/ops/payments?newer=" + newest
	}
	l.Empty = records.NoPayments(v, "Accepted payments of all accounts appear here.")
	if l.Active > 0 || narrow.Before != "" {
		l.Empty = page.Empty{Title: "No results", Text: "No payment matches these filters.", Href: "/ops/payments", Do: "Clear filters"}
	}
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// opsFields are the fields of the filters.
func (ps *Pages) opsFields(v *console.Visit) ([]page.Field, error) {
	tenants, err := v.AccountField()
	if err != nil {
		return nil, err
	}
	providers := append([]page.Option{{Value: "", Text: "All"}}, ps.providerOptions()...)
	return append([]page.Field{
		tenants,
		{Name: "kind", Label: "Kind", Options: records.AnyKind, Value: v.Param("kind")},
		{Name: "status", Label: "Status", Options: records.AnyStatus, Value: v.Param("status")},
		{Name: "provider", Label: "Provider", Options: providers, Value: v.Param("provider")},
	}, append(v.DayFields(), records.AmountFields(v)...)...), nil
}
