package app_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

// BenchmarkNodes sends whole lives of payouts to one, two and three nodes on one PostgreSQL, all on one machine. It shows the cost
// and gain of further nodes on this machine, but not of further machines.
func BenchmarkNodes(b *testing.B) {
	for nodes := 1; nodes <= 3; nodes++ {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			for range b.N {
				benchmarkNodes(b, nodes)
			}
		})
	}
}

func benchmarkNodes(b *testing.B, nodes int) {
	b.StopTimer()
	before := tpcb(b)
	sim, where := startSim(b), newSite(b, db.Postgres)
	first := where.serve(b, "node 1", sim)
	pids := map[string]int{"server": first.cmd.Process.Pid, "simulator": sim.cmd.Process.Pid}
	w := workload{keys: benchTenants(b, where, first, 1), payee: "0240000001", window: window}
	servers := []*process{first}
	for n := 2; n <= nodes; n++ {
		server := where.serve(b, fmt.Sprint("node ", n), sim)
		servers, w.others = append(servers, server), append(w.others, host(server.ready.APIURL))
		pids[fmt.Sprint("server-", n)] = server.cmd.Process.Pid
	}
	l := &lives{underway: make(chan struct{}, w.window)}
	w.callback = l.sink(b)
	cpu := cpuOf(b, pids)
	b.StartTimer()
	begun := time.Now()
	l.run(b, host(first.ready.APIURL), w, lifeFor)
	took := time.Since(begun)
	b.StopTimer()
	rate := float64(l.delivered.Load()) / took.Seconds()
	clocktest.Await(b, "the drain", func() bool { return l.delivered.Load() >= l.accepted.Load() })
	cpuOf(b, pids).report(b, cpu, float64(l.delivered.Load()))
	after := tpcb(b)
	b.ReportMetric(rate, "payouts/s")
	b.ReportMetric(rate/((before+after)/2), "of-tpcb")
	b.ReportMetric(float64(l.percentile(0.5).Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(l.percentile(0.99).Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op")
	where.command(b, "ledger", "check")
	for _, server := range servers {
		server.kill()
	}
	sim.kill()
}
