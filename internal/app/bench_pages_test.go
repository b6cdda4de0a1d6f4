package app_test

import (
	"cmp"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

const (
	listedPayments = 1_000_000 // MAKOLA_TEST_BENCH_ROWS sets another number
	looksAtAPage   = 9
	slowestPage    = 50 * time.Millisecond // the goal
)

// BenchmarkPages measures the server's time for each list of the console over a million payouts: each offered filter, the first and
// the last page, of the installation and of one tenant. It reports the median of the slowest page, and logs pages that miss the
// goal.
func BenchmarkPages(b *testing.B) {
	for _, engine := range []db.Engine{db.Postgres, db.SQLite} {
		b.Run(engine.String(), func(b *testing.B) {
			for range b.N {
				benchmarkPages(b, engine)
			}
		})
	}
}

func benchmarkPages(b *testing.B, engine db.Engine) {
	rows, err := strconv.ParseInt(cmp.Or(os.Getenv("MAKOLA_TEST_BENCH_ROWS"), strconv.Itoa(listedPayments)), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	sim, where := startSim(b), newSite(b, engine)
	server := where.serve(b, "makola", sim)
	load := workload{keys: benchTenants(b, where, server, 1), payee: "0240000001", window: window}
	where.command(b, "wallet", "fund", server.ready.TenantID, "90000000.00", "--reason", "benchmark", "--reference", "a million")
	l := &lives{underway: make(chan struct{}, window)}
	load.callback = l.sink(b)
	for l.accepted.Load() < rows && !b.Failed() {
		l.run(b, host(server.ready.APIURL), load, 5*time.Second)
	}
	clocktest.Await(b, "the drain", func() bool { return l.delivered.Load() >= l.accepted.Load() })
	v := visit(b, server)
	slowest, slowestAt := time.Duration(0), ""
	for _, path := range pagesOfLists(server.ready.TenantID, l.accepted.Load()) {
		median := median(looksAtAPage, func() { v.get(path) })
		if median > slowestPage {
			b.Logf("%s: %v", path, median)
		}
		if median > slowest {
			slowest, slowestAt = median, path
		}
	}
	b.Logf("the slowest of %s is %s: %v", engine, slowestAt, slowest)
	b.ReportMetric(float64(slowest.Microseconds())/1000, "slowest-page-ms")
	b.ReportMetric(float64(l.accepted.Load()), "payments")
	b.ReportMetric(0, "ns/op")
	server.kill()
	sim.kill()
}

// pagesOfLists returns the first and the last page of each list with each filter.
func pagesOfLists(tenant string, rows int64) (paths []string) {
	today, yesterday := time.Now().UTC().Format(time.DateOnly), time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	statuses := []string{"success", "submitted", "pending", "failed"}
	app, last := "/app/"+tenant, strconv.FormatInt(rows/15, 10)
	for _, list := range []string{"/collections", "/payouts", "/airtime", "/data"} {
		filters := []string{"", "from=" + today, "to=" + today, "to=" + yesterday, "from=" + yesterday + "&to=" + today}
		for _, status := range statuses {
			filters = append(filters, "status="+status, "status="+status+"&from="+today)
		}
		for _, filter := range filters {
			paths = append(paths, app+list+"?"+filter, app+list+"?"+filter+"&page="+last)
		}
	}
	for _, filter := range []string{"", "tenant=" + tenant, "kind=payout", "kind=collection", "provider=mtn", "provider=hubtel", "from=" + today, "to=" + yesterday,
		"status=success", "status=failed", "status=pending", "kind=collection&status=failed&provider=hubtel", "before=00000000-0000-7000-8000-000000000000"} {
		paths = append(paths, "/ops/payments?"+filter)
	}
	return append(paths, "/ops", app, "/ops/stuck", "/ops/tenants", "/ops/search?q=nothing-like-it", app+"/search?q=nothing-like-it", app+"/messages")
}

// visitor is a signed-in browser.
type visitor struct {
	b    *testing.B
	base string
	http *http.Client
}

func visit(b *testing.B, server *process) *visitor {
	b.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	link, err := url.Parse(server.ready.SignInURL)
	if err != nil {
		b.Fatal(err)
	}
	v := &visitor{b: b, base: "http://" + link.Host, http: &http.Client{Jar: jar}}
	request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, v.base+"/first", strings.NewReader(url.Values{"t": {link.Query().Get("t")}}.Encode()))
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	answer, err := v.http.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	_ = answer.Body.Close()
	return v
}

// get reads a whole page.
func (v *visitor) get(path string) {
	v.b.Helper()
	answer, err := v.http.Get(v.base + path)
	if err != nil {
		v.b.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		v.b.Fatalf("%s: %d, %v: %.300s", path, answer.StatusCode, err, text)
	}
}

func best(n int, once func()) time.Duration {
	took := timesOf(n, once)
	return took[0]
}

func median(n int, once func()) time.Duration {
	took := timesOf(n, once)
	return took[n/2]
}

// timesOf runs once n times and returns the sorted times.
func timesOf(n int, once func()) []time.Duration {
	took := make([]time.Duration, n)
	for i := range took {
		begun := time.Now()
		once()
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	return took
}
