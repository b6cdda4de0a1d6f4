package console

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/sheet"
)

// How much an export gives.
const (
	exportWithin = 60 * time.Second
	exportMost   = 100_000 // rows
)

// errEnough ends an export that is as long as it may be.
var errEnough = errors.New("console: enough rows")

// Suffixes of the addresses of files. A route names the first; it has the other one as well.
const (
	csvSuffix  = "." + string(sheet.CSV)
	xlsxSuffix = "." + string(sheet.XLSX)
)

// withFormats adds to each route of a file the one that gives it as XLSX.
func withFormats(routes []Route) []Route {
	for _, r := range routes {
		if r.File {
			r.Path = strings.TrimSuffix(r.Path, csvSuffix) + xlsxSuffix
			routes = append(routes, r)
		}
	}
	return routes
}

// exportLinks are the links of the files of a list.
func exportLinks(base, query string) page.Files {
	return page.Files{XLSX: base + xlsxSuffix + "?" + query, CSV: base + csvSuffix + "?" + query}
}

// withBooks adds the file for bookkeeping programs.
func withBooks(f page.Files) page.Files {
	f.Books = f.XLSX + "&preset=" + presetBooks
	return f
}

// column is a column of a file.
type column[T any] = sheet.Column[T]

// exported is the answer of a file, in the format that the address asks for. all calls each for every row.
func exported[T any](v *visit, name string, columns []column[T], all func(each func(T) error) error) answer {
	format := sheet.CSV
	if strings.HasSuffix(v.route.Path, xlsxSuffix) {
		format = sheet.XLSX
	}
	return answer{file: name + "." + string(format), media: format.MediaType(), write: func(w http.ResponseWriter) error {
		out, err := sheet.NewWriter(w, format, columns)
		if err != nil {
			return err
		}
		rows := 0
		err = all(func(row T) error {
			if rows++; rows > exportMost {
				return errEnough
			}
			return out.Write(row)
		})
		if errors.Is(err, errEnough) {
			err = out.Note("There are more rows: narrow the list by its filters")
		}
		if err != nil {
			return err
		}
		return out.Close()
	}}
}

// fileName names a file by its list, its account and its days: payouts-kejetia-traders-2026-11-01-to-2026-11-26.
func (v *visit) fileName(list, account string, from, to time.Time) string {
	parts := []string{list}
	switch {
	case v.route.Site == tenants:
		parts = append(parts, fileWord(v.tenant.Name))
	case account != "":
		parts = append(parts, fileWord(v.nameOf(account)))
	default:
		parts = append(parts, "all-accounts")
	}
	if !from.IsZero() {
		parts = append(parts, from.Format(dayFormat))
	}
	if today := v.console.Clock.Now().UTC(); to.IsZero() || to.After(today) {
		to = today
	}
	return strings.Join(append(parts, "to", to.Format(dayFormat)), "-")
}

// dayBefore is the last day of a time that ends before a day; zero has none.
func dayBefore(end time.Time) time.Time {
	if end.IsZero() {
		return end
	}
	return end.AddDate(0, 0, -1)
}

// maxFileWord is the most characters of an account's name in the name of a file.
const maxFileWord = 40

// fileWord writes a name with what every system takes in the name of a file.
func fileWord(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	word := strings.Join(words, "-")
	return strings.Trim(word[:min(len(word), maxFileWord)], "-")
}

