package app_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
)

// openPayments is the number of payouts that wait for their provider at the same time.
const openPayments = 100_000

// BenchmarkOpenPayments measures the server's memory while 100,000 payouts wait for their provider. It measures again while a
// customer also sends the largest lists and names the largest groups. The simulator is a separate process.
func BenchmarkOpenPayments(b *testing.B) {
	for _, engine := range []db.Engine{db.Postgres, db.SQLite} {
		b.Run(engine.String(), func(b *testing.B) {
			for range b.N {
				benchmarkOpenPayments(b, engine)
			}
		})
	}
}

func benchmarkOpenPayments(b *testing.B, engine db.Engine) {
	sim, where := startSim(b), newSite(b, engine)
	server := where.serve(b, "makola", sim)
	load := workload{keys: benchTenants(b, where, server, 1), payee: "0240000003"} // they stay pending until the benchmark resolves them
	address := strings.TrimPrefix(strings.TrimSuffix(server.ready.APIURL, "/api/v1"), "http://")
	var l lives
	for l.accepted.Load() < openPayments {
		l.run(b, address, load, time.Second)
	}
	opened := peakMemory(b, server.ready.PID)
	a := newAttacker(b, server.ready.APIURL, server.ready.APIKey, server.ready.SenderID)
	ctx, stop := context.WithTimeout(b.Context(), neighbourFor)
	defer stop()
	var group sync.WaitGroup
	a.attack(ctx, &group)
	<-ctx.Done()
	a.release()
	group.Wait()
	b.ReportMetric(float64(l.accepted.Load()), "open")
	b.ReportMetric(opened, "MB-peak")
	b.ReportMetric(peakMemory(b, server.ready.PID), "attacked-MB-peak")
	b.ReportMetric(0, "ns/op")
	server.kill()
	sim.kill()
}
