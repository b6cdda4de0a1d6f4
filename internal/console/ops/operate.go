package ops

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/records"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/roles"
)

// Check is what the last check of one of the books found.
type Check struct {
	Name   string
	At     time.Time // zero: not yet
	Faults int64
}

// overview is the first page of the installation: what needs somebody.
func (ps *Pages) overview(v *console.Visit) (console.Answer, error) {
	o := overviewOf{}
	var err error
	if v.Can(roles.ReadPayments) {
		if o.stuck, err = ps.Payments.Stuck(v.Ctx); err != nil {
			return console.Answer{}, err
		}
		found, err := ps.Payments.Latest(v.Ctx, book.Narrow{Limit: 8})
		if err != nil {
			return console.Answer{}, err
		}
		names, err := ps.Records.Names(v, found.Payments)
		if err != nil {
			return console.Answer{}, err
		}
		o.latest = records.Rows(v, found.Payments, "/ops/payments/", records.OfAll, names)
	}
	if o.providers, err = ps.providers(v); err != nil {
		return console.Answer{}, err
	}
	o.checks = ps.Checks()
	if o.forYou, o.byYou, err = ps.Approvals.Waiting(v); err != nil {
		return console.Answer{}, err
	}
	live, err := v.Part("overview", 5, overviewPage(v, o))
	return console.Answer{Title: "Overview", Body: live}, err
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
func (ps *Pages) stuck(v *console.Visit) (console.Answer, error) {
	list, err := ps.Payments.Stuck(v.Ctx)
	if err != nil {
		return console.Answer{}, err
	}
	names, err := ps.Records.Names(v, list)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Stuck", Lead: "Open payments whose outcome is still unknown, longest first. Their money is held; do not pay again.",
		Count: strconv.Itoa(len(list)), Columns: records.Columns(records.OfAll), Rows: records.Rows(v, list, "/ops/payments/", records.OfAll, names)}
	l.Empty = page.Empty{Title: "Nothing is stuck", Text: "Every payment is settled, or its provider still has time."}
	live, err := v.Part("stuck", 5, page.Listing(l))
	return console.Answer{Title: "Stuck", Body: live}, err
}

