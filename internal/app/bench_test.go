package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// The lengths of the runs.
const (
	burstFor  = 10 * time.Second
	lifeFor   = 30 * time.Second
	tpcbFor   = 10 * time.Second
	tpcbScale = 50
)

// BenchmarkPayouts sends payouts over HTTP to a server in its own process, with the simulator in another. pgbench's TPC-B runs
// on the same PostgreSQL in the same run. It reports payouts a second, their ratio to TPC-B, the answer's percentiles and the
// server's memory at its highest.
func BenchmarkPayouts(b *testing.B) {
	for _, engine := range []db.Engine{db.Postgres, db.SQLite} {
		for _, c := range []struct {
			name string
			work workload
			life bool
			many int
			slow bool
		}{
			{name: "burst/hot", work: workload{payee: "0240000001"}},
			{name: "life/hot", work: workload{payee: "0240000001", window: window}, life: true},
			{name: "life/hot-5pc-duplicates", work: workload{payee: "0240000001", window: window, duplicates: 5}, life: true},
			{name: "life/hot-slow-provider", work: workload{payee: "0240000001", window: window}, life: true, slow: true},
			{name: "burst/zipf", work: workload{payee: "0240000001"}, many: 1000},
			{name: "life/zipf", work: workload{payee: "0240000001", window: window}, life: true, many: 1000},
		} {
			b.Run(engine.String()+"/"+c.name, func(b *testing.B) {
				benchmarkPayouts(b, engine, c.work, c.life, max(1, c.many), c.slow)
			})
		}
	}
}

func benchmarkPayouts(b *testing.B, engine db.Engine, w workload, life bool, tenants int, slow bool) {
	for range b.N {
		b.StopTimer()
		before := tpcb(b)
		sim, where := startSim(b), newSite(b, engine)
		server := where.serve(b, "makola", sim)
		w.keys = benchTenants(b, where, server, tenants)
		if slow {
			root := newClient(sim.ready.SimURL, "")
			if a, err := root.call("POST", "/faults", map[string]any{"provider": "mtn", "operation": "*", "fault": "slow", "delay_s": 0.2, "seconds": 600}); err != nil || a.status >= 300 {
				b.Fatalf("the fault was not taken: %v %+v", err, a)
			}
		}
		l := &lives{}
		if w.window > 0 {
			l.underway = make(chan struct{}, w.window)
		}
		w.callback = l.sink(b)
		length := burstFor
		if life {
			length = lifeFor
		}
		address := host(server.ready.APIURL)
		pids := map[string]int{"server": server.cmd.Process.Pid, "simulator": sim.cmd.Process.Pid}
		cpu := cpuOf(b, pids)
		b.StartTimer()
		begun := time.Now()
		l.run(b, address, w, length)
		took := time.Since(begun)
		b.StopTimer()
		done := float64(l.accepted.Load())
		if life {
			done = float64(l.delivered.Load())
		}
		clocktest.Await(b, "the drain", func() bool { return l.delivered.Load() >= l.accepted.Load() })
		drained := time.Since(begun)
		cpuOf(b, pids).report(b, cpu, float64(l.delivered.Load()))
		after := tpcb(b)
		rate := done / took.Seconds()
		b.ReportMetric(rate, "payouts/s")
		b.ReportMetric(rate/((before+after)/2), "of-tpcb")
		b.ReportMetric(float64(l.percentile(0.5).Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(l.percentile(0.99).Microseconds())/1000, "p99-ms")
		b.ReportMetric(drained.Seconds(), "drained-s")
		b.ReportMetric(peakMemory(b, server.ready.PID), "MB-peak")
		b.ReportMetric(0, "ns/op")
		where.command(b, "ledger", "check")
		server.kill()
		sim.kill()
	}
}

// benchTenants makes and funds the tenants of a run, and returns their keys. If there is only one, it is the demo tenant.
func benchTenants(b *testing.B, where site, server *process, n int) []string {
	if n == 1 {
		where.command(b, "wallet", "fund", server.ready.TenantID, "10000000.00", "--reason", "benchmark", "--reference", "load")
		return []string{server.ready.APIKey}
	}
	keys := make([]string, n)
	for i := range keys {
		var tenant struct {
			ID string `json:"id"`
		}
		var key struct {
			Key string `json:"key"`
		}
		decode(b, where.command(b, "tenant", "create", fmt.Sprintf("Bench %d", i), "--mode", "test", "--payout-ip", "127.0.0.0/8", "-o", "json"), &tenant)
		decode(b, where.command(b, "key", "create", "--tenant", tenant.ID, "-o", "json"), &key)
		where.command(b, "wallet", "fund", tenant.ID, "1000000.00", "--reason", "benchmark", "--reference", tenant.ID)
		keys[i] = key.Key
	}
	return keys
}

func decode(tb testing.TB, text []byte, into any) {
	tb.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		tb.Fatalf("%v in %s", err, text)
	}
}

