package console

import (
	"encoding/csv"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
)

// How much an export gives.
const (
	exportWithin = 60 * time.Second
	exportMost   = 100_000 // rows
)

// errEnough ends an export that is as long as it may be.
var errEnough = errors.New("console: enough rows")

// row takes one row of a file, a cell for each name of its head.
type row func(cells ...string) error

// export is the answer of a file of comma separated values that a spreadsheet may open: no cell is taken for a formula,
// and hidden characters are shown.
func export(name string, head []string, all func(row) error) answer {
	return answer{file: name + ".csv", write: func(w http.ResponseWriter) error {
		out, rows := csv.NewWriter(w), 0
		_ = out.Write(head) // Error says it below
		err := all(func(cells ...string) error {
			if rows++; rows > exportMost {
				return errEnough
			}
			for i := range cells {
				cells[i] = page.Cell(page.Visible(cells[i]))
			}
			return out.Write(cells)
		})
		if errors.Is(err, errEnough) {
			err = out.Write([]string{"There are more rows: narrow the list by its filters"})
		}
		out.Flush()
		return errors.Join(err, out.Error())
	}}
}

// stamp is a time in a file; the zero time is empty.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

var paymentHead = []string{"accepted_at", "settled_at", "tenant", "kind", "reference", "ext_transaction_id", "channel", "account", "account_name", "amount", "charges", "currency", "status", "reason", "id"}

// paymentRow writes payments, as far as the visitor may see them.
func (v *visit) paymentRow(write row) func(book.Payment) error {
	return func(p book.Payment) error {
		name, status := p.AccountName, p.Word()
		if !v.can(seeNumbers) {
			name = ""
		}
		if unknown(p) {
			status = "unknown"
		}
		return write(stamp(p.CreatedAt), stamp(p.SettledAt), p.Tenant, string(p.Kind), v.referenceOf(p), p.ProviderReference, p.Channel, v.account(p.Account), name,
			p.Amount.String(), p.Charges.String(), "GHS", status, p.Reason, p.ID)
	}
}

// allPaymentsFile is the list of all tenants' payments as a file.
func allPaymentsFile(v *visit) (answer, error) {
	narrow, err := v.narrow()
	if err != nil {
		return answer{}, err
	}
	narrow.Limit = book.MaxPageSize
	first, err := v.console.Payments.Latest(v.ctx, narrow) // what is wrong with the filters is said on a page
	if err != nil {
		return answer{}, err
	}
	return export("payments", paymentHead, func(write row) error {
		each := v.paymentRow(write)
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
	}), nil
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
		return export(tenantLists[n].path[1:], paymentHead, func(write row) error {
			return v.console.Payments.Export(v.ctx, v.tenant.ID, f, v.paymentRow(write))
		}), nil
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
	head := []string{"at", "actor", "from", "action", "tenant", "subject", "changes", "reason", "link", "id"}
	return export("audit", head, func(write row) error {
		return byPage(func(e audit.Entry) string { return e.ID }, func(before string, limit int) ([]audit.Entry, error) {
			f.Before, f.Limit = before, limit
			return v.console.Audit.List(v.ctx, f)
		}, func(e audit.Entry) error {
			link := ""
			if e.Link > 0 {
				link = strconv.FormatInt(e.Link, 10)
			}
			return write(stamp(e.At), e.Actor, e.Origin, e.Action, e.Tenant, e.Subject, changeTexts(e), e.Reason, link, e.ID)
		})
	}), nil
}

// requestsFile is the list of refused requests as a file.
func requestsFile(v *visit) (answer, error) {
	f, err := v.requestFilter()
	if err != nil {
		return answer{}, err
	}
	head := []string{"at", "request_id", "method", "endpoint", "status", "code", "message", "tenant", "key", "from"}
	return export("requests", head, func(write row) error {
		for {
			found, err := v.requests(f)
			if err != nil {
				return err
			}
			for _, r := range found.Requests {
				if err := write(stamp(r.At), r.RequestID, r.Method, r.Endpoint, strconv.Itoa(r.Status), r.Code, r.Message, r.Tenant, r.Key, r.Origin); err != nil {
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

// campaignsFile is the list of messages as a file: a tenant's, or all.
func campaignsFile(v *visit) (answer, error) {
	of := v.tenant.ID
	if v.route.Site == operators {
		var err error
		if of, err = v.tenantParam(); err != nil {
			return answer{}, err
		}
	}
	head := []string{"sent_at", "tenant", "kind", "sender", "recipients", "credits", "state", "id"}
	return export("messages", head, func(write row) error {
		return byPage(func(c messaging.Campaign) string { return c.ID }, func(before string, limit int) ([]messaging.Campaign, error) {
			return v.console.Messaging.Campaigns(v.ctx, of, before, limit)
		}, func(c messaging.Campaign) error {
			return write(stamp(c.CreatedAt), c.Tenant, string(c.Kind), c.Sender, strconv.FormatInt(c.Recipients, 10), strconv.FormatInt(c.Cost(), 10), string(c.Status), c.ID)
		})
	}), nil
}
