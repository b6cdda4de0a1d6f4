//go:build !race

package app_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/books"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/statement"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/booktest"
)

const (
	// growthSizes are the numbers of payments at which is measured. MAKOLA_TEST_BENCH_ROWS asks for others, such as 10000,100000.
	growthSizes = "10000,1000000"
	// growthPace is how long a run at the highest rate lasts, and one at half of it.
	growthPace = 10 * time.Second
	// growthDays are the days over which the payments are spread.
	growthDays = 30
	// No wait of a person is longer than growthLimit milliseconds, or than growthTimes the time at the first size.
	growthLimit, growthTimes = 100.0, 2.0
)

// BenchmarkGrowth measures installations of growing size. The payments are loaded through the book in large transactions, and a
// fifth of them are collections. The benchmark prints a table of figures by size. It reports each figure of the last size divided
// by the figure of the first size.
func BenchmarkGrowth(b *testing.B) {
	for _, engine := range []db.Engine{db.SQLite, db.Postgres} {
		b.Run(engine.String(), func(b *testing.B) {
			for range b.N {
				benchmarkGrowth(b, engine)
			}
		})
	}
}

// grown is an installation of one size.
type grown struct {
	b       *testing.B
	where   site
	sim     *process
	server  *process
	visitor *visitor
	tenant  string
	key     string
	oldest  book.Payment
	load    workload
	lives   *lives
	empty   map[string]int64
	rows    int64
	column  []figure
}

// figure is one line in the column of a size.
type figure struct {
	name   string
	value  float64
	waited bool // whether a person waits for it; the value is then in milliseconds
}

func benchmarkGrowth(b *testing.B, engine db.Engine) {
	var sizes []*grown
	for text := range strings.SplitSeq(cmp.Or(os.Getenv("MAKOLA_TEST_BENCH_ROWS"), growthSizes), ",") {
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		g := &grown{b: b, where: newSite(b, engine), sim: startSim(b), rows: size}
		g.grow()
		g.atRest()
		sizes = append(sizes, g)
	}
	inTurns(sizes)
	var columns [][]figure
	for _, g := range sizes {
		g.underLoad()
		columns = append(columns, g.column)
		g.where.command(b, "ledger", "check")
		g.server.kill()
		g.sim.kill()
		_ = os.RemoveAll(g.where.data)
	}
	fmt.Fprintf(os.Stderr, "%s\n%s", engine, tableOf(b, columns)) // the log of a test run shows long lines only in part
	b.ReportMetric(0, "ns/op")
}

// inTurns times what a person waits for, at each size in turn. The median counts: the machine is shared.
func inTurns(sizes []*grown) {
	waits := make([][]wait, len(sizes))
	for i, g := range sizes {
		waits[i] = g.waits()
	}
	for n, first := range waits[0] {
		took := make([][]time.Duration, len(sizes))
		for range growthLooks {
			for i := range sizes {
				begun := time.Now()
				waits[i][n].once()
				took[i] = append(took[i], time.Since(begun))
			}
		}
		for i, g := range sizes {
			slices.Sort(took[i])
			g.waited(first.label, took[i][growthLooks/2])
		}
	}
}

// tableOf compares the figures of the sizes.
func tableOf(b *testing.B, columns [][]figure) (table string) {
	growing := 0
	for i, f := range columns[0] {
		line := "| " + f.name + " |"
		for _, column := range columns {
			line += fmt.Sprintf(" %.4g |", column[i].value)
		}
		if last := columns[len(columns)-1][i].value; len(columns) > 1 && f.value > 0 {
			line += fmt.Sprintf(" %.2f |", last/f.value)
			if f.waited && last > growthLimit && last > growthTimes*f.value {
				line += " **grows** |"
				growing++
			}
			b.ReportMetric(last/f.value, strings.NewReplacer(" ", "-", "/", "_").Replace(f.name))
		}
		table += line + "\n"
	}
	b.ReportMetric(float64(growing), "break-the-rule")
	return table
}

// add stores a figure. waited stores the time of something that a person waits for, in milliseconds.
func (g *grown) add(name string, value float64) {
	g.column = append(g.column, figure{name, value, false})
}

func (g *grown) waited(name string, took time.Duration) {
	g.column = append(g.column, figure{name + " ms", float64(took.Microseconds()) / 1000, true})
}

// each stores the time of work on many rows, in microseconds a row.
func (g *grown) each(name string, took time.Duration, rows int64) {
	g.add(name+" µs", float64(took.Microseconds())/float64(rows))
}

