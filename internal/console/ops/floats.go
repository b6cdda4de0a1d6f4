package ops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/figures"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// floatLine is the balance of one account at a provider.
type floatLine struct {
	rail       provider.Rail
	account    string // empty: unassigned
	configured bool   // this server has credentials of the provider
	held       money.Pesewas
	week, day  money.Pesewas  // amounts that were paid from it in the last seven days, and in the last day
	theirs     *money.Pesewas // the provider's own balance; nil: not asked, or not answered
}

// threshold returns the amount below which the float is low: the payments of the last day, or a seventh of the last
// week's payments if that is more. Alerts use the same rule.
func (f floatLine) threshold() money.Pesewas { return max(f.day, f.week/7) }

func (f floatLine) low() bool { return f.threshold() > 0 && f.held < f.threshold() }

// left returns how long the float lasts at the pace of the last seven days.
func (f floatLine) left() string {
	if f.week <= 0 {
		return "–"
	}
	days := max(0, int64(f.held)*7/int64(f.week))
	switch {
	case days == 1:
		return "1 day"
	case days > 365:
		return "over a year"
	}
	return fmt.Sprintf("%d days", days)
}

// floatColumns are the columns of the list of floats.
var floatColumns = []console.Column[floatLine]{
	console.Text("Provider", "", func(f floatLine) string { return words.ProviderName(f.rail.Name) }).Laid(console.Link),
	console.Text("Account", "", func(f floatLine) string { return words.Capital(cmp.Or(f.account, "unassigned")) }).Laid(console.Under),
	console.Text("Mode", "", func(f floatLine) string { return words.Mode(tenant.Mode(f.rail.Mode)) }).Laid(console.Minor),
	console.Money("Balance", "", func(f floatLine) money.Pesewas { return f.held }),
	console.Money("Threshold", "", floatLine.threshold).Laid(console.Minor),
	console.Shown("Lasts", func(f floatLine) templ.Component {
		if f.low() {
			return page.Mark(page.Badge{Tone: page.Bad, Word: f.left()})
		}
		return page.Text(f.left())
	}).Laid(console.Right),
}

// ownColumn has the balance that the provider reports.
var ownColumn = []console.Column[floatLine]{
	console.Shown("Provider's balance", func(f floatLine) templ.Component {
		switch {
		case f.account == "":
			return page.Text("–")
		case !f.configured:
			return page.Text("not configured here")
		case f.theirs == nil:
			return page.Text("no answer")
		case *f.theirs != f.held:
			return page.Join(page.Money(*f.theirs), page.Text(" "), page.Mark(page.Badge{Tone: page.Open, Word: "differs"}))
		}
		return page.Money(*f.theirs)
	}).Laid(console.Right),
}

// knownRails returns the configured rails of every mode, and the providers that are not configured in the given mode.
func (ps *Pages) knownRails(mode string) (rails []provider.Rail, configured map[string]bool) {
	configured = map[string]bool{}
	for _, r := range ps.Rails.Rails() {
		rails = append(rails, r)
		configured[r.Name+" "+r.Mode] = true
	}
	for _, name := range ps.Rails.Providers() {
		if !configured[name+" "+mode] {
			rails = append(rails, provider.Rail{Name: name, Mode: mode})
		}
	}
	return rails, configured
}