// paymentColumns are those of payments, as far as the visitor may see them.
func (v *visit) paymentColumns() []column[book.Payment] {
	return []column[book.Payment]{
		{Head: "accepted_at", Value: func(p book.Payment) sheet.Value { return sheet.Time(p.CreatedAt) }},
		{Head: "settled_at", Value: func(p book.Payment) sheet.Value { return sheet.Time(p.SettledAt) }},
		{Head: "tenant", Value: func(p book.Payment) sheet.Value { return sheet.String(p.Tenant) }},
		{Head: "kind", Value: func(p book.Payment) sheet.Value { return sheet.String(string(p.Kind)) }},
		{Head: "reference", Value: func(p book.Payment) sheet.Value { return sheet.String(v.referenceOf(p)) }},
		{Head: "ext_transaction_id", Value: func(p book.Payment) sheet.Value { return sheet.String(p.ProviderReference) }},
		{Head: "channel", Value: func(p book.Payment) sheet.Value { return sheet.String(p.Channel) }},
		{Head: "account", Value: func(p book.Payment) sheet.Value { return sheet.String(v.account(p.Account)) }},
		{Head: "account_name", Value: func(p book.Payment) sheet.Value { return sheet.String(v.accountName(p)) }},
		{Head: "amount", Value: func(p book.Payment) sheet.Value { return sheet.Amount(int64(p.Amount)) }},
		{Head: "charges", Value: func(p book.Payment) sheet.Value { return sheet.Amount(int64(p.Charges)) }},
		{Head: "currency", Value: func(book.Payment) sheet.Value { return sheet.String("GHS") }},
		{Head: "status", Value: func(p book.Payment) sheet.Value { return sheet.String(statusWord(p)) }},
		{Head: "reason", Value: func(p book.Payment) sheet.Value { return sheet.String(p.Reason) }},
		{Head: "id", Value: func(p book.Payment) sheet.Value { return sheet.String(p.ID) }},
	}
}

// accountName is the name of the other party, for those who may see it.
func (v *visit) accountName(p book.Payment) string {
	if !v.can(seeNumbers) {
		return ""
	}
	return p.AccountName
}

func statusWord(p book.Payment) string {
	if unknown(p) {
		return "unknown"
	}
	return p.Word()
}

// allPaymentsFile is the list of all tenants' payments as a file.
func allPaymentsFile(v *visit) (answer, error) {
	narrow, err := v.narrow()
	if err != nil {
		return answer{}, err
	}
	name := v.fileName("payments", narrow.Tenant, narrow.From, dayBefore(narrow.To))
	narrow.Limit = book.MaxPageSize
	first, err := v.console.Payments.Latest(v.ctx, narrow) // what is wrong with the filters is said on a page
	if err != nil {
		return answer{}, err
	}
	return v.paymentsFile(name, func(each func(book.Payment) error) error {
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
			if found, err = v.console.Payments.Latest(v.ctx, narrow); err != nil {
				return err
			}
		}
	})
}

// tenantPaymentsFile is a tenant's list as a file.
func tenantPaymentsFile(n int) func(*visit) (answer, error) {
	return func(v *visit) (answer, error) {
		f, err := v.historyFilter(tenantLists[n].kind)
		if err != nil {
			return answer{}, err
		}
		f.Size = 1
		if _, err := v.console.Payments.History(v.ctx, v.tenant.ID, f); err != nil { // said on a page, not in the file
			return answer{}, err
		}
		return v.paymentsFile(v.fileName(tenantLists[n].path[1:], "", f.From, f.To), func(each func(book.Payment) error) error {
			return v.console.Payments.Export(v.ctx, v.tenant.ID, f, each)
		})
	}
}

// byPage calls each for the rows of a list that goes on by key, newest first: read gives at most fileRows of those older than
// the one with the id before.
func byPage[T any](id func(T) string, read func(before string, limit int) ([]T, error), each func(T) error) error {
	for before := ""; ; {
		list, err := read(before, fileRows)
		if err != nil {
			return err
		}
		for _, one := range list {
			if err := each(one); err != nil {
				return err
			}
		}
		if len(list) < fileRows {
			return nil
		}
		before = id(list[fileRows-1])
	}
}

// fileRows is how many rows of a file are read at once.
const fileRows = 500

