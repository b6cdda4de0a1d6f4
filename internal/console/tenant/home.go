package tenant

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/records"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/figures"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/webhook"
)

// homeOf is the data of the first page of an account.
type homeOf struct {
	balances      *balances // nil: not for this visitor
	attention     []matter
	forYou, byYou page.Grid
	pace          page.Grid
	charts        []page.Chart
	counted       string // time up to which the figures are complete
	latest        page.Grid
	steps         []step // first steps of a new account; nil: there are payments
}

// balances are the amounts of an account, each with the pages of its rows.
type balances struct {
	available, owed, reserved, awaits, held money.Pesewas
	credits                                 int64
	holds                                   []hold
}

// A hold is the money of the open payments of one kind.
type hold struct {
	kind   string
	amount money.Pesewas
	href   string
}

// A matter is an item that needs attention.
type matter struct {
	badge page.Badge
	text  string
	href  string
	link  string
}

// tenantHome is the first page of an account.
func (ps *Pages) tenantHome(v *console.Visit) (console.Answer, error) {
	var h homeOf
	held, err := ps.Figures.Held(v.Ctx, v.Tenant.ID)
	if err != nil {
		return console.Answer{}, err
	}
	if v.Can(roles.ReadBalances) {
		if h.balances, err = ps.balances(v, held); err != nil {
			return console.Answer{}, err
		}
	}
	if v.Can(roles.ReadPayments) {
		if h.latest, err = ps.latestOfTenant(v); err != nil {
			return console.Answer{}, err
		}
		if len(h.latest.Rows) == 0 {
			if h.steps, err = ps.steps(v); err != nil {
				return console.Answer{}, err
			}
		} else if err := ps.charts(v, &h); err != nil {
			return console.Answer{}, err
		}
	}
	if h.forYou, h.byYou, err = ps.Approvals.Waiting(v); err != nil {
		return console.Answer{}, err
	}
	if h.attention, err = ps.matters(v, held); err != nil {
		return console.Answer{}, err
	}
	live, err := v.Part("home", 5, homePage(v, h))
	return console.Answer{Title: v.Tenant.Name, Body: live}, err
}

// balances reads the balances of the account. Available is the wallet_balance of the interface.
func (ps *Pages) balances(v *console.Visit, held []figures.Held) (*balances, error) {
	var b balances
	for id, into := range map[ledger.AccountID]*money.Pesewas{ledger.Wallet(v.Tenant.ID): &b.available, ledger.Reserve(v.Tenant.ID): &b.reserved} {
		n, err := ps.Ledger.Balance(v.Ctx, ledger.Key{Asset: v.Tenant.Money(), ID: id})
		if err != nil {
			return nil, err
		}
		*into = money.Pesewas(n)
	}
	var err error
	if b.credits, err = ps.Ledger.Balance(v.Ctx, v.Tenant.SMSCredits()); err != nil {
		return nil, err
	}
	for _, one := range held {
		if one.Kind == book.KindCollection {
			continue
		}
		b.held += one.Amount
		if one.Awaits {
			b.awaits += one.Amount
		}
		if n := len(b.holds); n > 0 && b.holds[n-1].kind == words.KindsWords[one.Kind] {
			b.holds[n-1].amount += one.Amount
			continue
		}
		b.holds = append(b.holds, hold{words.KindsWords[one.Kind], one.Amount, listPath(v, one.Kind) + "?status=" + openStatus(one.Kind)})
	}
	b.owed, err = ps.Records.Owed(v, v.Tenant)
	return &b, err
}

// listPath returns the list of the account's payments of a kind.
func listPath(v *console.Visit, kind book.Kind) string {
	for _, l := range tenantLists {
		if l.kind == kind {
			return "/app/" + v.Tenant.ID + l.path
		}
	}
	return "/app/" + v.Tenant.ID
}

