package app_test

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

const (
	// growthSizes are the numbers of payments at which is measured; MAKOLA_TEST_BENCH_ROWS asks for others, as for
	// 10,000,000, which take an hour.
	growthSizes = "10000,1000000"
	// growthPace is how long a run at the highest rate lasts, and one at half of it.
	growthPace = 10 * time.Second
	// growthTexts are sent at the end, for the size of a message.
	growthTexts, growthTextsOfEach = 100_000, 10_000
)

// BenchmarkGrowth measures one installation as its payments grow: rate of a whole life, p99 of an accepted payout at half of
// it, pages, a search, the day's statement, the check of the books, a backup, a start, memory, and bytes on disk. It logs a
// table, and reports the figures of the last size as times of those of the first.
func BenchmarkGrowth(b *testing.B) {
	for _, engine := range []db.Engine{db.Postgres, db.SQLite} {
		b.Run(engine.String(), func(b *testing.B) {
			for range b.N {
				benchmarkGrowth(b, engine)
			}
		})
	}
}

// grown is an installation that grows.
type grown struct {
	b      *testing.B
	where  site
	sim    *process
	server *process
	load   workload
	lives  *lives
	empty  map[string]int64
	tables string // the bytes of the largest
}

// figure is one line of a size's column.
type figure struct {
	name  string
	value float64
}

func benchmarkGrowth(b *testing.B, engine db.Engine) {
	g := &grown{b: b, where: newSite(b, engine), sim: startSim(b)}
	g.server = g.where.serve(b, "makola", g.sim)
	g.empty = g.bytes()
	g.load = workload{keys: benchTenants(b, g.where, g.server, 1), payee: "0240000001", window: window}
	g.where.command(b, "wallet", "fund", g.server.ready.TenantID, "90000000.00", "--reason", "benchmark", "--reference", "growth")
	g.lives = &lives{underway: make(chan struct{}, window)}
	g.load.callback = g.lives.sink(b)
	var columns [][]figure
	for text := range strings.SplitSeq(cmp.Or(os.Getenv("MAKOLA_TEST_BENCH_ROWS"), growthSizes), ",") {
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		g.grow(size)
		columns = append(columns, g.measure())
	}
	first, last, table := columns[0], columns[len(columns)-1], g.tables
	for i, f := range last {
		line := "| " + f.name + " |"
		for _, column := range columns {
			line += fmt.Sprintf(" %.4g |", column[i].value)
		}
		table += line + "\n"
		if first[i].value > 0 {
			b.ReportMetric(f.value/first[i].value, strings.ReplaceAll(f.name, " ", "-"))
		}
	}
	fmt.Fprintf(os.Stderr, "%s\n%sbytes of a message: %.0f\n", engine, table, g.message()) // a log is cut
	b.ReportMetric(0, "ns/op")
	g.where.command(b, "ledger", "check")
	g.server.kill()
	g.sim.kill()
}

// grow sends payouts until there are so many, and waits until each is settled and told.
func (g *grown) grow(size int64) {
	for g.lives.accepted.Load() < size && !g.b.Failed() {
		g.lives.run(g.b, host(g.server.ready.APIURL), g.load, 2*time.Second)
	}
	g.drain()
}

func (g *grown) drain() {
	until := time.Now().Add(patience)
	for g.lives.delivered.Load() < g.lives.accepted.Load() {
		if time.Now().After(until) {
			g.b.Fatalf("%d of %d were told", g.lives.delivered.Load(), g.lives.accepted.Load())
		}
		pause(20 * time.Millisecond)
	}
}

func (g *grown) measure() (column []figure) {
	add := func(name string, value float64) { column = append(column, figure{name, value}) }
	ms := func(name string, took time.Duration) { add(name+" ms", float64(took.Microseconds())/1000) }
	rows := g.lives.accepted.Load()
	add("payments", float64(rows))
	for name, size := range g.perPayment(rows) {
		add(name+" bytes", size)
	}
	g.server.kill()
	begun := time.Now()
	g.server = g.where.serve(g.b, "makola", g.sim)
	ms("start", time.Since(begun))
	ms("first page", g.page(1))
	ms("middle page", g.page(rows/pageOfGrowth/2))
	ms("last page", g.page(rows/pageOfGrowth))
	ms("find", g.timed(3, "payouts", "find", "nothing-like-it"))
	ms("statement of no day", g.timed(3, "ledger", "statement", g.server.ready.TenantID, "--from", "2020-01-01", "--to", "2020-01-02"))
	ms("ledger check", g.timed(1, "ledger", "check"))
	ms("backup", g.timed(1, "backup", "create", "--folder", g.b.TempDir()))
	before := tpcb(g.b)
	rate := g.rate()
	add("payouts a second", rate)
	add("of TPC-B", rate/((before+tpcb(g.b))/2))
	ms("p99 at half the rate", g.paced(rate/2))
	add("memory MB", peakMemory(g.b, g.server.ready.PID))
	return column
}

// pageOfGrowth is how many rows a page of the history has.
const pageOfGrowth = 50

