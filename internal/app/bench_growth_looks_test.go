//go:build !race

package app_test

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
)

// growthLooks is how often each size is asked for a page.
const growthLooks = 5

// pageOfGrowth is the number of rows of a page of the history.
const pageOfGrowth = 50

// A wait is something that a person waits for, with the same label at every size.
type wait struct {
	label string
	once  func()
}

// waits are the pages: lists with each filter, searches, statements and days; and a search by command.
func (g *grown) waits() (all []wait) {
	payouts := g.rows * 4 / 5
	last := payouts / pageOfGrowth
	api := newClient(g.server.ready.APIURL, g.key)
	for label, n := range map[string]int64{"first": 1, "middle": last / 2, "last": last} {
		all = append(all, wait{"history by the interface, " + label + " page", func() { g.page(api, n) }})
	}
	read := func(label, path string) { all = append(all, wait{label, func() { g.visitor.get(path) }}) }
	for _, l := range g.lists(payouts) {
		read(l.label, l.path)
	}
	for _, by := range []labelled{{"our id", g.oldest.ID}, {"the account's reference", g.oldest.Reference}, {"our reference", g.oldest.ProviderReference}, {"a beginning", g.oldest.Reference[:8]},
		{"a number", g.oldest.Account}, {"an amount", "10.00"}, {"a name", "ama mensah"}, {"the provider's id", "1000000000"}, {"nothing", "nothing-like-it"}} {
		query := "/search?" + url.Values{"q": {by.path}}.Encode()
		read("search by "+by.label, "/ops"+query)
		read("search of the account by "+by.label, "/app/"+g.tenant+query)
	}
	all = append(all, wait{"find by command", func() { g.where.command(g.b, "payouts", "find", "nothing-like-it") }})
	slices.SortStableFunc(all, func(x, y wait) int { return cmp.Compare(x.label, y.label) })
	return all
}

// files measures files of a day.
func (g *grown) files() {
	payouts, day, base := g.rows*4/5, g.day(), "/app/"+g.tenant
	g.each("statement file of a day, by command,", g.timed(1, "ledger", "statement", g.tenant, "--from", day, "--to", day), g.rows/growthDays)
	g.each("file of a day's payouts, each", g.once(base+"/payouts.csv?from="+day+"&to="+day), payouts/growthDays)
	g.each("file of a day's statement, each", g.once(base+"/statement.csv?from="+day+"&to="+day), g.rows/growthDays)
	g.each("journal of a day, each payment", g.once("/ops/journal.csv?from="+day+"&to="+day), g.rows/growthDays)
}

// day returns a day in the middle of the period of the payments.
func (g *grown) day() string {
	return time.Now().UTC().AddDate(0, 0, -growthDays/2).Format(time.DateOnly)
}

// labelled is a path with a label that is the same at every size.
type labelled struct{ label, path string }

// lists are all lists with each filter and the pages of days and statements.
func (g *grown) lists(payouts int64) (all []labelled) {
	last, middle := strconv.FormatInt(payouts/15, 10), strconv.FormatInt(payouts/30, 10)
	label := strings.NewReplacer(g.tenant, "ACCOUNT", "page="+last, "page=last", "page="+middle, "page=middle", g.oldest.ID, "OLDEST")
	add := func(paths ...string) {
		for _, path := range paths {
			all = append(all, labelled{label.Replace(path), path})
		}
	}
	add(pagesOfLists(g.tenant, payouts)...)
	app, day, from, to := "/app/"+g.tenant, g.day(), time.Now().UTC().AddDate(0, 0, -growthDays).Format(time.DateOnly), time.Now().UTC().Format(time.DateOnly)
	half, rest := "from="+from+"&to="+day, "from="+day+"&to="+to
	for _, filter := range []string{"", "status=success", "status=failed", "status=pending", half, rest} {
		add(app+"/payouts?"+filter+"&page="+middle, app+"/collections?"+filter)
	}
	for _, filter := range []string{"least=5000", "least=10&most=10", "status=unknown", "status=failed&least=10", "least=5000&" + half} {
		add(app+"/payouts?"+filter, "/ops/payments?"+filter)
	}
	for _, filter := range []string{half, rest, "status=failed&" + half, "channel=MTN", "provider=hubtel&" + half} {
		add("/ops/payments?"+filter, "/ops/payments?"+filter+"&before="+g.oldest.ID)
	}
	for _, period := range []string{"from=" + from + "&to=" + to, half, "from=" + day + "&to=" + day} {
		add("/ops/journal?"+period, "/ops/journal?account=wallet/"+g.tenant+"&"+period,
			"/ops/journal?account=float/&"+period, "/ops/journal?account=bank/&"+period, "/ops/journal/codes?"+period)
	}
	all = append(all, labelled{"statement of a month", app + "/statement?from=" + from + "&to=" + to}, labelled{"its second page", app + "/statement?page=2&from=" + from + "&to=" + to},
		labelled{"statement of a day", app + "/statement?from=" + day + "&to=" + day})
	add(app+"/webhooks", app+"/requests", app+"/fees", app+"/payments/"+g.oldest.ID, "/ops/payments/"+g.oldest.ID)
	add("/ops/funds?mode=test", "/ops/funds?mode=test&day="+day, "/ops/days?mode=test", "/ops/days/day?mode=test&day="+day, "/ops/days/month?mode=test&day="+day,
		"/ops/statements", "/ops/exceptions", "/ops/float", "/ops/banks", "/ops/banks/transfers", "/ops/checks", "/ops/notices", "/ops/jobs",
		"/ops/requests", "/ops/audit", "/ops/audit?words=nothing", "/ops/tenants/"+g.tenant, "/ops/providers", "/ops?mode=test")
	return all
}