// tenantList lists the tenants.
func (ps *Pages) tenantList(v *console.Visit) (console.Answer, error) {
	list, err := ps.Tenants.List(v.Ctx, v.Param("after"), console.PageRows+1)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Accounts", Actions: v.Actions(roles.ChangeTenants, page.Link{Href: "/ops/tenants/new", Text: "Make an account"}, page.Link{Href: "/ops/fees", Text: "The default fee plan"}), Columns: []page.Column{{Name: "Name"}, {Name: "Mode"}, {Name: "Collections", Minor: true}, {Name: "State"}, {Name: "Made", Minor: true}},
		Empty: page.Empty{Title: "No accounts yet", Text: "Make one here, or on the command line: makola tenant create."}}
	if len(list) > console.PageRows {
		list = list[:console.PageRows]
		l.Next = v.Query("after", list[console.PageRows-1].ID)
	}
	if v.Param("after") != "" {
		l.Prev = v.Query("after", "")
	}
	for _, t := range list {
		l.Rows = append(l.Rows, page.Row{Href: "/ops/tenants/" + t.ID, Cells: []templ.Component{
			page.Text(t.Name), page.Text(string(t.Mode)), page.Text(words.OnOff(t.CollectionsEnabled)), page.Mark(words.TenantBadge(t)), page.Time(t.CreatedAt)}})
	}
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// tenantPage is one tenant with its settings and balances.
func (ps *Pages) tenantPage(v *console.Visit) (console.Answer, error) {
	t, err := v.About()
	if err != nil {
		return console.Answer{}, err
	}
	facts := []page.Fact{{Name: "Id", Value: page.Copyable(t.ID)}, {Name: "Mode", Value: page.Text(string(t.Mode))}, {Name: "State", Value: page.Mark(words.TenantBadge(t))},
		{Name: "Collections", Value: page.Text(words.OnOff(t.CollectionsEnabled))}, {Name: "Payouts", Value: page.Text(words.OnOff(!t.PayoutsStopped))},
		{Name: "Limit of a payout to a wallet", Value: page.Money(t.PayoutLimitWallet)}, {Name: "Limit of a payout to a bank", Value: page.Money(t.PayoutLimitBank)},
		{Name: "Fees of collections", Value: page.Text("borne by the " + string(t.FeeBearer))}, {Name: "Duplicate references", Value: page.Text(string(t.Duplicates))},
		{Name: "Addresses are asked for", Value: page.Text(string(t.Listed))}, {Name: "Made", Value: page.Time(t.CreatedAt)}}
	if v.Can(roles.ReadAccess) {
		ips, err := ps.Access.PayoutIPs(v.Ctx, t.ID)
		if err != nil {
			return console.Answer{}, err
		}
		for _, ip := range ips {
			facts = append(facts, page.Fact{Name: "Payouts from", Value: page.ID(ip.String())})
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

// providerLine is how one provider does one operation.
type providerLine struct {
	mode, provider, operation string
	badge                     page.Badge
	until                     time.Time
	why                       string
	ill                       bool
}

// providers are all providers and binds with their states.
func (ps *Pages) providers(v *console.Visit) (lines []providerLine, err error) {
	all, err := ps.Rails.List(v.Ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		line := providerLine{mode: s.Mode, provider: words.ProviderName(s.Provider), operation: words.OperationWord(string(s.Operation)), badge: words.Worded(words.BreakerBadges, s.Breaker), until: s.Until, why: s.Why}
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
		lines = append(lines, providerLine{mode: string(b.Mode), provider: b.Name, operation: "SMS", badge: words.Worded(words.BreakerBadges, state), why: b.Why, ill: state != messaging.BindUp})
	}
	if len(binds) == 0 {
		return lines, nil
	}
	receipts, err := ps.Messaging.UnmatchedReceipts(v.Ctx)
	if err != nil {
		return nil, err
	}
	state := receipts.State()
	return append(lines, providerLine{mode: string(binds[0].Mode), provider: "All binds", operation: "SMS receipts", badge: words.Worded(words.BreakerBadges, state), why: receipts.Why(), ill: state != messaging.ReceiptsMatched}), nil
}

// providerList lists the providers.
func (ps *Pages) providerList(v *console.Visit) (console.Answer, error) {
	lines, err := ps.providers(v)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Providers", Actions: v.Actions(roles.SwitchProviders, page.Link{Href: "/ops/providers/pause", Text: "Pause"}, page.Link{Href: "/ops/providers/resume", Text: "Let go on"}), Lead: "What each provider does for us, and whether it is given work now.",
		Columns: []page.Column{{Name: "Provider"}, {Name: "Money", Minor: true}, {Name: "Operation"}, {Name: "State"}, {Name: "Until", Minor: true}, {Name: "Why", Minor: true}},
		Empty:   page.Empty{Title: "No providers", Text: "No account with a provider is configured."}}
	for _, p := range lines {
		var until templ.Component = templ.NopComponent
		if !p.until.IsZero() {
			until = page.Time(p.until)
		}
		l.Rows = append(l.Rows, page.Row{Cells: []templ.Component{page.Text(p.provider), page.Text(p.mode), page.Text(p.operation), page.Mark(p.badge), until, page.Text(p.why)}})
	}
	live, err := v.Part("providers", 5, page.Listing(l))
	return console.Answer{Title: l.Title, Body: live}, err
}

// floats is what we hold at providers, by our own ledger.
func (ps *Pages) floats(v *console.Visit) (console.Answer, error) {
	l := page.List{Title: "Float", Actions: v.Actions(roles.ChangeTreasury, page.Link{Href: "/ops/float/add", Text: "Book money"}), Lead: "What the ledger says that each account at a provider holds for us. Unassigned is money that was booked without an account.",
		Columns: []page.Column{{Name: "Provider"}, {Name: "Account"}, {Name: "Money"}, {Name: "Held", Right: true}},
		Empty:   page.Empty{Title: "No providers", Text: "No account with a provider is configured."}}
	for _, r := range ps.Rails.Rails() {
		held, err := ps.Payments.Floats(v.Ctx, r.Name, r.Mode)
		if err != nil {
			return console.Answer{}, err
		}
		for _, account := range append(provider.AccountNames(), "") {
			amount, used := held[account]
			if used || slices.Contains(r.Accounts.Names(), account) {
				l.Rows = append(l.Rows, page.Row{Cells: []templ.Component{page.Text(words.ProviderName(r.Name)), page.Text(cmp.Or(account, "unassigned")), page.Text(r.Mode), page.Money(amount)}})
			}
		}
	}
	live, err := v.Part("float", 5, page.Listing(l))
	return console.Answer{Title: l.Title, Body: live}, err
}

// checks says when the books were checked last.
func (ps *Pages) checks(v *console.Visit) (console.Answer, error) {
	l := page.List{Title: "Checks", Lead: "What this node's last check of each book found. makola ledger check makes all of them now.",
		Columns: []page.Column{{Name: "Book"}, {Name: "Result"}, {Name: "Checked"}}}
	for _, c := range ps.Checks() {
		badge := page.Badge{Tone: page.Good, Word: "Adds up"}
		switch {
		case c.At.IsZero():
			badge = page.Badge{Word: "Not checked yet"}
		case c.Faults > 0:
			badge = page.Badge{Tone: page.Bad, Word: fmt.Sprintf("%d faults", c.Faults)}
		}
		l.Rows = append(l.Rows, page.Row{Cells: []templ.Component{page.Text(words.CheckWords[c.Name]), page.Mark(badge), page.Time(c.At)}})
	}
	live, err := v.Part("checks", 5, page.Listing(l))
	return console.Answer{Title: l.Title, Body: live}, err
}
