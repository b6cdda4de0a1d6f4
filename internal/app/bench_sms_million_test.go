package app_test

import (
	"bufio"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
)

const (
	millionRequests = 10
	millionOfEach   = 100_000 // the most of one request
	// millionLatency is how long the message centre takes for an answer: with it a window has a limit.
	millionLatency = 20 * time.Millisecond
)

// BenchmarkMillion sends a campaign of a million recipients in ten requests, one after the other. It
// reports how long the requests took, how many messages a second left and which part of the window's
// limit that is (submits under way divided by the message centre's latency), and the server's peak memory.
func BenchmarkMillion(b *testing.B) {
	for _, engine := range []db.Engine{db.Postgres, db.SQLite} {
		b.Run(engine.String(), func(b *testing.B) {
			for range b.N {
				benchmarkMillion(b, engine)
			}
		})
	}
}

func benchmarkMillion(b *testing.B, engine db.Engine) {
	b.StopTimer()
	defer b.ReportMetric(0, "ns/op")
	durable(b, engine)
	sim, where := startSim(b), newSite(b, engine)
	centre := messageCentre(b, sim)
	if a, err := centre.control.call(http.MethodPost, "/smsc", map[string]any{"latency_ms": millionLatency.Milliseconds()}); err != nil || a.status != http.StatusOK {
		b.Fatalf("the message centre has no latency: %v %+v", err, a)
	}
	server := where.serve(b, "makola", sim, centre.flags("--smpp-window", strconv.Itoa(smsWindow))...)
	key, sender := smsTenant(b, where, server)
	waitFor(b, "the connections", func() bool { return centre.totals(b).Bound == 2 })
	connection, err := net.Dial("tcp", host(server.ready.APIURL))
	if err != nil {
		b.Fatal(err)
	}
	defer connection.Close()
	reader := bufio.NewReader(connection)
	request := smsRequest(key, sender, millionOfEach)
	pids := map[string]int{"server": server.ready.PID, "simulator": sim.cmd.Process.Pid}
	cpu := cpuOf(b, pids)
	b.StartTimer()
	begun := time.Now()
	for n := range millionRequests {
		if status, _, err := exchange(connection, reader, request(nil, n)); err != nil || status != http.StatusOK {
			b.Fatalf("request %d was answered with %d: %v", n, status, err)
		}
	}
	took := time.Since(begun)
	const all = millionRequests * millionOfEach
	until := time.Now().Add(2 * patience)
	for centre.totals(b).Accepted < all {
		if time.Now().After(until) {
			b.Fatalf("%d of %d messages left", centre.totals(b).Accepted, all)
		}
		pause(50 * time.Millisecond)
	}
	rate := all / time.Since(begun).Seconds()
	b.StopTimer()
	cpuOf(b, pids).report(b, cpu, all)
	b.ReportMetric(took.Seconds(), "accepted-s")
	b.ReportMetric(rate, "messages/s")
	b.ReportMetric(rate/(smsWindow/millionLatency.Seconds()), "of-window")
	b.ReportMetric(peakMemory(b, server.ready.PID), "MB-peak")
	server.kill()
	sim.kill()
	if n := rowsOf(b, where); n > all {
		b.Errorf("%d messages have a row", n)
	}
}

// smsRequest writes the requests of a benchmark, each to other numbers than the one before.
func smsRequest(key, sender string, recipients int) func(to []byte, n int) []byte {
	head := "POST /api/v1/sms-api/send HTTP/1.1\r\nHost: makola\r\nContent-Type: application/json\r\nx-api-key: " + key + "\r\nContent-Length: "
	return func(to []byte, n int) []byte {
		body := `{"sender_id":"` + sender + `","message":"` + smsText + `","recipients":["` + strings.Join(recipientsOf(n, recipients), `","`) + `"]}`
		return append(to, head+strconv.Itoa(len(body))+"\r\n\r\n"+body...)
	}
}
