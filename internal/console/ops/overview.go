package ops

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/records"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/figures"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// overviewOf is the data of the overview.
type overviewOf struct {
	mode          string
	stuck         int           // payments that need attention, up to mostSummed
	stuckSum      money.Pesewas // of these
	latest        page.Grid
	providers     []providerLine
	checks        []Check
	forYou, byYou page.Grid // change requests that the visitor may approve, and the visitor's own that await approval
	reviews       int       // sender IDs that await a review
	exceptions    int       // open exceptions of statements, up to mostCounted
	failedJobs    int
	queue         time.Duration // time by which the most overdue job on this node is late
	backup        string        // when the last backup was made
	backupBadge   page.Badge
	ages          []ageLine
	floats        page.Grid
	lowFloats     int
	traffic       page.Grid
	latency       page.Grid
	charts        []page.Chart
	counted       string
}

// ageLine is the number of open payments of one age.
type ageLine struct {
	word string
	figures.Age
}

// ageWords name the groups of figures.Ages, and the last group, which has no end.
var ageWords = []string{"Under 1 minute", "1 to 10 minutes", "10 minutes to 1 hour", "1 to 24 hours", "More than 24 hours"}

// text formats the payments of an age.
func (a ageLine) text() string {
	if a.N == 1 {
		return "1 payment, " + page.Cedis(a.Amount)
	}
	return page.Count(a.N) + " payments, " + page.Cedis(a.Amount)
}

// modeOf returns the mode that the figures of a page have: simulated money in development, live money elsewhere unless the visitor
// asks for the other.
func modeOf(v *console.Visit) string {
	if v.Development() || v.Param("mode") == string(tenant.Test) {
		return string(tenant.Test)
	}
	return string(tenant.Live)
}

// overview is the first page of the installation.
func (ps *Pages) overview(v *console.Visit) (console.Answer, error) {
	o := overviewOf{mode: modeOf(v)}
	for _, read := range []func(*console.Visit, *overviewOf) error{ps.overviewPayments, ps.overviewFigures, ps.overviewProviders, ps.overviewWork} {
		if err := read(v, &o); err != nil {
			return console.Answer{}, err
		}
	}
	live, err := v.Part("overview", 5, overviewPage(v, o))
	return console.Answer{Title: "Overview", Body: live}, err
}

// overviewPayments reads the payments that need attention, the open ones by age, and the latest.
func (ps *Pages) overviewPayments(v *console.Visit, o *overviewOf) (err error) {
	if !v.Can(roles.ReadPayments) {
		return nil
	}
	if o.stuck, o.stuckSum, err = ps.Payments.CountStuck(v.Ctx, book.StuckFilter{}, mostSummed); err != nil {
		return err
	}
	ages, err := ps.Figures.Open(v.Ctx, o.mode)
	if err != nil {
		return err
	}
	for i, age := range ages {
		if age.N > 0 {
			o.ages = append(o.ages, ageLine{ageWords[i], age})
		}
	}
	found, err := ps.Payments.Latest(v.Ctx, book.LatestFilter{Limit: 8})
	if err != nil {
		return err
	}
	names, err := ps.Records.Names(v, found.Payments)
	o.latest = records.Grid(v, found.Payments, false, names)
	return err
}

// traffic is the number and amount of the payments of one provider and kind in three periods.
type traffic struct {
	rail             string
	kind             book.Kind
	hour, day, month figures.Total
}

// trafficColumns have volume and success of the last hour, day and month.
var trafficColumns = []console.Column[traffic]{
	console.Text("Provider", "", func(t traffic) string { return providerOf(t.rail) }).Laid(console.Link),
	console.Text("Kind", "", func(t traffic) string { return words.KindsWords[t.kind] }).Laid(console.Under),
	console.Money("Last hour", "", func(t traffic) money.Pesewas { return t.hour.Paid }),
	console.Text("Success", "", func(t traffic) string { return rateOf(t.hour) }).Laid(page.Display{Right: true}),
	console.Money("24 hours", "", func(t traffic) money.Pesewas { return t.day.Paid }).Laid(console.Minor),
	console.Text("Success", "", func(t traffic) string { return rateOf(t.day) }).Laid(page.Display{Right: true, Minor: true}),
	console.Money("30 days", "", func(t traffic) money.Pesewas { return t.month.Paid }).Laid(console.Wide),
	console.Text("Success", "", func(t traffic) string { return rateOf(t.month) }).Laid(page.Display{Right: true, Wide: true}),
}

