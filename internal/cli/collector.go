package cli

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// gcPercent lets garbage grow to four times the live memory, which is small: every collection is taken from
// requests. The limits make the collector work harder before the server outgrows the 200 MB that the documents
// promise: the program itself comes on top of them, and what SQLite keeps outside of Go's memory.
// The simulator, which answers a load test's every request too, has no limit: its book is in memory.
const (
	gcPercent           = 400
	gcPercentSimulator  = 200
	memoryLimitPostgres = 178 << 20
	memoryLimitSQLite   = 126 << 20
)

// collectLess lets garbage grow to percent of the live memory, unless the environment says how far.
func collectLess(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// limitMemory gives the garbage collector a limit until ctx ends, unless the environment has one. The limit stays above the
// live memory by half of it: a collector whose limit is below what lives takes half of the processors without end, and
// requests wait for it.
func limitMemory(ctx context.Context, postgres bool) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := int64(memoryLimitSQLite)
	if postgres {
		limit = memoryLimitPostgres
	}
	debug.SetMemoryLimit(limit)
	go func() {
		look := time.NewTicker(limitEvery)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				debug.SetMemoryLimit(max(limit, liveMemory()*3/2))
			}
		}
	}()
}

// limitEvery is how often the limit follows the live memory.
const limitEvery = 250 * time.Millisecond

// liveMemory returns the bytes that the last collection left, and those of stacks, which no collection frees.
func liveMemory() int64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	total := int64(0)
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			total += int64(s.Value.Uint64())
		}
	}
	return total
}