// auditFile is the audit log as a file, with the filters of its list.
func auditFile(v *visit) (answer, error) {
	f := v.auditFilter()
	return exported(v, v.fileName("audit", f.Tenant, time.Time{}, time.Time{}), auditColumns, func(each func(audit.Entry) error) error {
		return byPage(func(e audit.Entry) string { return e.ID }, func(before string, limit int) ([]audit.Entry, error) {
			f.Before, f.Limit = before, limit
			return v.console.Audit.List(v.ctx, f)
		}, each)
	}), nil
}

var auditColumns = []column[audit.Entry]{
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

// requestsFile is the list of refused requests as a file.
func requestsFile(v *visit) (answer, error) {
	f, err := v.requestFilter()
	if err != nil {
		return answer{}, err
	}
	return exported(v, v.fileName("requests", f.Tenant, time.Time{}, time.Time{}), requestColumns, func(each func(requestlog.Request) error) error {
		for {
			found, err := v.requests(f)
			if err != nil {
				return err
			}
			for _, r := range found.Requests {
				if err := each(r); err != nil {
					return err
				}
			}
			if found.More == "" {
				return nil
			}
			f.Before = found.More
		}
	}), nil
}

var requestColumns = []column[requestlog.Request]{
	{Head: "at", Value: func(r requestlog.Request) sheet.Value { return sheet.Time(r.At) }},
	{Head: "request_id", Value: func(r requestlog.Request) sheet.Value { return sheet.String(r.RequestID) }},
	{Head: "method", Value: func(r requestlog.Request) sheet.Value { return sheet.String(r.Method) }},
	{Head: "endpoint", Value: func(r requestlog.Request) sheet.Value { return sheet.String(r.Endpoint) }},
	{Head: "status", Value: func(r requestlog.Request) sheet.Value { return sheet.Integer(int64(r.Status)) }},
	{Head: "code", Value: func(r requestlog.Request) sheet.Value { return sheet.String(r.Code) }},
	{Head: "message", Value: func(r requestlog.Request) sheet.Value { return sheet.String(r.Message) }},
	{Head: "tenant", Value: func(r requestlog.Request) sheet.Value { return sheet.String(r.Tenant) }},
	{Head: "key", Value: func(r requestlog.Request) sheet.Value { return sheet.String(r.Key) }},
	{Head: "from", Value: func(r requestlog.Request) sheet.Value { return sheet.String(r.Origin) }},
}

// campaignsFile is the list of messages as a file: a tenant's, or all.
func campaignsFile(v *visit) (answer, error) {
	of := v.tenant.ID
	if v.route.Site == operators {
		var err error
		if of, err = v.tenantParam(); err != nil {
			return answer{}, err
		}
	}
	return exported(v, v.fileName("messages", of, time.Time{}, time.Time{}), messageColumns, func(each func(messaging.Campaign) error) error {
		return byPage(func(c messaging.Campaign) string { return c.ID }, func(before string, limit int) ([]messaging.Campaign, error) {
			return v.console.Messaging.Campaigns(v.ctx, of, before, limit)
		}, each)
	}), nil
}

var messageColumns = []column[messaging.Campaign]{
	{Head: "sent_at", Value: func(c messaging.Campaign) sheet.Value { return sheet.Time(c.CreatedAt) }},
	{Head: "tenant", Value: func(c messaging.Campaign) sheet.Value { return sheet.String(c.Tenant) }},
	{Head: "kind", Value: func(c messaging.Campaign) sheet.Value { return sheet.String(string(c.Kind)) }},
	{Head: "sender", Value: func(c messaging.Campaign) sheet.Value { return sheet.String(c.Sender) }},
	{Head: "recipients", Value: func(c messaging.Campaign) sheet.Value { return sheet.Integer(c.Recipients) }},
	{Head: "credits", Value: func(c messaging.Campaign) sheet.Value { return sheet.Integer(c.Cost()) }},
	{Head: "state", Value: func(c messaging.Campaign) sheet.Value { return sheet.String(string(c.Status)) }},
	{Head: "id", Value: func(c messaging.Campaign) sheet.Value { return sheet.String(c.ID) }},
}