func providerOf(rail string) string {
	if rail == "" {
		return "Between wallets"
	}
	return words.ProviderName(rail)
}

func rateOf(t figures.Total) string {
	if tenths, known := t.Rate(); known {
		return page.Tenths(tenths)
	}
	return "–"
}

// overviewFigures reads volume, success and latency by provider, for those who may see totals.
func (ps *Pages) overviewFigures(v *console.Visit, o *overviewOf) error {
	if !v.Can(roles.ExportPayments) {
		return nil
	}
	now := v.Now()
	today := now.UTC().Truncate(24 * time.Hour)
	hours, days, err := ps.sums(v, o.mode)
	if err != nil {
		return err
	}
	to, err := ps.Figures.CountedTo(v.Ctx)
	if err != nil {
		return err
	}
	o.counted = records.CountedTo(to)
	lines := trafficOf(hours, days, now)
	o.traffic = console.Grid(trafficColumns, lines, func(t traffic) string {
		q := url.Values{"kind": {string(t.kind)}, "from": {today.AddDate(0, 0, 1-records.ChartDays).Format(console.DayFormat)}}
		if t.rail != "" {
			q.Set("provider", t.rail)
		}
		return "/ops/payments?" + q.Encode()
	})
	if len(lines) > 0 {
		volume, rate := records.Days(days, now)
		o.charts = []page.Chart{records.Hours(hours, now), volume, rate}
	}
	return nil
}

// sums reads the hours of eight days and the days of the charts, of all accounts.
func (ps *Pages) sums(v *console.Visit, mode string) (hours, days []figures.Figure, err error) {
	today := v.Now().UTC().Truncate(24 * time.Hour)
	span := figures.Span{Mode: mode, From: today.AddDate(0, 0, -7), To: today.AddDate(0, 0, 1)}
	if hours, err = ps.Figures.Hours(v.Ctx, span); err != nil {
		return nil, nil, err
	}
	span.From = today.AddDate(0, 0, 1-records.ChartDays)
	days, err = ps.Figures.Days(v.Ctx, span)
	return hours, days, err
}

// trafficOf sums up figures by provider and kind. The last hour begins with a whole hour.
func trafficOf(hours, days []figures.Figure, now time.Time) (lines []traffic) {
	hour := now.UTC().Truncate(time.Hour)
	of := func(f figures.Figure) *traffic {
		i := slices.IndexFunc(lines, func(t traffic) bool { return t.rail == f.Rail && t.kind == f.Kind })
		if i < 0 {
			i = len(lines)
			lines = append(lines, traffic{rail: f.Rail, kind: f.Kind})
		}
		return &lines[i]
	}
	for _, f := range days {
		of(f).month.Add(f)
	}
	for _, f := range hours {
		if !f.At.Before(hour.Add(-time.Hour)) {
			of(f).hour.Add(f)
		}
		if !f.At.Before(hour.Add(-23 * time.Hour)) {
			of(f).day.Add(f)
		}
	}
	slices.SortFunc(lines, func(a, b traffic) int {
		return cmp.Or(cmp.Compare(providerOf(a.rail), providerOf(b.rail)), cmp.Compare(slices.Index(records.ChartKinds, a.kind), slices.Index(records.ChartKinds, b.kind)))
	})
	return lines
}

// latencyColumns are the columns of the latency of providers.
var latencyColumns = []console.Column[route.Latency]{
	console.Text("Provider", "", func(l route.Latency) string { return words.ProviderName(l.Provider) }).Laid(console.Link),
	console.Text("Request", "", func(l route.Latency) string { return words.RequestWord(l.Operation) }).Laid(console.Under),
	console.Count("Requests", "", func(l route.Latency) int64 { return l.N }).Laid(console.Minor),
	console.Count("No answer or 5xx", "", func(l route.Latency) int64 { return l.Failed }).Laid(console.Minor),
	console.Text("50% within", "", func(l route.Latency) string { return withinOf(l, 50) }).Laid(page.Display{Right: true}),
	console.Text("95% within", "", func(l route.Latency) string { return withinOf(l, 95) }).Laid(page.Display{Right: true}),
}