// floatLines returns the accounts at providers in a mode, or in every mode of the server if mode is empty. For a
// provider that is not configured, it returns only accounts with money.
func (ps *Pages) floatLines(v *console.Visit, mode string) (lines []floatLine, err error) {
	rails, configured := ps.knownRails(cmp.Or(mode, modeOf(v)))
	spent := map[string][]figures.Figure{}
	for _, r := range rails {
		if mode != "" && r.Mode != mode {
			continue
		}
		held, err := ps.Payments.Floats(v.Ctx, r.Name, r.Mode)
		if err != nil {
			return nil, err
		}
		if spent[r.Mode] == nil {
			now := v.Now().UTC().Truncate(time.Hour)
			if spent[r.Mode], err = ps.Figures.Hours(v.Ctx, figures.Span{Mode: r.Mode, From: now.Add(-7*24*time.Hour + time.Hour), To: now.Add(time.Hour)}); err != nil {
				return nil, err
			}
		}
		for _, account := range append(provider.AccountNames(), "") {
			amount, used := held[account]
			is := configured[r.Name+" "+r.Mode]
			if used && (is || amount != 0) || is && slices.Contains(r.Accounts.Names(), account) {
				line := floatLine{rail: r, account: account, configured: is, held: amount}
				line.spend(spent[r.Mode], v.Now())
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}

// spend returns the sum of the payments that the account paid.
func (f *floatLine) spend(list []figures.Figure, now time.Time) {
	full := f.rail.Accounts.Full()
	yesterday := now.UTC().Truncate(time.Hour).Add(-23 * time.Hour)
	for _, one := range list {
		from := map[book.Kind]string{book.KindPayout: full.Disburse, book.KindTopUp: full.Sell, book.KindBundle: full.Sell}[one.Kind]
		if one.Rail != f.rail.Name || one.Status != book.StatusSuccess || from == "" || from != f.account {
			continue
		}
		f.week += one.Amount
		if !one.At.Before(yesterday) {
			f.day += one.Amount
		}
	}
}

// floatWithin bounds a query of a provider's balance.
const floatWithin = 3 * time.Second

// ask asks the providers of some lines for their own balances, all at once.
func (ps *Pages) ask(ctx context.Context, lines []floatLine) {
	ctx, cancel := context.WithTimeout(ctx, floatWithin)
	defer cancel()
	type answer struct {
		rail string
		held []provider.Held
	}
	answers, asked := make(chan answer, len(lines)), map[string]bool{}
	for _, l := range lines {
		rail := l.rail.Name + " " + l.rail.Mode
		if l.rail.Floats == nil || asked[rail] {
			continue
		}
		asked[rail] = true
		go func() {
			held, outcome := l.rail.Floats.Float(ctx)
			if outcome.Class != provider.Accepted {
				held = nil
			}
			answers <- answer{rail, held}
		}()
	}
	for range asked {
		a := <-answers
		for i, l := range lines {
			for _, h := range a.held {
				if l.rail.Name+" "+l.rail.Mode == a.rail && h.Account == l.account {
					lines[i].theirs = &h.Amount
				}
			}
		}
	}
}

// movementColumns are the columns of deposits and withdrawals.
var movementColumns = []console.Column[audit.Entry]{
	console.Time("Booked", "", func(e audit.Entry) time.Time { return e.At }).Laid(console.Under),
	console.Text("What", "", changeTexts).Laid(console.Link),
	console.Shown("By", actorOf),
	console.Text("Reason", "", func(e audit.Entry) string { return e.Reason }).Laid(console.Minor),
}

// floats lists the balances at providers by our ledger, with the provider's own balance if the visitor asks for it.
func (ps *Pages) floats(v *console.Visit) (console.Answer, error) {
	lines, err := ps.floatLines(v, "")
	if err != nil {
		return console.Answer{}, err
	}
	columns, asked := floatColumns, v.Param("ask") != ""
	if asked {
		ps.ask(v.Ctx, lines)
		columns = append(floatColumns[:len(floatColumns):len(floatColumns)], ownColumn...)
	}
	l := page.List{Title: "Float", Lead: "Balances at providers by our ledger. The threshold is a day's payments: those of the last 24 hours, or a seventh of the last 7 days if that is more. Unassigned is money booked without an account.",
		Grid:    console.Grid(columns, lines, nil),
		Actions: append([]page.Link{{Href: "/ops/float?ask=yes", Text: "Compare with providers"}}, v.Actions(roles.ChangeTreasury, page.Link{Href: "/ops/float/add", Text: "Book deposit or withdrawal"})...),
		Empty:   page.Empty{Title: "No providers", Text: "Configure the credentials of a provider to see its float here."}}
	var movements []audit.Entry
	if v.Can(roles.ReadAudit) {
		if movements, err = ps.Audit.List(v.Ctx, audit.Filter{Action: changes.KindAddFloat, Limit: 20}); err != nil {
			return console.Answer{}, err
		}
	}
	body := floatPage(l, console.Grid(movementColumns, movements, nil))
	if asked { // a page with the providers' balances does not poll, so that it queries them once
		return console.Answer{Title: l.Title, Body: body}, nil
	}
	live, err := v.Part("float", 5, body)
	return console.Answer{Title: l.Title, Body: live}, err
}

// pauseColumns are the columns of the history of pauses.
var pauseColumns = []console.Column[audit.Entry]{
	console.Time("When", "", func(e audit.Entry) time.Time { return e.At }).Laid(console.Under),
	console.Text("What", "", changeTexts).Laid(console.Link),
	console.Shown("By", actorOf),
	console.Text("Reason", "", func(e audit.Entry) string { return e.Reason }).Laid(console.Minor),
}

// providerList lists the providers with their success, latency and pauses.
func (ps *Pages) providerList(v *console.Visit) (console.Answer, error) {
	lines, err := ps.providers(v)
	if err != nil {
		return console.Answer{}, err
	}
	latency, err := ps.latencyGrid(v, modeOf(v))
	if err != nil {
		return console.Answer{}, err
	}
	var pauses []audit.Entry
	if v.Can(roles.ReadAudit) {
		for _, action := range []string{changes.KindPause, changes.KindResume} {
			list, err := ps.Audit.List(v.Ctx, audit.Filter{Action: action, Limit: 20})
			if err != nil {
				return console.Answer{}, err
			}
			pauses = append(pauses, list...)
		}
		slices.SortFunc(pauses, func(a, b audit.Entry) int { return b.At.Compare(a.At) })
	}
	tests, err := ps.testPage(v)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Providers", Lead: "The operations of each provider, and whether new work is routed to it.", Grid: console.Grid(providerColumns, lines, tests),
		Actions: v.Actions(roles.SwitchProviders, page.Link{Href: "/ops/providers/pause", Text: "Pause provider"}, page.Link{Href: "/ops/providers/resume", Text: "Resume provider"}),
		Empty:   page.Empty{Title: "No providers", Text: "Configure the credentials of a provider to see it here."}}
	live, err := v.Part("providers", 5, providersPage(l, latency, console.Grid(pauseColumns, pauses, nil)))
	return console.Answer{Title: l.Title, Body: live}, err
}