// page is the median of nine readings of a page of the history.
func (g *grown) page(n int64) time.Duration {
	api := newClient(g.server.ready.APIURL, g.server.ready.APIKey)
	return median(9, func() {
		var rows []map[string]any
		api.get(g.b, fmt.Sprintf("/payment-api/transfers/history?page_size=%d&page=%d", pageOfGrowth, max(1, n)), &rows)
		if len(rows) == 0 {
			g.b.Fatalf("page %d is empty", n)
		}
	})
}

// timed is the median of so many runs of a command.
func (g *grown) timed(runs int, args ...string) time.Duration {
	return median(runs, func() { g.where.command(g.b, args...) })
}

func median(n int, once func()) time.Duration {
	took := make([]time.Duration, n)
	for i := range took {
		begun := time.Now()
		once()
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	return took[n/2]
}

// rate is how many payouts a second come to their end.
func (g *grown) rate() float64 {
	before, begun := g.lives.delivered.Load(), time.Now()
	g.lives.run(g.b, host(g.server.ready.APIURL), g.load, growthPace)
	rate := float64(g.lives.delivered.Load()-before) / time.Since(begun).Seconds()
	g.drain()
	return rate
}

// paced sends so many payouts a second, and gives the p99 of their answers.
func (g *grown) paced(rate float64) time.Duration {
	load := g.load
	load.every = time.Duration(benchClients / rate * float64(time.Second))
	g.lives.forget()
	g.lives.run(g.b, host(g.server.ready.APIURL), load, growthPace)
	g.drain()
	return g.lives.percentile(0.99)
}

// groupsOfGrowth are the tables whose bytes are reported apart; the others stay for ever.
var groupsOfGrowth = map[string]string{"exchanges": "exchanges", "webhook_events": "webhooks", "webhook_attempts": "webhooks"}

// bytes gives the bytes on disk of each table with its indexes.
func (g *grown) bytes() map[string]int64 {
	o := db.Options{URL: g.where.url, MaxConns: 1}
	// The indexes of SQLite have tables of their own there.
	sql := `SELECT m.tbl_name, sum(s.pgsize) FROM dbstat AS s JOIN sqlite_master AS m ON m.name = s.name WHERE s.aggregate = 1 GROUP BY m.tbl_name`
	if g.where.engine == db.SQLite {
		o.Path = filepath.Join(g.where.data, "makola.db")
	} else {
		sql = `SELECT CAST(relname AS TEXT), pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = CAST('public' AS regnamespace)`
	}
	d, err := db.Open(g.b.Context(), o)
	if err != nil {
		g.b.Fatal(err)
	}
	defer d.Close()
	sizes := map[string]int64{}
	err = d.ReadWhole(g.b.Context(), func(tx *db.Tx) error {
		return tx.Query(sql, nil, func(r *db.Row) error {
			var table string
			var size int64
			err := r.Scan(&table, &size)
			sizes[table] = size
			return err
		})
	})
	if err != nil {
		g.b.Fatal(err)
	}
	return sizes
}

// perPayment gives the bytes of a payment, by group, and logs the largest tables.
func (g *grown) perPayment(rows int64) func(yield func(string, float64) bool) {
	groups := map[string]float64{"lasting": 0, "exchanges": 0, "webhooks": 0}
	sizes := g.bytes()
	for _, table := range slices.Sorted(maps.Keys(sizes)) {
		one := float64(sizes[table]-g.empty[table]) / float64(rows)
		groups[cmp.Or(groupsOfGrowth[table], "lasting")] += one
		if one >= 5 {
			g.tables += fmt.Sprintf("%d payments: %s has %.0f bytes of each\n", rows, table, one)
		}
	}
	return func(yield func(string, float64) bool) {
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			if !yield(name, groups[name]) {
				return
			}
		}
	}
}

// message gives the bytes of a message that was sent and reported.
func (g *grown) message() float64 {
	tenant := g.server.ready.TenantID
	g.where.command(g.b, "credits", "sell", tenant, fmt.Sprint(growthTexts), "--price", "0", "--reason", "growth", "--reference", "growth")
	before := sum(g.bytes())
	connection, err := net.Dial("tcp", host(g.server.ready.APIURL))
	if err != nil {
		g.b.Fatal(err)
	}
	defer connection.Close()
	reader, request := bufio.NewReader(connection), smsRequest(g.server.ready.APIKey, g.server.ready.SenderID, growthTextsOfEach)
	for n := range growthTexts / growthTextsOfEach {
		if status, _, err := exchange(connection, reader, request(nil, n)); err != nil || status != http.StatusOK {
			g.b.Fatalf("texts were answered with %d: %v", status, err)
		}
	}
	clocktest.Await(g.b, "the messages to be sent", func() bool {
		var list []struct {
			Left int `json:"chunks_left"`
		}
		decode(g.b, g.where.command(g.b, "campaigns", "list", tenant, "-o", "json"), &list)
		left := 0
		for _, c := range list {
			left += c.Left
		}
		return len(list) >= growthTexts/growthTextsOfEach && left == 0
	})
	return float64(sum(g.bytes())-before) / growthTexts
}

func sum(sizes map[string]int64) (all int64) {
	for _, n := range sizes {
		all += n
	}
	return all
}