func withinOf(l route.Latency, percent int64) string {
	within, over := l.Percentile(percent)
	text := fmt.Sprintf("%d ms", within.Milliseconds())
	if within >= time.Second {
		text = fmt.Sprintf("%g s", within.Seconds())
	}
	if over {
		return "over " + text
	}
	return text
}

// latencyGrid returns the latency of providers in the last 24 hours.
func (ps *Pages) latencyGrid(v *console.Visit, mode string) (page.Grid, error) {
	list, err := ps.Rails.Latencies(v.Ctx, mode, v.Now().Add(-23*time.Hour))
	return console.Grid(latencyColumns, list, func(route.Latency) string { return "/ops/providers" }), err
}

// overviewProviders reads the state of providers, their latency and floats.
func (ps *Pages) overviewProviders(v *console.Visit, o *overviewOf) (err error) {
	if v.Can(roles.ReadProviders) {
		if o.providers, err = ps.providers(v); err != nil {
			return err
		}
		if o.latency, err = ps.latencyGrid(v, o.mode); err != nil {
			return err
		}
	}
	if !v.Can(roles.ReadTreasury) {
		return nil
	}
	lines, err := ps.floatLines(v, o.mode)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if l.low() {
			o.lowFloats++
		}
	}
	o.floats = console.Grid(floatColumns, lines, func(floatLine) string { return "/ops/float" })
	return nil
}

// backupOld is the age from which the last backup is marked.
const backupOld = 26 * time.Hour

// overviewWork reads the items that wait for people, the queue, the books and the last backup.
func (ps *Pages) overviewWork(v *console.Visit, o *overviewOf) (err error) {
	if o.forYou, o.byYou, err = ps.Approvals.Waiting(v); err != nil {
		return err
	}
	if v.Can(roles.ReviewSenders) {
		senders, err := ps.Senders.Waiting(v.Ctx, mostCounted)
		if err != nil {
			return err
		}
		o.reviews = len(senders)
	}
	if v.Can(roles.ReadStatements) {
		if o.exceptions, err = ps.Reconcile.Open(v.Ctx, mostCounted); err != nil {
			return err
		}
	}
	if !v.Can(roles.ReadChecks) {
		return nil
	}
	o.checks = ps.Checks()
	for _, late := range ps.Jobs.Overdue() {
		o.queue = max(o.queue, late)
	}
	waiting, err := ps.Waiting(console.Place{Ctx: v.Ctx, Tenant: roles.Installation, Person: v.Who.Person.ID, Can: func(p roles.Permission) bool { return p == roles.ReadChecks }})
	if err != nil {
		return err
	}
	o.failedJobs = waiting["/jobs"]
	at, found, err := ps.LastBackup(v.Ctx)
	switch {
	case err != nil:
		return err
	case !found:
		o.backup, o.backupBadge = "No backup is recorded.", page.Badge{Tone: page.Open, Word: "None"}
	case v.Now().Sub(at) > backupOld:
		o.backup, o.backupBadge = page.When(at), page.Badge{Tone: page.Open, Word: "Old"}
	default:
		o.backup, o.backupBadge = page.When(at), page.Badge{Tone: page.Good, Word: "Recent"}
	}
	return nil
}

// mostSummed is the maximum number of payments that need attention and are summed.
const mostSummed = 1000

// upTo writes a number of things that were counted up to most.
func upTo(n, most int) string {
	if n >= most {
		return page.Count(most) + " or more"
	}
	return page.Count(n)
}

// doubt writes the total amount of the payments that need attention.
func (o overviewOf) doubt() string {
	if o.stuck >= mostSummed {
		return page.Cedis(o.stuckSum) + " or more with an unknown outcome"
	}
	return page.Cedis(o.stuckSum) + " with an unknown outcome"
}

// ill returns the number of operations that are paused or failing.
func (o overviewOf) ill() (n int) {
	for _, p := range o.providers {
		if p.ill {
			n++
		}
	}
	return n
}

// faults returns the number of faults in the last checks.
func (o overviewOf) faults() (n int64) {
	for _, c := range o.checks {
		n += c.Faults
	}
	return n
}

// late returns by how much the queue is late.
func (o overviewOf) late() string {
	if o.queue < time.Second {
		return "Nothing is late"
	}
	return fmt.Sprintf("%s late", o.queue.Truncate(time.Second))
}
