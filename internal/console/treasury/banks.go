package treasury

import (
	"net/url"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

// bankLine is a bank account with its balance in the books.
type bankLine struct {
	treasury.Bank
	held money.Pesewas
}

// bankColumns are the columns of the list of bank accounts.
var bankColumns = []console.Column[bankLine]{
	console.Text("Name", "", func(b bankLine) string { return b.Name }),
	console.Text("Bank", "", func(b bankLine) string { return b.Bank.Bank }),
	console.Text("Number", "", func(b bankLine) string { return b.Ending() }).Laid(console.Under),
	console.Text("Money", "", func(b bankLine) string { return words.Mode(b.Mode) }).Laid(console.Minor),
	console.Shown("Status", func(b bankLine) templ.Component {
		if b.Closed {
			return page.Mark(page.Badge{Word: "Closed"})
		}
		return page.Mark(page.Badge{Tone: page.Good, Word: "Open"})
	}),
	console.Text("Opening entry", "", func(b bankLine) string {
		if !b.Opened {
			return "none"
		}
		return b.Key().Asset.Text(int64(b.Opening))
	}).Laid(console.Minor),
	console.Money("Balance", "", func(b bankLine) money.Pesewas { return b.held }),
}

// transferColumns are the columns of the lists of our own transfers.
var transferColumns = []console.Column[treasury.Transit]{
	console.Time("Sent", "", func(m treasury.Transit) time.Time { return m.SentAt }),
	console.Text("From", "", func(m treasury.Transit) string { return words.AccountWord(m.Source) }),
	console.Text("To", "", func(m treasury.Transit) string { return words.AccountWord(m.Target) }),
	console.Text("Reference", "", func(m treasury.Transit) string { return m.Reference }).Laid(console.Under),
	console.Text("Money", "", func(m treasury.Transit) string {
		if m.Asset == ledger.GHS {
			return words.Mode(tenant.Live)
		}
		return words.Mode(tenant.Test)
	}).Laid(console.Minor),
	console.Shown("Status", func(m treasury.Transit) templ.Component {
		switch m.State {
		case treasury.Arrived:
			return page.Mark(page.Badge{Tone: page.Good, Word: "Arrived"})
		case treasury.Returned:
			return page.Mark(page.Badge{Tone: page.Bad, Word: "Returned"})
		}
		return page.Mark(page.Badge{Tone: page.Open, Word: "In transit"})
	}),
	console.Money("Fee", "", func(m treasury.Transit) money.Pesewas { return m.Fee }).Laid(console.Minor),
	console.Money("Amount", "", func(m treasury.Transit) money.Pesewas { return m.Amount }),
}

// banks lists the bank accounts of the company with their balances, and the money in transit.
func (ps *Pages) banks(v *console.Visit) (console.Answer, error) {
	list, err := ps.Treasury.Banks(v.Ctx)
	if err != nil {
		return console.Answer{}, err
	}
	lines := make([]bankLine, len(list))
	for i, b := range list {
		balance, err := ps.Ledger.Balance(v.Ctx, b.Key())
		if err != nil {
			return console.Answer{}, err
		}
		lines[i] = bankLine{b, money.Pesewas(-balance)}
	}
	l := page.List{Title: "Bank accounts", Lead: "Bank accounts of the company, with their balances by our ledger.", Grid: console.Grid(bankColumns, lines, nil),
		Actions: v.Actions(roles.ChangeTreasury, page.Link{Href: "/ops/banks/add", Text: "Add bank account"}, page.Link{Href: "/ops/banks/open", Text: "Book opening balances"},
			page.Link{Href: "/ops/banks/top-up", Text: "Top up float"}, page.Link{Href: "/ops/banks/settle", Text: "Settle to bank"}, page.Link{Href: "/ops/banks/sweep", Text: "Sweep fees"},
			page.Link{Href: "/ops/banks/close", Text: "Close bank account"}),
		Empty: page.Empty{Title: "No bank accounts", Text: "Deposits are booked without a bank account until you add one."}}
	waiting, err := ps.Treasury.OnTheWay(v.Ctx)
	if err != nil {
		return console.Answer{}, err
	}
	var href func(treasury.Transit) string
	if v.Can(roles.ChangeTreasury) {
		href = func(m treasury.Transit) string {
			return "/ops/banks/arrived?" + url.Values{"transfer": {m.ID}}.Encode()
		}
	}
	unassigned, err := ps.unassigned(v)
	if err != nil {
		return console.Answer{}, err
	}
	return console.Answer{Title: l.Title, Body: banksPage(l, console.Grid(transferColumns, waiting, href), unassigned)}, nil
}

// transferOptions returns the options of money in transit. The transfer in the address is always included, even if it has ended.
func (ps *Pages) transferOptions(v *console.Visit) ([]page.Option, error) {
	waiting, err := ps.Treasury.OnTheWay(v.Ctx)
	options := []page.Option{{Text: "Choose a transfer"}}
	for _, m := range waiting {
		text := m.Asset.Text(int64(m.Amount)) + " from " + words.AccountWord(m.Source) + " to " + words.AccountWord(m.Target) + ", sent " + m.SentAt.Format("2 Jan 2006")
		options = append(options, page.Option{Value: m.ID, Text: text})
	}
	return console.WithGiven(options, v.Given("transfer", ""), "A transfer that has ended"), err
}

// unassigned returns the money that was booked without a bank account.
func (ps *Pages) unassigned(v *console.Visit) (facts []page.Fact, err error) {
	for _, m := range []tenant.Mode{tenant.Live, tenant.Test} {
		key := ledger.Key{Asset: tenant.Tenant{Mode: m}.Money(), ID: ledger.Funding}
		balance, err := ps.Ledger.Balance(v.Ctx, key)
		if err != nil {
			return nil, err
		}
		if balance != 0 || m == tenant.Live {
			facts = append(facts, page.Fact{Name: words.Mode(m), Value: page.Money(money.Pesewas(-balance))})
		}
	}
	return facts, nil
}

// transfers lists our own transfers, newest first.
func (ps *Pages) transfers(v *console.Visit) (console.Answer, error) {
	list, err := ps.Treasury.Transits(v.Ctx, v.Param("before"), console.PageRows+1)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Own transfers", Lead: "Transfers of our own money between bank accounts and floats, newest first.",
		Empty: page.Empty{Title: "No transfers", Text: "Top-ups of floats and settlements to bank accounts appear here."}}
	list = console.Keyed(v, &l, "before", list, func(m treasury.Transit) string { return m.ID })
	l.Grid = console.Grid(transferColumns, list, nil)
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// bankOptions lists the open bank accounts.
func (ps *Pages) bankOptions(v *console.Visit) ([]page.Option, error) {
	list, err := ps.Treasury.Banks(v.Ctx)
	options := []page.Option{{Text: "Choose"}}
	for _, b := range list {
		if !b.Closed {
			options = append(options, page.Option{Value: b.Name, Text: b.String()})
		}
	}
	return options, err
}

// providerOptions lists the providers.
func (ps *Pages) providerOptions(*console.Visit) (options []page.Option, _ error) {
	seen := map[string]bool{}
	for _, r := range ps.Rails.Rails() {
		if !seen[r.Name] {
			seen[r.Name] = true
			options = append(options, page.Option{Value: r.Name, Text: words.ProviderName(r.Name)})
		}
	}
	return options, nil
}

// accountOptions lists the accounts at providers.
func accountOptions(*console.Visit) ([]page.Option, error) {
	return []page.Option{{Value: provider.AccountDisbursement, Text: "Disbursement: payouts"}, {Value: provider.AccountCollection, Text: "Collection"},
		{Value: provider.AccountServices, Text: "Services: airtime and data"}, {Value: "", Text: "Unassigned"}}, nil
}
