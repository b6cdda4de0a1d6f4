package app_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ticksPerSecond is the unit of the times in /proc (USER_HZ), fixed on every Linux that Go runs on.
const ticksPerSecond = 100

// cpuUse says who used the processors: where the load, the server, the simulator and the database share
// them, it is what a rate can be explained by.
type cpuUse map[string]time.Duration

// cpuOf reads the CPU time so far of the named processes, of this one ("load") and of every PostgreSQL
// ("database"), their dead children among them.
func cpuOf(b *testing.B, pids map[string]int) cpuUse {
	b.Helper()
	use := cpuUse{"load": cpuTime(fmt.Sprintf("/proc/%d/stat", os.Getpid()))}
	for name, pid := range pids {
		use[name] = cpuTime(fmt.Sprintf("/proc/%d/stat", pid))
	}
	all, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, path := range all {
		if comm, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(comm), "postgres") {
			use["database"] += cpuTime(filepath.Join(filepath.Dir(path), "stat"))
		}
	}
	return use
}

// report gives the CPU time since before, divided by n, in microseconds.
func (u cpuUse) report(b *testing.B, before cpuUse, n float64) {
	for name := range u {
		b.ReportMetric(float64((u[name]-before[name]).Microseconds())/n, name+"-cpu-µs")
	}
}

// cpuTime is the user and system time of a process and of its children that have ended.
func cpuTime(path string) time.Duration {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0 // it has ended
	}
	_, rest, _ := bytes.Cut(text, []byte(") ")) // after the name, which may hold anything
	fields := strings.Fields(string(rest))
	var ticks int64
	for _, f := range fields[11:15] { // utime, stime, cutime, cstime
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}
