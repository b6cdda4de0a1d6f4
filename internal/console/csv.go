package console

import (
	"encoding/csv"
	"errors"
	"net/http"
	"time"

	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
)

// How much an export gives.
const (
	exportWithin = 60 * time.Second
	exportMost   = 100_000 // rows
)

var csvHead = []string{"accepted_at", "settled_at", "tenant", "kind", "reference", "ext_transaction_id", "channel", "account", "account_name", "amount", "charges", "currency", "status", "reason", "id"}

// errEnough ends an export that is as long as it may be.
var errEnough = errors.New("console: enough rows")

// sheet writes payments as comma separated values that a spreadsheet may open.
type sheet struct {
	v    *visit
	out  *csv.Writer
	rows int
}

func (s *sheet) row(p book.Payment) error {
	settled := ""
	if !p.SettledAt.IsZero() {
		settled = p.SettledAt.UTC().Format(time.RFC3339)
	}
	name := p.AccountName
	if !s.v.can(seeNumbers) {
		name = ""
	}
	cells := []string{p.CreatedAt.UTC().Format(time.RFC3339), settled, p.Tenant, string(p.Kind), p.Reference, p.ProviderReference, p.Channel, s.v.account(p.Account), name,
		p.Amount.String(), p.Charges.String(), "GHS", p.Word(), p.Reason, p.ID}
	if unknown(p) {
		cells[12] = "unknown"
	}
	for i := range cells {
		cells[i] = page.Cell(page.Visible(cells[i]))
	}
	if s.rows++; s.rows > exportMost {
		return errEnough
	}
	return s.out.Write(cells)
}

// export is the answer of a file of payments.
func (v *visit) export(name string, all func(each func(book.Payment) error) error) answer {
	return answer{file: name + ".csv", write: func(w http.ResponseWriter) error {
		s := &sheet{v: v, out: csv.NewWriter(w)}
		_ = s.out.Write(csvHead) // Error says it below
		err := all(s.row)
		if errors.Is(err, errEnough) {
			err = s.out.Write([]string{"There are more rows: choose fewer days"})
		}
		s.out.Flush()
		return errors.Join(err, s.out.Error())
	}}
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
	return v.export("payments", func(each func(book.Payment) error) error {
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
		return v.export(tenantLists[n].path[1:], func(each func(book.Payment) error) error {
			return v.console.Payments.Export(v.ctx, v.tenant.ID, f, each)
		}), nil
	}
}
