package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/console/records"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/booktest"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/matrix"
)

// The goals for pages and files of many rows. make deep measures them.
const (
	slowestHome  = 50 * time.Millisecond
	slowestMonth = 10 * time.Second
	largestMonth = 256 << 20 // bytes of the heap, twice the size of its live objects
)

// loaded is a server whose demo account has money for many payments, with a function that sends them.
func loaded(t *testing.T, engine db.Engine) (*browsed, tenant.Tenant, *booktest.Loader) {
	t.Helper()
	b := browse(t, func(c *config.Server) {
		if engine == db.Postgres {
			c.Database = dbtest.URL(t)
		}
	})
	b.signIn(b.nextLink())
	demo, err := b.tenants.Get(t.Context(), demoTenant)
	if err != nil {
		t.Fatal(err)
	}
	b.funds(demo, "20000000", "many payments")
	l := booktest.New(t, b.db, b.clock.Now())
	t.Cleanup(l.Close)
	return b, demo, l
}

// fetched reads an answer to its end. It returns the number of lines, the time, and the largest heap during the request.
func (b *browsed) fetched(path string, headers ...string) (text []byte, took time.Duration, heap uint64) {
	b.t.Helper()
	runtime.GC()
	begun := time.Now()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %d", path, answer.StatusCode)
	}
	var m runtime.MemStats
	for part := make([]byte, 1<<20); ; {
		n, err := io.ReadFull(answer.Body, part)
		text = append(text, part[:n]...)
		runtime.ReadMemStats(&m)
		heap = max(heap, m.HeapAlloc)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return text, time.Since(begun), heap
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// The statement of a month with 100,000 movements is a page, a CSV file, a workbook and pages of the interface, each in bounded memory
// and 10 s. In the gate it has 4,000 movements.
func TestStatement_wholeMonth(t *testing.T) { // not in parallel: it measures memory and time
	for _, engine := range dbtest.Engines() {
		t.Run(engine.String(), func(t *testing.T) {
			b, demo, l := loaded(t, engine)
			most := int64(4000)
			if matrix.Whole() {
				most = records.StatementMost
			}
			total := func() int64 {
				s, err := b.statements.Open(t.Context(), demo, false, time.Time{}, time.Time{})
				if err != nil {
					t.Fatal(err)
				}
				return s.Total()
			}
			const eachSet = 2100 // movements of 1,000 payments, at most
			for total()+eachSet <= most {
				l.Load(demo, 1000, 0, time.Microsecond)
			}
			rows := total()
			base := b.base + "/app/" + demoTenant + "/statement"
			measured := func(what string, took time.Duration, heap uint64) {
				t.Logf("%s of %d movements: %v, heap %d MB", what, rows, took.Round(time.Millisecond), heap>>20)
				if matrix.Whole() && (took > slowestMonth || heap > largestMonth) {
					t.Errorf("%s: %v, heap %d MB", what, took, heap>>20)
				}
			}
			text, took, heap := b.fetched(base)
			measured("page", took, heap)
			if shown := fmt.Sprintf("1 to 1,000 of %s", money.Grouped(strconv.FormatInt(rows, 10))); !strings.Contains(string(text), shown) {
				t.Errorf("the page lacks %q", shown)
			}
			text, took, heap = b.fetched(base + ".csv")
			measured("CSV", took, heap)
			if lines := int64(strings.Count(string(text), "\n")); lines != rows+3 { // the headings and two balances
				t.Errorf("the file has %d lines of %d movements", lines, rows)
			}
			text, took, heap = b.fetched(base + ".xlsx")
			measured("XLSX", took, heap)
			if !strings.HasPrefix(string(text), "PK") {
				t.Errorf("the workbook begins with %.20q", text)
			}
			b.monthByInterface(rows, measured)
		})
	}
}

// monthByInterface reads a statement from the interface, and checks that its movements lead from the opening to the closing
// balance.
func (b *browsed) monthByInterface(rows int64, measured func(what string, took time.Duration, heap uint64)) {
	b.t.Helper()
	const size = 1000
	var sum money.Pesewas
	var all time.Duration
	var largest uint64
	var seen int64
	for number := int64(1); (number-1)*size < rows; number++ {
		text, took, heap := b.fetched(fmt.Sprintf("%s/account-api/statement?page=%d&page_size=%d", b.ready.APIURL, number, size), "x-api-key", b.ready.APIKey)
		all, largest = all+took, max(largest, heap)
		var answer struct {
			Data struct {
				Opening   json.Number `json:"opening_balance"`
				Closing   json.Number `json:"closing_balance"`
				Movements []struct{ Amount json.Number }
			}
		}
		if err := json.Unmarshal(text, &answer); err != nil {
			b.t.Fatal(err)
		}
		for _, m := range answer.Data.Movements {
			sum += b.pesewas(m.Amount)
		}
		if seen += int64(len(answer.Data.Movements)); seen == rows && b.pesewas(answer.Data.Opening)+sum != b.pesewas(answer.Data.Closing) {
			b.t.Errorf("from %s by %s to %s", answer.Data.Opening, sum, answer.Data.Closing)
		}
	}
	if seen != rows {
		b.t.Errorf("the interface gives %d of %d movements", seen, rows)
	}
	measured("the interface", all, largest)
}

func (b *browsed) pesewas(n json.Number) money.Pesewas {
	b.t.Helper()
	digits, negative := strings.CutPrefix(n.String(), "-")
	amount, err := money.Parse(digits)
	if err != nil {
		b.t.Fatal(err)
	}
	if negative {
		return -amount
	}
	return amount
}

// Of a million payments 1,200 need attention. The home page, the overview and the list of payments that need attention take at most
// 50 ms. Counts in the navigation stop at 99. A person finds their only payment behind a thousand others. Figures of 1,000 more
// payments are complete within 10 s. In the gate there are 3,000 payments.
func TestPages_manyPayments(t *testing.T) { // not in parallel: it measures time
	for _, engine := range dbtest.Engines() {
		t.Run(engine.String(), func(t *testing.T) {
			b, demo, l := loaded(t, engine)
			n, open := 3000, 1200
			if matrix.Whole() {
				n = 1_000_000
			}
			begun := time.Now()
			l.Load(demo, n, open, time.Microsecond)
			t.Logf("loaded %d payments in %v", n, time.Since(begun).Round(time.Second))
			_, err := b.db.Exec(t.Context(), `UPDATE payments SET escalated_at = created_at WHERE status = 'pending'`)
			if err != nil {
				t.Fatal(err)
			}
			b.figured(l, demo)
			stuck, err := b.payments.StuckPage(t.Context(), book.StuckFilter{Limit: 2 * open})
			if err != nil || len(stuck) != open {
				t.Fatalf("%d payments need attention, %v", len(stuck), err)
			}
			last := "/ops/payments/" + stuck[open-1].ID
			b.post(http.StatusSeeOther, last+"/take")
			b.want(http.StatusOK, "/ops/stuck?owner=me", last, ">1<")
			if p := b.want(http.StatusOK, "/ops/stuck", "1,000 or more", "rel=\"next\"", ">99<"); strings.Contains(p.text, last) {
				t.Error("the first page has the newest payment")
			}
			b.want(http.StatusOK, "/ops", "1,000 or more")
			for _, path := range []string{"/ops", "/app/" + demoTenant, "/ops/stuck", "/ops/stuck?owner=me"} {
				took := medianOf(func() { b.want(http.StatusOK, path) })
				t.Logf("%s: %v", path, took)
				if matrix.Whole() && took > slowestHome {
					t.Errorf("%s takes %v", path, took)
				}
			}
		})
	}
}

// figured sums the figures, accepts more payments, and sums the figures of the new payments.
func (b *browsed) figured(l *booktest.Loader, of tenant.Tenant) {
	b.t.Helper()
	for _, what := range []string{"all payments", "1,000 more"} {
		begun := time.Now()
		if err := b.figures.Sum(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
		took := time.Since(begun)
		b.t.Logf("figures of %s: %v", what, took.Round(time.Millisecond))
		if matrix.Whole() && what != "all payments" && took > slowestMonth {
			b.t.Errorf("figures of %s took %v", what, took)
		}
		l.Load(of, 1000, 0, time.Microsecond)
	}
}

// medianOf returns the median time of several calls of look.
func medianOf(look func()) time.Duration {
	times := make([]time.Duration, 9)
	for i := range times {
		begun := time.Now()
		look()
		times[i] = time.Since(begun)
	}
	slices.Sort(times)
	return times[len(times)/2]
}