var tpsLine = regexp.MustCompile(`tps = ([0-9.]+) \(without initial connection time\)`)

// tpcb runs the reference load: pgbench's TPC-B with prepared statements and 32 clients, on the PostgreSQL of the benchmark, which
// must have full durability.
func tpcb(b *testing.B) float64 {
	b.Helper()
	if _, err := exec.LookPath(pgbench()); err != nil {
		b.Fatal("pgbench is not here: it comes with PostgreSQL")
	}
	durable(b, db.Postgres)
	address := yardstick(b, os.Getenv(dbtest.Environment))
	if exec.Command(pgbench(), "-n", "-t", "1", address).Run() != nil { // not filled yet
		if out, err := exec.Command(pgbench(), "-i", "-q", "-s", strconv.Itoa(tpcbScale), address).CombinedOutput(); err != nil {
			b.Fatalf("pgbench -i: %v\n%s", err, out)
		}
	}
	out, err := exec.Command(pgbench(), "-n", "-M", "prepared", "-c", "32", "-j", "2", "-T", strconv.Itoa(int(tpcbFor.Seconds())), address).CombinedOutput()
	if err != nil {
		b.Fatalf("pgbench: %v\n%s", err, out)
	}
	m := tpsLine.FindSubmatch(out)
	if m == nil {
		b.Fatalf("pgbench said nothing of tps:\n%s", out)
	}
	tps, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("TPC-B: %.0f a second", tps)
	return tps
}

// durable refuses a PostgreSQL that may lose commits.
func durable(b *testing.B, engine db.Engine) {
	b.Helper()
	if engine != db.Postgres {
		return
	}
	d, err := db.Open(context.Background(), db.Options{URL: os.Getenv(dbtest.Environment)})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	var fsync string
	if _, err := d.ReadOne(context.Background(), "SHOW fsync", nil, &fsync); err != nil || fsync != "on" {
		b.Fatalf("the benchmark wants a durable PostgreSQL (scripts/postgres.sh --durable start), this one has fsync %q (%v)", fsync, err)
	}
}

// yardstick is the name of pgbench's database. It is kept between runs, because filling it takes longer than using it.
func yardstick(b *testing.B, server string) string {
	b.Helper()
	ctx := context.Background()
	connection, err := pgx.Connect(ctx, server)
	if err != nil {
		b.Fatal(err)
	}
	defer connection.Close(ctx)
	var taken *pgconn.PgError
	if _, err := connection.Exec(ctx, "CREATE DATABASE makola_tpcb"); err != nil && (!errors.As(err, &taken) || taken.Code != "42P04") {
		b.Fatal(err)
	}
	u, err := url.Parse(server)
	if err != nil {
		b.Fatal(err)
	}
	u.Path = "/makola_tpcb"
	return u.String()
}

func pgbench() string {
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench"); len(found) > 0 {
		return found[len(found)-1]
	}
	return "pgbench"
}

// peakMemory returns the peak resident memory of a process in MB (Linux).
func peakMemory(b *testing.B, pid int) float64 { return memoryOf(b, pid, "VmHWM:") }

// memoryOf returns one line of a process's memory status in Linux, in MB.
func memoryOf(b *testing.B, pid int, line string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Logf("no memory figure: %v", err)
		return 0
	}
	for said := range strings.Lines(string(text)) {
		if f := strings.Fields(said); len(f) > 1 && f[0] == line {
			kb, _ := strconv.ParseFloat(f[1], 64)
			return kb / 1024
		}
	}
	return 0
}