// openStatus returns the status of open payments in the filter of their list.
func openStatus(kind book.Kind) string {
	return book.Payment{Kind: kind, Status: book.StatusPending}.PublicStatus()
}

// paceColumns compare today with the last seven days.
func paceColumns(now time.Time) []console.Column[records.Pace] {
	hour := now.UTC().Format("15") + ":00"
	return []console.Column[records.Pace]{
		console.Text("Kind", "", func(p records.Pace) string { return words.KindsWords[p.Kind] }).Laid(console.Link),
		console.Money("Successful today", "", func(p records.Pace) money.Pesewas { return p.Today.Paid }),
		console.Money("Today to "+hour, "", func(p records.Pace) money.Pesewas { return p.ToHour }).Laid(console.Minor),
		console.Money("Average to "+hour, "", func(p records.Pace) money.Pesewas { return p.Average }).Laid(console.Minor),
		console.Text("Success rate", "", func(p records.Pace) string {
			if tenths, known := p.Today.Rate(); known {
				return page.Tenths(tenths)
			}
			return "–"
		}).Laid(page.Display{Right: true, Minor: true}),
	}
}

// charts reads the figures of the account, for those who may see totals.
func (ps *Pages) charts(v *console.Visit, h *homeOf) error {
	if !v.Can(roles.ExportPayments) {
		return nil
	}
	now := v.Now()
	today := now.UTC().Truncate(24 * time.Hour)
	span := figures.Span{Tenant: v.Tenant.ID, Mode: string(v.Tenant.Mode), From: today.AddDate(0, 0, -7), To: today.AddDate(0, 0, 1)}
	hours, err := ps.Figures.Hours(v.Ctx, span)
	if err != nil {
		return err
	}
	span.From = today.AddDate(0, 0, 1-records.ChartDays)
	days, err := ps.Figures.Days(v.Ctx, span)
	if err != nil {
		return err
	}
	to, err := ps.Figures.CountedTo(v.Ctx)
	if err != nil {
		return err
	}
	volume, rate := records.Days(days, now)
	h.charts = []page.Chart{records.Hours(hours, now), volume, rate}
	h.counted = records.CountedTo(to)
	h.pace = console.Grid(paceColumns(now), records.Paces(hours, now), func(p records.Pace) string {
		return fmt.Sprintf("%s?status=success&from=%[2]s&to=%[2]s", listPath(v, p.Kind), today.Format(console.DayFormat))
	})
	return nil
}

// mostCounted bounds the counts of the first page.
const mostCounted = 100

// counted formats a count that ends at mostCounted.
func counted(n int, one, many string) string {
	switch {
	case n == 1:
		return "1 " + one
	case n >= mostCounted:
		return fmt.Sprintf("%d or more %s", mostCounted, many)
	}
	return fmt.Sprintf("%d %s", n, many)
}

// matters returns the items that need attention.
func (ps *Pages) matters(v *console.Visit, held []figures.Held) (list []matter, err error) {
	here := "/app/" + v.Tenant.ID
	if v.Tenant.Blocked {
		list = append(list, matter{page.Badge{Tone: page.Bad, Word: "Blocked"}, "This account is blocked: the interface refuses its requests.", "", ""})
	}
	if v.Tenant.PayoutsStopped {
		list = append(list, matter{page.Badge{Tone: page.Bad, Word: "Payouts stopped"}, "No payout leaves this account until an owner or an operator allows payouts again.", here + "/access", "View settings"})
	}
	if v.Can(roles.ReadPayments) {
		list = append(list, unknownMatters(v, held)...)
	}
	if v.Can(roles.ReadWebhooks) {
		failed, err := ps.Records.Webhooks.List(v.Ctx, webhook.Filter{Tenant: v.Tenant.ID, State: webhook.Failed, Limit: mostCounted})
		if err != nil {
			return nil, err
		}
		if len(failed) > 0 {
			list = append(list, matter{page.Badge{Tone: page.Bad, Word: "Failed"}, counted(len(failed), "webhook was not delivered", "webhooks were not delivered") + ".", here + "/webhooks", "View webhooks"})
		}
	}
	if v.Can(roles.ReadMessages) {
		senders, err := ps.Senders.List(v.Ctx, v.Tenant.ID)
		if err != nil {
			return nil, err
		}
		senders = slices.DeleteFunc(senders, func(s senderid.Sender) bool { return s.Status != senderid.Pending })
		if len(senders) > 0 {
			list = append(list, matter{page.Badge{Tone: page.Open, Word: "In review"}, counted(len(senders), "sender ID awaits its review", "sender IDs await their review") + ".", here + "/messages", "View messages"})
		}
	}
	return list, nil
}

