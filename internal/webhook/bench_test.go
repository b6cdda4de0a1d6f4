package webhook

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/makola/makola/internal/test/dbtest"
)

// sink is a receiver that needs almost no time.
func sink(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				in := bufio.NewReaderSize(conn, 2<<10)
				for {
					length := 0
					for {
						line, err := in.ReadSlice('\n')
						if err != nil {
							return
						}
						if len(line) == 2 {
							break
						}
						if text := string(line); strings.HasPrefix(text, "Content-Length: ") {
							length, _ = strconv.Atoi(strings.TrimSpace(text[16:]))
						}
					}
					if _, err := io.CopyN(io.Discard, in, int64(length)); err != nil {
						return
					}
					if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String() + "/hook"
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDeliver measures events from Queue to their stored delivery, in commits of 256 as when payments settle.
// The CPU time is that of this process. It includes SQLite's work and a few microseconds of the receiver.
func BenchmarkDeliver(b *testing.B) {
	const events = 20_000
	for _, e := range dbtest.Engines() {
		b.Run(e.String(), func(b *testing.B) {
			for b.Loop() {
				r := newRig(b, dbtest.Open(b, e), "a", Options{})
				url := sink(b)
				r.send(r.event(0, func(e *Event) { e.URL = url }))
				r.quiet()
				begun, used := time.Now(), cpu()
				for n := 1; n <= events; n += 256 {
					var batch []Event
					for i := range 256 {
						batch = append(batch, r.event(n+i, func(e *Event) { e.URL = url }))
					}
					r.send(batch...)
				}
				ctx, cancel := context.WithTimeout(b.Context(), 10*patience)
				if err := r.q.Quiet(ctx); err != nil {
					b.Fatal(err)
				}
				cancel()
				took, work := time.Since(begun), cpu()-used
				n := float64(r.Counts().Delivered)
				b.ReportMetric(n/took.Seconds(), "deliveries/s")
				b.ReportMetric(float64(work.Microseconds())/n, "cpu-µs/delivery")
			}
		})
	}
}

// BenchmarkSend measures only the HTTP side.
func BenchmarkSend(b *testing.B) {
	c := newClient(Options{Timeout: patience, Development: true})
	body, err := bodyOf(Event{Kind: Payout, Status: "success", Amount: 1000, Charges: 10, Reference: "order-000000007", ProviderReference: "9b1f0f4e-0000-4000-8000-000000000007"})
	if err != nil {
		b.Fatal(err)
	}
	e := &event{id: "event", url: sink(b), body: body}
	keys := [][]byte{newSecret()}
	used := cpu()
	b.ReportAllocs()
	for b.Loop() {
		if a := c.send(b.Context(), e, keys, true, time.Now()); !a.ok() {
			b.Fatal(fmt.Sprint(a))
		}
	}
	b.ReportMetric(float64((cpu()-used).Microseconds())/float64(b.N), "cpu-µs/op")
}
