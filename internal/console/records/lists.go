package records

import (
	"strconv"

	"github.com/a-h/templ"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
)

// Names are those of the tenants of payments, each looked up once.
func (ps *Pages) Names(v *console.Visit, list []book.Payment) (map[string]string, error) {
	names := map[string]string{}
	for _, p := range list {
		if names[p.Tenant] != "" {
			continue
		}
		t, err := ps.Tenants.Get(v.Ctx, p.Tenant)
		if err != nil {
			return nil, err
		}
		names[p.Tenant] = t.Name
	}
	return names, nil
}

// Further columns of a list of payments.
const (
	OfOneKind    = iota
	OfOneAccount // its kind
	OfAll        // its kind, and whose it is
)

// Rows are payments as rows of a table. The names are those of the accounts of a list of all.
func Rows(v *console.Visit, list []book.Payment, base string, of int, names map[string]string) []page.Row {
	rows := make([]page.Row, len(list))
	for i, p := range list {
		cells := []templ.Component{page.ID(ReferenceOf(v, p))}
		if of == OfAll {
			cells = append(cells, page.Text(names[p.Tenant]))
		}
		if of != OfOneKind {
			cells = append(cells, page.Text(words.KindWords[p.Kind]))
		}
		cells = append(cells, page.Text(p.Channel), page.Text(Account(v, p.Account)), page.Money(p.Amount), page.Mark(words.BadgeOf(p)), page.Minute(p.CreatedAt))
		rows[i] = page.Row{Href: base + p.ID, Cells: cells}
	}
	return rows
}

// Columns are the columns of rowsOf.
func Columns(of int) []page.Column {
	columns := []page.Column{{Name: "Reference"}}
	if of == OfAll {
		columns = append(columns, page.Column{Name: "Account", Minor: true})
	}
	if of != OfOneKind {
		columns = append(columns, page.Column{Name: "Kind", Minor: true})
	}
	return append(columns, page.Column{Name: "Channel", Wide: true}, page.Column{Name: "Number", Wide: true}, page.Column{Name: "Amount", Right: true},
		page.Column{Name: "State"}, page.Column{Name: "Accepted", Minor: true})
}

// NoPayments is the place where the first payment will be. A development server says how there will be many.
func NoPayments(v *console.Visit, text string) page.Empty {
	e := page.Empty{Title: "No payments yet", Text: text, Href: "/docs/quickstart", Do: "Read how"}
	if v.Development() {
		e.Text += " To see full pages, run makola sample: it makes a data folder with 90 days of two accounts."
		e.Href, e.Do = "/sim", "Make one with the handsets"
	}
	return e
}

// PageByKey adds the links of a list that goes on by key.
func PageByKey(v *console.Visit, l *page.List, found book.Found) {
	if v.Param("before") != "" {
		l.Prev = v.Query("before", "")
	}
	switch {
	case found.More == "":
	case len(found.Payments) == console.PageRows:
		l.Next = v.Query("before", found.More)
	default:
		l.Further = v.Query("before", found.More)
		l.Shown = money.Grouped(strconv.Itoa(found.Looked)) + " payments were looked at; there are older ones"
	}
}