// open opens the installation's database while no server runs.
func (g *grown) open() *db.DB {
	o := db.Options{URL: g.where.url, MaxConns: 4}
	if g.where.engine == db.SQLite {
		o.Path = filepath.Join(g.where.data, "makola.db")
	}
	d, err := db.Open(g.b.Context(), o)
	if err != nil {
		g.b.Fatal(err)
	}
	return d
}

// grow makes the installation and loads its payments.
func (g *grown) grow() {
	g.server = g.where.serve(g.b, "makola", g.sim)
	g.server.kill()
	g.empty = g.bytes()
	d := g.open()
	defer d.Close()
	loader := booktest.New(g.b, d, time.Now().UTC().AddDate(0, 0, -growthDays))
	defer loader.Close()
	loader.Rail = "mtn" // whose statement is imported; no payment stays open
	of := loader.Tenant("Growth", money.Pesewas(g.rows+1_000_000)*20*money.Cedi)
	begun := time.Now()
	g.oldest = loader.Load(of, int(g.rows), 0, growthDays*24*time.Hour/time.Duration(g.rows))[0]
	g.tenant = of.ID
	fmt.Fprintf(os.Stderr, "%s: loaded %d payments in %v\n", g.where.engine, g.rows, time.Since(begun).Round(time.Second))
	if g.where.engine == db.Postgres { // autovacuum does this in an installation that grew within a month
		if err := d.Write(g.b.Context(), func(tx *db.Tx) error { _, err := tx.Exec("ANALYZE"); return err }); err != nil {
			g.b.Fatal(err)
		}
	}
}

func (g *grown) drain() {
	until := time.Now().Add(patience)
	for g.lives.delivered.Load() < g.lives.accepted.Load() {
		if time.Now().After(until) {
			g.b.Fatalf("%d of %d were delivered", g.lives.delivered.Load(), g.lives.accepted.Load())
		}
		pause(20 * time.Millisecond)
	}
}

// atRest measures the bytes and the checks, without a server, and then starts the server.
func (g *grown) atRest() {
	g.add("payments", float64(g.rows))
	for name, size := range g.perPayment() {
		g.add(name+" bytes", size)
	}
	g.checks()
	begun := time.Now()
	g.server = g.where.serve(g.b, "makola", g.sim)
	g.waited("start", time.Since(begun))
	var key struct {
		Key string `json:"key"`
	}
	decode(g.b, g.where.command(g.b, "key", "create", "--tenant", g.tenant, "-o", "json"), &key)
	g.where.command(g.b, "account", "set", g.tenant, "--payout-ip", "127.0.0.0/8", "--reason", "benchmark")
	g.key, g.visitor = key.Key, visit(g.b, g.server)
}

// underLoad measures what works over all payments, and the rate, which adds payments.
func (g *grown) underLoad() {
	g.files()
	g.reconcile()
	g.each("figures and sums of a payment, counted again,", g.timed(1, "figures", "rebuild"), g.rows)
	g.backup()
	g.load = workload{keys: []string{g.key}, payee: "0240000001", window: window}
	g.lives = &lives{underway: make(chan struct{}, window)}
	g.load.callback = g.lives.sink(g.b)
	before := tpcb(g.b)
	pids := map[string]int{"server": g.server.cmd.Process.Pid}
	cpu, done := cpuOf(g.b, pids), g.lives.delivered.Load()
	rate := g.rate()
	for name, used := range cpuOf(g.b, pids) {
		g.each(name+" CPU of a life", used-cpu[name], g.lives.delivered.Load()-done)
	}
	g.add("payouts a second", rate)
	g.add("of TPC-B", rate/((before+tpcb(g.b))/2))
	g.waited("p99 at half the rate", g.paced(rate/2))
	g.add("memory MB", peakMemory(g.b, g.server.ready.PID))
}

// checks measures the time of the checks of the books and of the hourly sums, without a server.
func (g *grown) checks() {
	d := g.open()
	defer d.Close()
	checks := books.New(d, clock.Real())
	begun := time.Now()
	for {
		if err := checks.Work(g.b.Context()); err != nil {
			g.b.Fatal(err)
		}
		s, err := checks.State(g.b.Context())
		if err != nil || s.Faults > 0 {
			g.b.Fatalf("%d faults, %v", s.Faults, err)
		}
		if !s.FullAt.IsZero() {
			break
		}
	}
	full := time.Since(begun)
	begun = time.Now()
	sums := ledger.New(d, clock.Real(), "growth")
	g.untilIdle(sums.SumHours)
	g.each("sums of hours of a payment", time.Since(begun), g.rows)
	begun = time.Now()
	g.untilIdle(statement.New(d, sums, book.NewReader(d, sums, clock.Real()), tenant.New(d, sums, clock.Real())).SumBlocks)
	g.each("sums of statements of a payment", time.Since(begun), g.rows)
	g.add("recent check ms", float64(best(3, func() {
		if r, err := checks.Recent(g.b.Context()); err != nil || r.Count() > 0 {
			g.b.Fatal(r, err)
		}
	}).Milliseconds()))
	g.each("full check of a payment", full, g.rows)
}

