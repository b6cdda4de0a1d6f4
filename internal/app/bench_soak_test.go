//go:build !race

package app_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
)

const (
	// soakFor is the length of a soak; MAKOLA_TEST_SOAK sets another time, such as 1h.
	soakFor = 10 * time.Minute
	// soakEvery is the interval between two samples of the server.
	soakEvery = 5 * time.Second
	// soakFault is the length of each of soakFaults. The last part of a round has no fault.
	soakFault = 20 * time.Second
)

// soakFaults are the faults of a provider. They are injected one after the other, repeatedly.
var soakFaults = []string{"slow", "answer_lost", "request_lost", "error_after", "callback_duplicate", "callback_missing", ""}

// BenchmarkSoak sends payouts at a quarter of the rate that the machine can settle, together with texts and reads, while the
// provider has one fault after the other. It reports memory, descriptors, goroutines, the write-ahead log of SQLite and jobs,
// each in the last third of the time divided by the second third. A ratio above 1 is a leak.
func BenchmarkSoak(b *testing.B) {
	for _, engine := range []db.Engine{db.Postgres, db.SQLite} {
		b.Run(engine.String(), func(b *testing.B) {
			for range b.N {
				benchmarkSoak(b, engine)
			}
		})
	}
}

func benchmarkSoak(b *testing.B, engine db.Engine) {
	length, err := time.ParseDuration(cmp.Or(os.Getenv("MAKOLA_TEST_SOAK"), soakFor.String()))
	if err != nil {
		b.Fatal(err)
	}
	g := &grown{b: b, where: newSite(b, engine), sim: startSim(b)}
	g.server = g.where.serve(b, "makola", g.sim)
	g.load = workload{keys: benchTenants(b, g.where, g.server, 1), payee: "0240000001", window: window}
	g.where.command(b, "wallet", "fund", g.server.ready.TenantID, "90000000.00", "--reason", "benchmark", "--reference", "soak")
	g.where.command(b, "credits", "sell", g.server.ready.TenantID, "1000000", "--price", "0", "--reason", "soak", "--reference", "soak")
	g.lives = &lives{underway: make(chan struct{}, window)}
	g.load.callback = g.lives.sink(b)
	rate := g.rate() / 4
	load := g.load
	load.every = time.Duration(benchClients / rate * float64(time.Second))
	ctx, stop := context.WithTimeout(b.Context(), length)
	defer stop()
	var beside sync.WaitGroup
	beside.Go(func() { g.faults(ctx) })
	beside.Go(func() { g.readers(ctx) })
	var samples []soakSample
	beside.Go(func() { samples = g.samples(ctx) })
	before := g.lives.accepted.Load()
	g.lives.run(b, host(g.server.ready.APIURL), load, length)
	stop()
	beside.Wait()
	g.drain()
	third := len(samples) / 3
	if third == 0 {
		b.Fatal("too few samples")
	}
	for i, name := range soakFigures {
		of := func(part []soakSample) float64 {
			values := make([]float64, len(part))
			for n, s := range part {
				values[n] = s[i]
			}
			slices.Sort(values)
			return values[len(values)/2]
		}
		second, last := of(samples[third:2*third]), of(samples[2*third:])
		b.Logf("%s: %.4g, then %.4g", name, second, last)
		if second > 0 {
			b.ReportMetric(last/second, name)
		}
	}
	b.ReportMetric(float64(g.lives.accepted.Load()-before), "payouts")
	b.ReportMetric(0, "ns/op")
	g.where.command(b, "ledger", "check")
	g.server.kill()
	g.sim.kill()
}

// faults returns the provider one fault after the other.
func (g *grown) faults(ctx context.Context) {
	control := newClient(g.sim.ready.SimURL, "")
	for n := 0; ctx.Err() == nil; n++ {
		if kind := soakFaults[n%len(soakFaults)]; kind != "" {
			a, err := control.call(http.MethodPost, "/faults", map[string]any{"provider": "mtn", "operation": "*", "fault": kind, "delay_s": 0.2, "every": 20, "seconds": soakFault.Seconds()})
			if err != nil || a.status >= 300 {
				g.b.Errorf("the fault %s was not taken: %v %+v", kind, err, a)
				return
			}
		}
		select {
		case <-time.After(soakFault):
		case <-ctx.Done():
		}
	}
}

// readers request histories, and sometimes send a text.
func (g *grown) readers(ctx context.Context) {
	api := newClient(g.server.ready.APIURL, g.server.ready.APIKey)
	for n := 0; ctx.Err() == nil; n++ {
		a, err := api.call(http.MethodGet, fmt.Sprintf("/payment-api/transfers/history?page_size=50&page=%d", 1+n%20), nil)
		if err == nil && a.status == http.StatusOK && n%10 == 0 {
			a, err = api.call(http.MethodPost, "/sms-api/send", map[string]any{"sender_id": g.server.ready.SenderID, "message": smsText, "recipients": recipientsOf(n, 100)})
		}
		if err != nil || a.status != http.StatusOK {
			g.b.Errorf("beside the payouts: %v %+v", err, a)
			return
		}
		pause(100 * time.Millisecond)
	}
}

// soakFigures name the members of a soakSample.
var soakFigures = []string{"memory", "descriptors", "goroutines", "log", "jobs"}

// soakSample has the resources that the server uses at one moment.
type soakSample [5]float64

func (g *grown) samples(ctx context.Context) (all []soakSample) {
	pid := g.server.ready.PID
	for ctx.Err() == nil {
		var s soakSample
		s[0] = memoryOf(g.b, pid, "VmRSS:")
		files, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		s[1] = float64(len(files))
		s[2], s[4] = metric(g.b, g.server, "go_goroutines"), metric(g.b, g.server, "makola_jobs_in_memory")
		if info, err := os.Stat(filepath.Join(g.where.data, "makola.db-wal")); err == nil {
			s[3] = float64(info.Size())
		}
		all = append(all, s)
		select {
		case <-time.After(soakEvery):
		case <-ctx.Done():
		}
	}
	return all
}
