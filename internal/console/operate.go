package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
)

// Check is what the last check of one of the books found.
type Check struct {
	Name   string
	At     time.Time // zero: not yet
	Faults int64
}

// overview is the first page of the installation: what needs somebody.
func overview(v *visit) (answer, error) {
	o := overviewOf{}
	var err error
	if v.can(identity.ReadPayments) {
		if o.stuck, err = v.console.Payments.Stuck(v.ctx); err != nil {
			return answer{}, err
		}
		found, err := v.console.Payments.Latest(v.ctx, book.Narrow{Limit: 8})
		if err != nil {
			return answer{}, err
		}
		names, err := v.names(found.Payments)
		if err != nil {
			return answer{}, err
		}
		o.latest = v.rowsOf(found.Payments, "/ops/payments/", ofAll, names)
	}
	if o.providers, err = v.providers(); err != nil {
		return answer{}, err
	}
	o.checks = v.console.Checks()
	if o.forYou, o.byYou, err = v.waitingActs(); err != nil {
		return answer{}, err
	}
	live, err := v.part("overview", 5, overviewPage(v, o))
	return answer{title: "Overview", body: live}, err
}

// overviewOf is what the overview shows.
type overviewOf struct {
	stuck     []book.Payment
	latest    []page.Row
	providers []providerLine
	checks    []Check
	forYou    []page.Row // acts that wait for the visitor's check
	byYou     []page.Row // the visitor's own that wait
}

// sum is what the stuck payments are worth.
func (o overviewOf) sum() money.Pesewas {
	var sum money.Pesewas
	for _, p := range o.stuck {
		sum += p.Amount
	}
	return sum
}

// ill counts the providers that are paused or failing.
func (o overviewOf) ill() (n int) {
	for _, p := range o.providers {
		if p.ill {
			n++
		}
	}
	return n
}

// faults sums up what the last checks found.
func (o overviewOf) faults() (n int64) {
	for _, c := range o.checks {
		n += c.Faults
	}
	return n
}

// stuck lists the payments that operators were called for, longest first.
func stuck(v *visit) (answer, error) {
	list, err := v.console.Payments.Stuck(v.ctx)
	if err != nil {
		return answer{}, err
	}
	names, err := v.names(list)
	if err != nil {
		return answer{}, err
	}
	l := page.List{Title: "Stuck", Lead: "Open payments whose outcome is still unknown, longest first. Their money is held; do not pay again.",
		Count: strconv.Itoa(len(list)), Columns: columnsOf(ofAll), Rows: v.rowsOf(list, "/ops/payments/", ofAll, names)}
	l.Empty = page.Empty{Title: "Nothing is stuck", Text: "Every payment is settled, or its provider still has time."}
	live, err := v.part("stuck", 5, page.Listing(l))
	return answer{title: "Stuck", body: live}, err
}

// tenantList lists the tenants.
func tenantList(v *visit) (answer, error) {
	list, err := v.console.Tenants.List(v.ctx, v.param("after"), pageRows+1)
	if err != nil {
		return answer{}, err
	}
	l := page.List{Title: "Accounts", Actions: v.actions(identity.MakeTenants, page.Link{Href: "/ops/tenants/new", Text: "Make an account"}, page.Link{Href: "/ops/fees", Text: "The default fee plan"}), Columns: []page.Column{{Name: "Name"}, {Name: "Mode"}, {Name: "Collections", Minor: true}, {Name: "State"}, {Name: "Made", Minor: true}},
		Empty: page.Empty{Title: "No accounts yet", Text: "Make one here, or on the command line: makola tenant create."}}
	if len(list) > pageRows {
		list = list[:pageRows]
		l.Next = v.query("after", list[pageRows-1].ID)
	}
	if v.param("after") != "" {
		l.Prev = v.query("after", "")
	}
	for _, t := range list {
		l.Rows = append(l.Rows, page.Row{Href: "/ops/tenants/" + t.ID, Cells: []templ.Component{
			page.Text(t.Name), page.Text(string(t.Mode)), page.Text(onOff(t.CollectionsEnabled)), page.Mark(tenantBadge(t)), page.Time(t.CreatedAt)}})
	}
	return answer{title: l.Title, body: page.Listing(l)}, nil
}

