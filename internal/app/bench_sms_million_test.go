package app_test

import (
	"bufio"
	"encoding/binary"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

const (
	millionRequests = 10
	millionOfEach   = 100_000 // maximum of one request
	// millionLatency is the answer time of the message centre. It limits the messages a second of a window.
	millionLatency = 20 * time.Millisecond
	// limitMessages is a number of messages that is enough to measure that limit.
	limitMessages = 30_000
)

// BenchmarkMillion sends a campaign of a million recipients in ten requests, one after the other. It reports how long the
// requests took, how many messages a second left, and the server's peak memory. The limit of the window is the number of open
// submits divided by the message centre's latency. of-window is the share of this limit that was reached. of-bare is the ratio
// to a client that only keeps the same window full.
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
	limit := windowLimit(b, centre)
	before := centre.totals(b).Accepted
	where.live(b)
	server := where.serve(b, "makola", sim, centre.flags("--smpp-window", strconv.Itoa(smsWindow))...)
	key, sender := smsTenant(b, where, server)
	clocktest.Await(b, "the connections", func() bool { return centre.totals(b).Bound == 2 })
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
	for centre.totals(b).Accepted < before+all {
		if time.Now().After(until) {
			b.Fatalf("%d of %d messages left", centre.totals(b).Accepted-before, all)
		}
		pause(50 * time.Millisecond)
	}
	rate := all / time.Since(begun).Seconds()
	b.StopTimer()
	cpuOf(b, pids).report(b, cpu, all)
	b.ReportMetric(took.Seconds(), "accepted-s")
	b.ReportMetric(rate, "messages/s")
	b.ReportMetric(rate/(smsWindow/millionLatency.Seconds()), "of-window")
	b.ReportMetric(rate/limit, "of-bare")
	b.ReportMetric(peakMemory(b, server.ready.PID), "MB-peak")
	server.kill()
	sim.kill()
	if n := rowsOf(b, where); n > all {
		b.Errorf("%d messages have a row", n)
	}
}

// windowLimit returns the messages a second of a client that keeps a window full on one connection and does
// nothing else: it asks for no receipts, and answers none.
func windowLimit(b *testing.B, c *centre) float64 {
	b.Helper()
	connection, err := net.Dial("tcp", c.Address)
	if err != nil {
		b.Fatal(err)
	}
	defer connection.Close()
	const header, bindTransceiver, submit = 16, 9, 4
	unit := func(to []byte, command uint32, sequence int, fields string) []byte {
		to = binary.BigEndian.AppendUint32(to, uint32(header+len(fields)))
		to = binary.BigEndian.AppendUint32(to, command)
		to = binary.BigEndian.AppendUint32(to, 0)
		to = binary.BigEndian.AppendUint32(to, uint32(sequence))
		return append(to, fields...)
	}
	text := string(rune(len(smsText))) + smsText
	submits := func(to []byte, n int) []byte {
		return unit(to, submit, n, "\x00\x05\x00Kejetia\x00\x01\x01"+recipientsOf(n, 1)[0]+"\x00"+strings.Repeat("\x00", 9)+text)
	}
	reader := bufio.NewReaderSize(connection, 32<<10)
	answered := func() {
		length, err := reader.Peek(4)
		if err == nil {
			_, err = reader.Discard(int(binary.BigEndian.Uint32(length)))
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	out := unit(nil, bindTransceiver, 1, c.SystemID+"\x00"+c.Password+"\x00\x00\x34\x00\x00\x00")
	send := func() {
		if _, err := connection.Write(out); err != nil {
			b.Fatal(err)
		}
		out = out[:0]
	}
	send()
	answered()
	before, begun, sent := c.totals(b).Accepted, time.Now(), 0
	for ; sent < smsWindow; sent++ {
		out = submits(out, sent)
	}
	send()
	for range limitMessages {
		answered()
		if sent < limitMessages {
			out = submits(out, sent)
			sent++
		}
		if reader.Buffered() == 0 {
			send()
		}
	}
	rate := limitMessages / time.Since(begun).Seconds()
	if n := c.totals(b).Accepted - before; n != limitMessages {
		b.Fatalf("%d of %d messages were taken", n, limitMessages)
	}
	return rate
}

// smsRequest writes the requests of a benchmark, each to new numbers.
func smsRequest(key, sender string, recipients int) func(to []byte, n int) []byte {
	head := "POST /api/v1/sms-api/send HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nx-api-key: " + key + "\r\nContent-Length: "
	return func(to []byte, n int) []byte {
		body := `{"sender_id":"` + sender + `","message":"` + smsText + `","recipients":["` + strings.Join(recipientsOf(n, recipients), `","`) + `"]}`
		return append(to, head+strconv.Itoa(len(body))+"\r\n\r\n"+body...)
	}
}
