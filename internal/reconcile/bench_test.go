package reconcile

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// BenchmarkStatements imports a month of lines in files of 90,000 and matches them with as many payments, while a neighbour makes small writes
// in the foreground. It reports the times and the processor times of both (of this process: not of PostgreSQL), the heap that matching needs,
// the neighbour's latency, and that of the lists behind.
func BenchmarkStatements(b *testing.B) {
	for _, engine := range dbtest.Engines() {
		for _, lines := range []int{100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", engine, lines), func(b *testing.B) {
				for range b.N {
					benchmarkStatements(b, dbtest.Open(b, engine), lines)
				}
			})
		}
	}
}

// processor returns the processor time of this process.
func processor(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func benchmarkStatements(b *testing.B, d *db.DB, lines int) {
	f := newFixture(b, d)
	f.clock.Advance(monthBegin.AddDate(0, 1, 3).Sub(f.clock.Now()))
	g := generate(lines, lines/200)
	f.pay(g.rows...)
	g.rows = nil
	idle := f.neighbour(func() { time.Sleep(3 * time.Second) }) // a benchmark measures real time
	lap, used := time.Now(), processor(b)
	beside := f.neighbour(func() { g.give(f, 90_000) })
	b.ReportMetric(time.Since(lap).Seconds(), "s/import")
	b.ReportMetric((processor(b) - used).Seconds(), "cpu-s/import")
	b.ReportMetric(milliseconds(beside), "ms-neighbour-p99-import")
	g.lines = nil
	lap, used = time.Now(), processor(b)
	most := uint64(0)
	beside = f.neighbour(func() { most = peak(f.match) })
	b.ReportMetric(time.Since(lap).Seconds(), "s/match")
	b.ReportMetric((processor(b) - used).Seconds(), "cpu-s/match")
	b.ReportMetric(float64(most)/(1<<20), "MB-match")
	b.ReportMetric(milliseconds(idle), "ms-neighbour-p99-idle")
	b.ReportMetric(milliseconds(beside), "ms-neighbour-p99-match")
	b.ReportMetric(float64(beside)/float64(idle), "times-of-idle-p99")
	f.endsMany(lines / 5)
	b.ReportMetric(milliseconds(f.slowest()), "ms-slowest-list")
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// neighbour makes a small foreground write every 10 ms while do runs, and returns the 99th percentile of their times.
func (f *fixture) neighbour(do func()) time.Duration {
	stop, took := make(chan struct{}), []time.Duration{}
	var running sync.WaitGroup
	running.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
			begun := time.Now()
			if err := f.db.Write(f.t.Context(), func(tx *db.Tx) error {
				_, err := tx.Exec(insertUndone, "neighbour "+newID(), strconv.Itoa(n), "r", "a", begun)
				return err
			}); err != nil {
				f.t.Logf("the neighbour gave up: %v", err)
			}
			took = append(took, time.Since(begun))
		}
	})
	do()
	close(stop)
	running.Wait()
	slices.Sort(took)
	return took[len(took)*99/100]
}

// peak returns the largest growth of the heap while do ran, in bytes.
func peak(do func()) (most uint64) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	before := heap()
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				most = max(most, heap()-min(heap(), before))
			}
		}
	})
	do()
	close(stop)
	running.Wait()
	return most
}

// endsMany stores n resolved exceptions, as after years of operation.
func (f *fixture) endsMany(n int) {
	f.t.Helper()
	list := make([]Exception, n)
	for i := range list {
		list[i] = Exception{ID: newID(), Source: mtn, Kind: TheirsOnly, Line: "ended " + strconv.Itoa(i), Amount: 1, Delta: 1, Reason: "r", At: monthBegin, OpenedAt: monthBegin}
	}
	for part := range slices.Chunk(list, 1000) {
		if err := f.db.Write(f.t.Context(), func(tx *db.Tx) error {
			db.Insert(tx, "statement_exceptions", append(insertExceptions,
				db.Column[Exception]{Name: "ended_at", Time: func(e Exception) time.Time { return e.OpenedAt }},
				db.Column[Exception]{Name: "ending", Text: func(Exception) string { return string(EndedWritten) }}), part)
			return nil
		}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// slowest returns the time of the slowest list of the pages. Each list is read five times.
func (f *fixture) slowest() (most time.Duration) {
	f.t.Helper()
	statements, err := f.Statements(f.t.Context(), "", 51)
	if err != nil {
		f.t.Fatal(err)
	}
	newest := statements[0].ID
	for name, read := range map[string]func() error{
		"statements":       func() error { _, err := f.Statements(f.t.Context(), "", 51); return err },
		"lines":            func() error { _, err := f.LinesOf(f.t.Context(), newest, 40_000, 51); return err },
		"exceptions":       func() error { _, err := f.Exceptions(f.t.Context(), Filter{Limit: 51}); return err },
		"of a source":      func() error { _, err := f.Exceptions(f.t.Context(), Filter{Source: mtn, Limit: 51}); return err },
		"of a kind":        func() error { _, err := f.Exceptions(f.t.Context(), Filter{Kind: Twice, Limit: 51}); return err },
		"of nobody":        func() error { _, err := f.Exceptions(f.t.Context(), Filter{Owner: NoOwner, Limit: 51}); return err },
		"of a rare amount": func() error { _, err := f.Exceptions(f.t.Context(), Filter{Least: 1 << 40, Limit: 51}); return err },
		"ended":            func() error { _, err := f.Exceptions(f.t.Context(), Filter{Ended: true, Limit: 51}); return err },
		"in suspense": func() error {
			_, err := f.Exceptions(f.t.Context(), Filter{Ending: EndedSuspend, Limit: 51})
			return err
		},
		"old":   func() error { _, err := f.Old(f.t.Context(), time.Hour, 1000); return err },
		"count": func() error { _, err := f.Open(f.t.Context(), 1000); return err },
	} {
		for range 5 {
			begun := time.Now()
			if err := read(); err != nil {
				f.t.Fatal(name, err)
			}
			if took := time.Since(begun); took > most {
				most = took
				f.t.Logf("%s took %s", name, took.Round(time.Microsecond))
			}
		}
	}
	return most
}