// actions are links that a permission shows.
func (v *visit) actions(p identity.Permission, links ...page.Link) []page.Link {
	if !v.can(p) || v.viewing {
		return nil
	}
	return links
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func tenantBadge(t tenant.Tenant) page.Badge {
	switch {
	case t.Blocked:
		return page.Badge{Tone: page.Bad, Word: "Blocked"}
	case t.PayoutsStopped:
		return page.Badge{Tone: page.Open, Word: "Payouts stopped"}
	}
	return page.Badge{Tone: page.Good, Word: "Active"}
}

// tenantPage is one tenant with its settings and balances.
func tenantPage(v *visit) (answer, error) {
	t, err := v.about()
	if err != nil {
		return answer{}, err
	}
	facts := []page.Fact{{Name: "Id", Value: page.Copyable(t.ID)}, {Name: "Mode", Value: page.Text(string(t.Mode))}, {Name: "State", Value: page.Mark(tenantBadge(t))},
		{Name: "Collections", Value: page.Text(onOff(t.CollectionsEnabled))}, {Name: "Payouts", Value: page.Text(onOff(!t.PayoutsStopped))},
		{Name: "Limit of a payout to a wallet", Value: page.Money(t.PayoutLimitWallet)}, {Name: "Limit of a payout to a bank", Value: page.Money(t.PayoutLimitBank)},
		{Name: "Fees of collections", Value: page.Text("borne by the " + string(t.FeeBearer))}, {Name: "Duplicate references", Value: page.Text(string(t.Duplicates))},
		{Name: "Addresses are asked for", Value: page.Text(string(t.Listed))}, {Name: "Made", Value: page.Time(t.CreatedAt)}}
	if v.can(identity.ReadAccess) {
		ips, err := v.console.Access.PayoutIPs(v.ctx, t.ID)
		if err != nil {
			return answer{}, err
		}
		for _, ip := range ips {
			facts = append(facts, page.Fact{Name: "Payouts from", Value: page.ID(ip.String())})
		}
	}
	var balances []page.Fact
	if v.can(identity.ReadBalances) {
		if balances, err = v.balances(t); err != nil {
			return answer{}, err
		}
	}
	waiting, err := v.waitingFor(t)
	return answer{title: t.Name, body: tenantView(v, t, facts, balances, waiting)}, err
}

// balances are a tenant's money and credits.
func (v *visit) balances(t tenant.Tenant) ([]page.Fact, error) {
	wallet, err := v.console.Ledger.Balance(v.ctx, t.Wallet())
	if err != nil {
		return nil, err
	}
	credits, err := v.console.Ledger.Balance(v.ctx, t.SMSCredits())
	if err != nil {
		return nil, err
	}
	owed, err := v.owed(t)
	facts := []page.Fact{{Name: "Wallet", Value: page.Money(money.Pesewas(wallet))}, {Name: "SMS credits", Value: page.Text(money.Grouped(strconv.FormatInt(credits, 10)))}}
	if owed > 0 {
		facts = append(facts, page.Fact{Name: "Owes since a reversal", Value: page.Money(owed)})
	}
	return facts, err
}

// tenantHome is the first page of a tenant.
func tenantHome(v *visit) (answer, error) {
	var balances []page.Fact
	var err error
	if v.can(identity.ReadBalances) {
		if balances, err = v.balances(v.tenant); err != nil {
			return answer{}, err
		}
	}
	var latest []page.Row
	if v.can(identity.ReadPayments) {
		if latest, err = v.latestOfTenant(); err != nil {
			return answer{}, err
		}
	}
	forYou, byYou, err := v.waitingActs()
	if err != nil {
		return answer{}, err
	}
	live, err := v.part("home", 5, homePage(v, balances, forYou, byYou, latest))
	return answer{title: v.tenant.Name, body: live}, err
}

// latestOfTenant are the newest payments of the tenant, of all kinds.
func (v *visit) latestOfTenant() ([]page.Row, error) {
	var all []book.Payment
	for _, kind := range tenantLists {
		found, err := v.console.Payments.History(v.ctx, v.tenant.ID, book.Filter{Kind: kind.kind, Size: 10})
		if err != nil {
			return nil, err
		}
		all = append(all, found.Rows...)
	}
	slices.SortFunc(all, func(a, b book.Payment) int { return cmp.Compare(b.ID, a.ID) })
	return v.rowsOf(all[:min(len(all), 10)], "/app/"+v.tenant.ID+"/payments/", ofOneAccount, nil), nil
}

// providerLine is how one provider does one operation.
type providerLine struct {
	mode, provider, operation string
	badge                     page.Badge
	until                     time.Time
	why                       string
	ill                       bool
}

// providers are all providers and binds with their states.
func (v *visit) providers() (lines []providerLine, err error) {
	all, err := v.console.Routes.List(v.ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		line := providerLine{mode: s.Mode, provider: providerName(s.Provider), operation: operationWord(string(s.Operation)), badge: worded(breakerBadges, s.Breaker), until: s.Until, why: s.Why}
		if line.ill = s.Breaker != "closed"; s.Paused != nil {
			line.badge, line.ill = page.Badge{Tone: page.Open, Word: "Paused"}, true
			line.why = s.Paused.Actor + ": " + s.Paused.Reason
		}
		lines = append(lines, line)
	}
	binds, err := v.console.Messaging.Binds(v.ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range binds {
		state := b.State(v.console.Clock.Now())
		lines = append(lines, providerLine{mode: string(b.Mode), provider: b.Name, operation: "SMS", badge: worded(breakerBadges, state), why: b.Why, ill: state != messaging.BindUp})
	}
	if len(binds) == 0 {
		return lines, nil
	}
	receipts, err := v.console.Messaging.UnmatchedReceipts(v.ctx)
	if err != nil {
		return nil, err
	}
	state := receipts.State()
	return append(lines, providerLine{mode: string(binds[0].Mode), provider: "All binds", operation: "SMS receipts", badge: worded(breakerBadges, state), why: receipts.Why(), ill: state != messaging.ReceiptsMatched}), nil
}

// providerList lists the providers.
func providerList(v *visit) (answer, error) {
	lines, err := v.providers()
	if err != nil {
		return answer{}, err
	}
	l := page.List{Title: "Providers", Actions: v.actions(identity.SwitchProviders, page.Link{Href: "/ops/providers/pause", Text: "Pause"}, page.Link{Href: "/ops/providers/resume", Text: "Let go on"}), Lead: "What each provider does for us, and whether it is given work now.",
		Columns: []page.Column{{Name: "Provider"}, {Name: "Money", Minor: true}, {Name: "Operation"}, {Name: "State"}, {Name: "Until", Minor: true}, {Name: "Why", Minor: true}},
		Empty:   page.Empty{Title: "No providers", Text: "No account with a provider is configured."}}
	for _, p := range lines {
		var until templ.Component = templ.NopComponent
		if !p.until.IsZero() {
			until = page.Time(p.until)
		}
		l.Rows = append(l.Rows, page.Row{Cells: []templ.Component{page.Text(p.provider), page.Text(p.mode), page.Text(p.operation), page.Mark(p.badge), until, page.Text(p.why)}})
	}
	live, err := v.part("providers", 5, page.Listing(l))
	return answer{title: l.Title, body: live}, err
}

// floats is what we hold at providers, by our own ledger.
func floats(v *visit) (answer, error) {
	l := page.List{Title: "Float", Actions: v.actions(identity.MakeTreasury, page.Link{Href: "/ops/float/add", Text: "Book money"}), Lead: "What the ledger says that each account at a provider holds for us. Unassigned is money that was booked without an account.",
		Columns: []page.Column{{Name: "Provider"}, {Name: "Account"}, {Name: "Money"}, {Name: "Held", Right: true}},
		Empty:   page.Empty{Title: "No providers", Text: "No account with a provider is configured."}}
	for _, r := range v.console.Routes.Rails() {
		held, err := v.console.Payments.Floats(v.ctx, r.Name, r.Mode)
		if err != nil {
			return answer{}, err
		}
		for _, account := range append(provider.AccountNames(), "") {
			amount, used := held[account]
			if used || slices.Contains(r.Accounts.Names(), account) {
				l.Rows = append(l.Rows, page.Row{Cells: []templ.Component{page.Text(providerName(r.Name)), page.Text(cmp.Or(account, "unassigned")), page.Text(r.Mode), page.Money(amount)}})
			}
		}
	}
	live, err := v.part("float", 5, page.Listing(l))
	return answer{title: l.Title, body: live}, err
}

// checks says when the books were checked last.
func checks(v *visit) (answer, error) {
	l := page.List{Title: "Checks", Lead: "What this node's last check of each book found. makola ledger check makes all of them now.",
		Columns: []page.Column{{Name: "Book"}, {Name: "Result"}, {Name: "Checked"}}}
	for _, c := range v.console.Checks() {
		badge := page.Badge{Tone: page.Good, Word: "Adds up"}
		switch {
		case c.At.IsZero():
			badge = page.Badge{Word: "Not checked yet"}
		case c.Faults > 0:
			badge = page.Badge{Tone: page.Bad, Word: fmt.Sprintf("%d faults", c.Faults)}
		}
		l.Rows = append(l.Rows, page.Row{Cells: []templ.Component{page.Text(checkWords[c.Name]), page.Mark(badge), page.Time(c.At)}})
	}
	live, err := v.part("checks", 5, page.Listing(l))
	return answer{title: l.Title, body: live}, err
}
