package ops

import (
	"cmp"
	"fmt"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// Check is the result of the last check of one of the books.
type Check struct {
	Name   string
	At     time.Time // zero: not checked yet
	FullAt time.Time // of the last check of every row; zero: there was none yet
	Faults int64
}

// tenantColumns are the columns of the list of accounts.
var tenantColumns = []console.Column[tenant.Tenant]{
	console.Text("Name", "", func(t tenant.Tenant) string { return t.Name }).Laid(console.Link),
	console.Text("Mode", "", func(t tenant.Tenant) string { return words.Mode(t.Mode) }),
	console.Text("Collections", "", func(t tenant.Tenant) string { return words.OnOff(t.CollectionsEnabled) }).Laid(console.Minor),
	console.Shown("Status", func(t tenant.Tenant) templ.Component { return page.Mark(words.TenantBadge(t)) }),
	console.Time("Created", "", func(t tenant.Tenant) time.Time { return t.CreatedAt }).Laid(console.Under),
}

// tenantList lists the accounts.
func (ps *Pages) tenantList(v *console.Visit) (console.Answer, error) {
	list, err := ps.Tenants.List(v.Ctx, v.Param("after"), console.PageRows+1)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Accounts", Actions: v.Actions(roles.ChangeTenants, page.Link{Href: "/ops/tenants/new", Text: "Create account"}, page.Link{Href: "/ops/fees", Text: "Edit default fee plan"}),
		Empty: page.Empty{Title: "No accounts yet", Text: "Create one here, or on the command line: makola account create."}}
	list = console.Keyed(v, &l, "after", list, func(t tenant.Tenant) string { return t.ID })
	l.Grid = console.Grid(tenantColumns, list, func(t tenant.Tenant) string { return "/ops/tenants/" + t.ID })
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// tenantPage shows one account with its settings and balances.
func (ps *Pages) tenantPage(v *console.Visit) (console.Answer, error) {
	t, err := v.About()
	if err != nil {
		return console.Answer{}, err
	}
	facts := []page.Fact{{Name: "ID", Value: page.Copyable(t.ID)}, {Name: "Mode", Value: page.Text(words.Mode(t.Mode))}, {Name: "Status", Value: page.Mark(words.TenantBadge(t))},
		{Name: "Collections", Value: page.Text(words.OnOff(t.CollectionsEnabled))}, {Name: "Payouts", Value: page.Text(words.OnOff(!t.PayoutsStopped))},
		{Name: "Wallet payout limit", Value: page.Money(t.PayoutLimitWallet)}, {Name: "Bank payout limit", Value: page.Money(t.PayoutLimitBank)},
		{Name: "Collection fees", Value: page.Text("paid by the " + string(t.FeeBearer))}, {Name: "Duplicate references", Value: page.Text(string(t.Duplicates))},
		{Name: "E-mail for providers", Value: page.Text(cmp.Or(t.Email, "none"))}, {Name: "Payers' vouchers", Value: page.Text(words.OnOff(t.Voucher))},
		{Name: "Failed airtime", Value: page.Text("refunded to the " + string(t.RefundAirtime))},
		{Name: "IP allow-list applies to", Value: page.Text(string(t.Listed))}, {Name: "Created", Value: page.Time(t.CreatedAt)}}
	if v.Can(roles.ReadAccess) {
		ips, err := ps.Access.PayoutIPs(v.Ctx, t.ID)
		if err != nil {
			return console.Answer{}, err
		}
		for _, ip := range ips {
			facts = append(facts, page.Fact{Name: "Payout IP address", Value: page.ID(ip.String())})
		}
	}
	var balances []page.Fact
	if v.Can(roles.ReadBalances) {
		if balances, err = ps.Records.Balances(v, t); err != nil {
			return console.Answer{}, err
		}
	}
	waiting, err := ps.Approvals.WaitingFor(v, t)
	return console.Answer{Title: t.Name, Body: tenantView(v, t, facts, balances, waiting)}, err
}

// accountMenu returns the actions about an account that the visitor may request, by purpose.
func accountMenu(v *console.Visit, t tenant.Tenant) (groups []page.Group) {
	here := "/ops/tenants/" + t.ID
	add := func(title string, may roles.Permission, links ...page.Link) {
		if !v.Can(may) {
			return
		}
		if n := len(groups); n > 0 && groups[n-1].Title == title {
			groups[n-1].Links = append(groups[n-1].Links, links...)
			return
		}
		groups = append(groups, page.Group{Title: title, Links: links})
	}
	add("Wallet", roles.ReadBalances, page.Link{Href: here + "/statement", Text: "View statement"})
	add("Wallet", roles.ChangeMoney, page.Link{Href: here + "/fund", Text: "Fund wallet"}, page.Link{Href: here + "/adjust", Text: "Correct wallet balance"},
		page.Link{Href: here + "/transfer", Text: "Transfer to another wallet"}, page.Link{Href: here + "/recover", Text: "Recover debt"})
	add("SMS credits", roles.ChangeMoney, page.Link{Href: here + "/credits/sell", Text: "Sell SMS credits"}, page.Link{Href: here + "/credits/refund", Text: "Refund SMS credits"})
	add("Settings", roles.ReadAccess, page.Link{Href: here + "/access", Text: "View keys and settings"})
	add("Settings", roles.ChangeTenants, page.Link{Href: here + "/fees", Text: "Edit fee plan"})
	add("Access", roles.ViewAs, page.Link{Href: "/app/" + t.ID, Text: "View as account"})
	add("Access", roles.BlockTenants, page.Link{Href: here + "/block", Text: "Block or unblock account"})
	return groups
}

// providerLine is the status of one operation of one provider.
type providerLine struct {
	name                      string // of the provider in addresses; empty: it has no page
	mode, provider, operation string
	badge                     page.Badge
	until                     time.Time
	why                       string
	ill                       bool
}

// providers returns the status of all providers and binds.
func (ps *Pages) providers(v *console.Visit) (lines []providerLine, err error) {
	all, err := ps.Rails.List(v.Ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		line := providerLine{name: s.Provider, mode: s.Mode, provider: words.ProviderName(s.Provider), operation: words.OperationWord(string(s.Operation)), badge: words.Worded(words.BreakerBadges, s.Breaker), until: s.Until, why: s.Why}
		if line.ill = s.Breaker != "closed"; s.Paused != nil {
			line.badge, line.ill = page.Badge{Tone: page.Open, Word: "Paused"}, true
			line.why = s.Paused.Actor + ": " + s.Paused.Reason
		}
		lines = append(lines, line)
	}
	binds, err := ps.Messaging.Binds(v.Ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range binds {
		state := b.State(v.Now())
		lines = append(lines, providerLine{name: b.Name, mode: string(b.Mode), provider: words.ProviderName(b.Name), operation: "SMS", badge: words.Worded(words.BreakerBadges, state), why: b.Why, ill: state != messaging.BindUp})
	}
	if len(binds) == 0 {
		return lines, nil
	}
	receipts, err := ps.Messaging.UnmatchedReceipts(v.Ctx)
	if err != nil {
		return nil, err
	}
	state := receipts.State()
	return append(lines, providerLine{mode: string(binds[0].Mode), provider: "All binds", operation: "Delivery receipts", badge: words.Worded(words.BreakerBadges, state), why: receipts.Why(), ill: state != messaging.ReceiptsMatched}), nil
}

// providerColumns are the columns of the list of providers.
var providerColumns = []console.Column[providerLine]{
	console.Text("Provider", "", func(p providerLine) string { return p.provider }).Laid(console.Link),
	console.Text("Mode", "", func(p providerLine) string { return words.Mode(tenant.Mode(p.mode)) }).Laid(console.Minor),
	console.Text("Operation", "", func(p providerLine) string { return p.operation }),
	console.Shown("Status", func(p providerLine) templ.Component { return page.Mark(p.badge) }),
	console.Shown("Next attempt", func(p providerLine) templ.Component {
		if p.until.IsZero() {
			return templ.NopComponent
		}
		return page.Time(p.until)
	}).Laid(console.Minor),
	console.Text("Reason", "", func(p providerLine) string { return p.why }).Laid(console.Under),
}

// checkColumns are the columns of the list of checks.
var checkColumns = []console.Column[Check]{
	console.Text("Books", "", func(c Check) string { return words.CheckWords[c.Name] }),
	console.Shown("Result", func(c Check) templ.Component {
		switch {
		case c.At.IsZero():
			return page.Mark(page.Badge{Word: "Not checked yet"})
		case c.Faults > 0:
			return page.Mark(page.Badge{Tone: page.Bad, Word: faultCount(c.Faults)})
		}
		return page.Mark(page.Badge{Tone: page.Good, Word: "Balanced"})
	}),
	console.Time("Checked", "", func(c Check) time.Time { return c.At }).Laid(console.Under),
	console.Time("Every row checked", "", func(c Check) time.Time { return c.FullAt }).Laid(console.Under),
}

// faultCount returns a number of faults.
func faultCount(n int64) string {
	if n == 1 {
		return "1 fault"
	}
	return fmt.Sprintf("%d faults", n)
}

// checks lists the last checks of the books.
func (ps *Pages) checks(v *console.Visit) (console.Answer, error) {
	l := page.List{Title: "Ledger checks", Lead: "Results of this node's last check of each of the books. New rows are checked every ten minutes, every row each night. Run makola ledger check to check all of them now.", Grid: console.Grid(checkColumns, ps.Checks(), nil)}
	live, err := v.Part("checks", 5, page.Listing(l))
	return console.Answer{Title: l.Title, Body: live}, err
}