// unknownMatters returns the open payments with an unknown outcome, by kind.
func unknownMatters(v *console.Visit, held []figures.Held) (list []matter) {
	for _, l := range tenantLists {
		n := 0
		for _, one := range held {
			if one.Kind == l.kind && one.Unknown {
				n += int(one.N)
			}
		}
		if n > 0 {
			list = append(list, matter{page.Badge{Tone: page.Unknown, Word: "Unknown"}, l.title + ": " + counted(n, "outcome is unknown", "outcomes are unknown") + ". Do not send them again.", listPath(v, l.kind) + "?status=unknown", "View payments"})
		}
	}
	return list
}

// latestOfTenant returns the newest payments of all kinds.
func (ps *Pages) latestOfTenant(v *console.Visit) (page.Grid, error) {
	var all []book.Payment
	for _, kind := range tenantLists {
		found, err := ps.Payments.History(v.Ctx, v.Tenant.ID, book.Filter{Kind: kind.kind, Size: 10})
		if err != nil {
			return page.Grid{}, err
		}
		all = append(all, found.Rows...)
	}
	slices.SortFunc(all, func(a, b book.Payment) int { return cmp.Compare(b.ID, a.ID) })
	return records.Grid(v, all[:min(len(all), 10)], false, nil), nil
}

// A step is an entry of the checklist of a new account.
type step struct {
	done bool
	text string
	href string
	link string
}

func (s step) mark() templ.Component {
	if s.done {
		return page.Mark(page.Badge{Tone: page.Good, Word: "Done"})
	}
	return page.Mark(page.Badge{Word: "To do"})
}

// steps returns the checklist of an account without payments, limited to the visitor's permissions.
func (ps *Pages) steps(v *console.Visit) (list []step, err error) {
	here := "/app/" + v.Tenant.ID
	if v.Can(roles.ReadAccess) {
		keys, err := ps.Settings.Access.Keys(v.Ctx, v.Tenant.ID)
		if err != nil {
			return nil, err
		}
		addresses, err := ps.Settings.Access.PayoutIPs(v.Ctx, v.Tenant.ID)
		if err != nil {
			return nil, err
		}
		list = append(list, step{len(keys) > 0, "Create an API key for your program.", here + "/access", "Keys and settings"},
			step{len(addresses) > 0, "List the addresses from which your program sends payouts.", here + "/access", "IP allow-list"})
	}
	if v.Can(roles.ReadPeople) {
		people, err := ps.Settings.Identity.Members(v.Ctx, v.Tenant.ID, "", 2)
		if err != nil {
			return nil, err
		}
		list = append(list, step{len(people) > 1, "Invite a second person, who approves your payouts.", here + "/people", "People"})
	}
	if v.Can(roles.ReadBalances) {
		wallet, err := ps.Ledger.Balance(v.Ctx, v.Tenant.Wallet())
		if err != nil {
			return nil, err
		}
		list = append(list, step{wallet > 0, "Put money into the wallet: pay to the operator's bank account, or collect from a customer.", here + "/statement", "Statement"})
	}
	return append(list, step{false, "Make the first payment.", "/docs/quickstart", "Quickstart"}), nil
}
