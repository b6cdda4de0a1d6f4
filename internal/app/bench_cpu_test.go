package app_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/makola/makola/internal/test/dbtest"
)

// ticksPerSecond is the unit of the times in /proc (USER_HZ), fixed on every Linux that Go runs on.
const ticksPerSecond = 100

// cpuUse has the processor time of the load, the server, the simulator and the database. If they share the processors, it
// explains a rate.
type cpuUse map[string]time.Duration

// cpuOf returns the CPU time that the named processes, this process ("load") and the PostgreSQL of the tests ("database") have used
// so far, with their ended children.
func cpuOf(b *testing.B, pids map[string]int) cpuUse {
	b.Helper()
	_, load := processOf(strconv.Itoa(os.Getpid()))
	use := cpuUse{"load": load}
	for name, pid := range pids {
		_, use[name] = processOf(strconv.Itoa(pid))
	}
	server := postmaster(b)
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range all {
		pid := filepath.Base(path)
		if parent, used := processOf(pid); pid == server || parent == server {
			use["database"] += used
		}
	}
	return use
}

// postmaster returns the id of the process whose children serve the PostgreSQL of the tests.
func postmaster(b *testing.B) string {
	b.Helper()
	c, err := pgx.Connect(b.Context(), os.Getenv(dbtest.Environment))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(b.Context())
	parent, _ := processOf(strconv.FormatUint(uint64(c.PgConn().PID()), 10))
	return parent
}

// report returns the CPU time since before, divided by n, in microseconds.
func (u cpuUse) report(b *testing.B, before cpuUse, n float64) {
	for name := range u {
		b.ReportMetric(float64((u[name]-before[name]).Microseconds())/n, name+"-cpu-µs")
	}
}

// processOf returns the parent of a process, and the user and system time of the process and of its
// children that have ended; nothing of one that has ended itself.
func processOf(pid string) (parent string, used time.Duration) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return "", 0
	}
	_, rest, _ := bytes.Cut(text, []byte(") ")) // the fields after the name, which may contain any character
	fields := strings.Fields(string(rest))
	var ticks int64
	for _, f := range fields[11:15] { // utime, stime, cutime, cstime
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks += n
	}
	return fields[1], time.Duration(ticks) * time.Second / ticksPerSecond
}