// reconcile measures the time to import and match a provider's statement of one day.
func (g *grown) reconcile() {
	d := g.open()
	defer d.Close()
	begin := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -growthDays/2)
	text, n := strings.Builder{}, int64(0)
	text.WriteString(statementHeading)
	reader := book.NewReader(d, nil, clock.Real())
	for after := book.FirstID(begin); ; {
		list, next, err := reader.OutlinesBetween(g.b.Context(), "mtn", "test", after, begin.AddDate(0, 0, 1), 1000)
		if err != nil {
			g.b.Fatal(err)
		}
		ids := make([]string, len(list))
		for i, o := range list {
			ids[i] = o.ID
		}
		whole, err := reader.ByIDs(g.b.Context(), ids)
		if err != nil {
			g.b.Fatal(err)
		}
		for _, id := range ids {
			if pay := whole[id]; pay.Kind == book.KindCollection && pay.Status == book.StatusSuccess {
				n++
				fmt.Fprintf(&text, "%d,%s,%s,Successful,Transfer,,,,FRI:%s/MSISDN,,,us,,,,,%s,GHS,,GHS,,GHS,,GHS,,GHS,%d.00,GHS\n",
					4_000_000_000+n, pay.ProviderReference, pay.CreatedAt.Format(time.DateTime), pay.Account, pay.Amount, 1000+10*n)
			}
		}
		if after = next; next == "" {
			break
		}
	}
	path := filepath.Join(g.b.TempDir(), "statement.csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		g.b.Fatal(err)
	}
	begun := time.Now()
	g.where.command(g.b, "statements", "import", "--source", "test/mtn/collection", "--confirm", "--sign", "in", path)
	g.each("statement of a day imported, each line", time.Since(begun), n)
	g.waited("statements after it", g.read("/ops/statements"))
	g.waited("day after it", g.read("/ops/days/day?mode=test&day="+g.day()))
}

const statementHeading = `Id,"External Transaction Id","Date","Status","Type","Provider Category","Information","Note/Message","From","From Name","From Handler Name","To","To Name",` +
	`"To Handler Name","Initiated By","On Behalf Of","Amount","Currency","Fee","Currency","Discount","Currency","Promotion","Currency","Coupon","Currency","Balance","Currency"` + "\n"

// page reads a page of the history.
func (g *grown) page(api *client, n int64) {
	var rows []map[string]any
	api.get(g.b, fmt.Sprintf("/payment-api/transfers/history?page_size=%d&page=%d", pageOfGrowth, n), &rows)
	if len(rows) == 0 {
		g.b.Fatalf("page %d is empty", n)
	}
}

// read measures the time of a page of the console. A file is read only once, because a person downloads few files in an hour.
func (g *grown) read(path string) time.Duration {
	return best(growthLooks, func() { g.visitor.get(path) })
}

func (g *grown) once(path string) time.Duration { return best(1, func() { g.visitor.get(path) }) }

// timed returns the best time of several runs of a command.
func (g *grown) timed(runs int, args ...string) time.Duration {
	return best(runs, func() { g.where.command(g.b, args...) })
}
