package records

import (
	"time"

	"github.com/a-h/templ"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
)

// Names returns the names of the accounts of payments.
func (ps *Pages) Names(v *console.Visit, list []book.Payment) (map[string]string, error) {
	return namesOf(ps, v, list, func(p book.Payment) string { return p.Tenant })
}

// namesOf returns the names of the accounts of rows, and reads each of them once.
func namesOf[T any](ps *Pages, v *console.Visit, list []T, account func(T) string) (map[string]string, error) {
	names := map[string]string{}
	for _, row := range list {
		id := account(row)
		if names[id] != "" {
			continue
		}
		t, err := ps.Tenants.Get(v.Ctx, id)
		if err != nil {
			return nil, err
		}
		names[id] = t.Name
	}
	return names, nil
}

// Columns returns the columns of payments as far as the visitor may see them: on the pages of a list, and in its files.
// Pages of lists of one kind have fee and net amount in the place of the kind. names has the names of accounts by id.
// It is nil for a list of one account.
func Columns(v *console.Visit, ofOneKind bool, names map[string]string) []console.Column[book.Payment] {
	type payment = book.Payment
	return []console.Column[payment]{
		console.Time("Accepted", "accepted_at", func(p payment) time.Time { return p.CreatedAt }).Laid(console.Under),
		console.Time("", "settled_at", func(p payment) time.Time { return p.SettledAt }),
		console.Coded("Account", "tenant", func(p payment) templ.Component { return page.Text(names[p.Tenant]) }, func(p payment) string { return p.Tenant }).
			OnPage(names != nil).Laid(console.Minor),
		console.Coded("Kind", "kind", func(p payment) templ.Component { return page.Text(words.KindWords[p.Kind]) }, func(p payment) string { return string(p.Kind) }).
			OnPage(!ofOneKind).Laid(console.Under),
		console.ID("Reference", "reference", func(p payment) string { return ReferenceOf(v, p) }).Laid(console.Link),
		console.Text("", "ext_transaction_id", func(p payment) string { return p.ProviderReference }),
		console.Coded("Channel", "channel", func(p payment) templ.Component { return page.Text(words.Channel(p.Channel)) }, func(p payment) string { return p.Channel }).Laid(console.Wide),
		console.Text("Number", "account", func(p payment) string { return Account(v, p.Account) }).Laid(console.Wide),
		console.Text("", "account_name", func(p payment) string { return accountName(v, p) }),
		console.Money("Amount", "amount", func(p payment) money.Pesewas { return p.Amount }),
		console.Money("Fee", "charges", func(p payment) money.Pesewas { return p.Charges }).OnPage(ofOneKind).Laid(console.Minor),
		console.Money("Net", "", net).OnPage(ofOneKind).Laid(console.Wide),
		console.Text("", "currency", func(payment) string { return "GHS" }),
		console.Coded("Status", "status", func(p payment) templ.Component { return page.Mark(words.BadgeOf(p)) }, statusWord),
		console.Text("", "reason", func(p payment) string { return p.Reason }),
		console.Text("", "id", func(p payment) string { return p.ID }),
	}
}

// net returns the effect of a payment on the wallet once it succeeds: an amount received, or paid with its fee.
func net(p book.Payment) money.Pesewas {
	switch {
	case p.Received():
		return p.Amount
	case p.Kind == book.KindCollection:
		return p.Net()
	}
	return -(p.Amount + p.Charges)
}

func statusWord(p book.Payment) string {
	if words.Unknown(p) {
		return "unknown"
	}
	return p.PublicStatus()
}

// Grid returns payments as a table, whose rows lead to the payments' pages.
func Grid(v *console.Visit, list []book.Payment, ofOneKind bool, names map[string]string) page.Grid {
	return console.Grid(Columns(v, ofOneKind, names), list, func(p book.Payment) string { return v.Base() + "/payments/" + p.ID })
}

// NoPayments explains a list without payments. A development server adds how to get sample data.
func NoPayments(v *console.Visit, text string) page.Empty {
	e := page.Empty{Title: "No payments yet", Text: text, Href: "/docs/quickstart", Do: "Read the quickstart"}
	if v.Development() {
		e.Text += " For sample data, run makola sample. It makes a data folder with 90 days of two accounts."
		e.Href, e.Do = "/sim", "Open the test phones"
	}
	return e
}

// PageByKey adds the links to the neighbours of a page of payments.
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
		l.Shown = page.Count(found.Scanned) + " payments searched; older ones remain"
	}
}
