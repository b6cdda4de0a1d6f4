package cli

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// gcPercent lets the heap grow to four times the live memory, because collections slow down requests. The memory
// limits make the collector run more often before the server reaches the documented 200 MB. The 200 MB include the
// program and SQLite's own memory. The simulator has no limit, because it keeps its book in memory and must answer
// every request of a load test.
const (
	gcPercent           = 400
	gcPercentSimulator  = 200
	memoryLimitPostgres = 178 << 20
	memoryLimitSQLite   = 126 << 20
)

// collectLess sets the growth of the heap to percent of the live memory, unless the environment sets it.
func collectLess(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// limitMemory sets the memory limit of the garbage collector until ctx ends, unless the environment sets it. The
// limit is always at least one and a half times the live memory. With a lower limit the collector would use half
// of the processors all the time.
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

// liveMemory returns the bytes that the last collection left, plus the bytes of stacks, which no collection
// frees.
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