// untilIdle repeats a job until it has no work left. Each run of the job works for two seconds.
func (g *grown) untilIdle(job func(context.Context) error) {
	for took := time.Hour; took > time.Second; {
		begun := time.Now()
		if err := job(g.b.Context()); err != nil {
			g.b.Fatal(err)
		}
		took = time.Since(begun)
	}
}

// backup measures the time of a backup and of its restore.
func (g *grown) backup() {
	folder := g.b.TempDir()
	var whole struct {
		File string `json:"file"`
	}
	begun := time.Now()
	decode(g.b, g.where.command(g.b, "backup", "create", "--folder", folder, "-o", "json"), &whole)
	g.each("backup of a payment", time.Since(begun), g.rows)
	into := g.where.beside(g.b)
	begun = time.Now()
	into.command(g.b, "restore", whole.File)
	g.each("restore of a payment", time.Since(begun), g.rows)
	_, _ = os.RemoveAll(into.data), os.RemoveAll(folder)
}

// rate returns the number of payouts that become final in a second.
func (g *grown) rate() float64 {
	before, begun := g.lives.delivered.Load(), time.Now()
	g.lives.run(g.b, host(g.server.ready.APIURL), g.load, growthPace)
	rate := float64(g.lives.delivered.Load()-before) / time.Since(begun).Seconds()
	g.drain()
	return rate
}

// paced sends rate payouts a second, and returns the 99th percentile of the response times.
func (g *grown) paced(rate float64) time.Duration {
	load := g.load
	load.every = time.Duration(benchClients / rate * float64(time.Second))
	g.lives.forget()
	g.lives.run(g.b, host(g.server.ready.APIURL), load, growthPace)
	g.drain()
	return g.lives.percentile(0.99)
}

// groupsOfGrowth are the tables whose bytes are reported separately. The rows of all other tables are kept for ever.
var groupsOfGrowth = map[string]string{"exchanges": "exchanges", "webhook_events": "webhooks", "webhook_attempts": "webhooks"}

// bytes returns the size on disk of each table and index. Its keys have the form table/index.
func (g *grown) bytes() map[string]int64 {
	// The key of a table without row ids is the table.
	sql := `SELECT m.tbl_name || CASE WHEN m.type = 'index' THEN '/' || m.name ELSE '' END, sum(s.pgsize) FROM dbstat AS s JOIN sqlite_master AS m ON m.name = s.name
WHERE s.aggregate = 1 GROUP BY 1`
	if g.where.engine == db.Postgres {
		sql = `SELECT CAST(c.relname AS TEXT), pg_table_size(c.oid) FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = CAST('public' AS regnamespace)
UNION ALL SELECT c.relname || '/' || i.relname, pg_relation_size(i.oid) FROM pg_class c JOIN pg_index x ON x.indrelid = c.oid JOIN pg_class i ON i.oid = x.indexrelid
WHERE c.relkind = 'r' AND c.relnamespace = CAST('public' AS regnamespace)`
	}
	d := g.open()
	defer d.Close()
	sizes := map[string]int64{}
	err := d.ReadWhole(g.b.Context(), func(tx *db.Tx) error {
		return tx.Query(sql, nil, func(r *db.Row) error {
			var name string
			var size int64
			err := r.Scan(&name, &size)
			sizes[name] = size
			return err
		})
	})
	if err != nil {
		g.b.Fatal(err)
	}
	return sizes
}

// perPayment returns the bytes of a payment in each group of tables, and prints the largest tables and indexes.
func (g *grown) perPayment() func(yield func(string, float64) bool) {
	groups := map[string]float64{"lasting": 0, "exchanges": 0, "webhooks": 0}
	sizes := g.bytes()
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		table, _, _ := strings.Cut(name, "/")
		one := float64(sizes[name]-g.empty[name]) / float64(g.rows)
		groups[cmp.Or(groupsOfGrowth[table], "lasting")] += one
		if one >= 2 {
			fmt.Fprintf(os.Stderr, "%s, %d payments: %s has %.0f bytes of each\n", g.where.engine, g.rows, name, one)
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
