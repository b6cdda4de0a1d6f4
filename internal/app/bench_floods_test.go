package app_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/db"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// The floods of BenchmarkFloods, by clients without a key.
const (
	floodConnections = 4000 // the limit is 4,096, and the neighbour needs a few connections
	floodStreams     = 100
	floodSignIns     = 110 // a second
)

// BenchmarkFloods measures a neighbour's payouts and the server's peak memory during floods by clients without a key. The floods
// are HTTP/2 streams and HTTP/1.1 requests whose answers nobody reads, requests that are reset at once, and guesses of passwords
// from changing networks.
func BenchmarkFloods(b *testing.B) {
	for _, kind := range []string{"streams", "pipelines", "resets", "guesses"} {
		b.Run(kind, func(b *testing.B) {
			for range b.N {
				benchmarkFlood(b, kind)
			}
		})
	}
}

func benchmarkFlood(b *testing.B, kind string) {
	sim, where := startSim(b), newSite(b, db.Postgres)
	extra := []string{"--trusted-proxy", "127.0.0.2/32"}
	secure := kind == "streams" || kind == "resets"
	if secure {
		cert, key := app.WriteCertificate(b, b.TempDir(), 1)
		extra = append(extra, "--tls-cert", cert, "--tls-key", key)
	}
	server := where.serve(b, "makola", sim, extra...)
	n := newNeighbour(b, server.ready.APIURL, benchTenants(b, where, server, 2)[1])
	quiet := n.run(b, "quiet", neighbourFor)
	stop := flood{Kind: kind, API: server.ready.APIURL}.begin(b)
	flooded := n.run(b, "flooded", 2*neighbourFor)
	peak := peakMemory(b, server.ready.PID)
	stop()
	milli := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(milli(quiet.payout), "payout-p99-ms")
	b.ReportMetric(milli(flooded.payout), "flooded-payout-p99-ms")
	b.ReportMetric(peak, "MB-peak")
	b.ReportMetric(0, "ns/op")
	server.kill()
	sim.kill()
}

// floodVariable is the environment variable that makes the test program a flood. Its value is the flood in JSON.
const floodVariable = "MAKOLA_TEST_FLOOD"

// flood is a process of clients without a key.
type flood struct{ Kind, API string }

// begin starts the flood in a process of the lowest priority.
func (f flood) begin(b *testing.B) (stop func()) {
	b.Helper()
	return beginClients(b, floodVariable, f)
}

// floodAsConfigured is the process of a flood. It runs until its standard input ends.
func floodAsConfigured(text string) int {
	var f flood
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		fmt.Fprintln(os.Stderr, "flood:", err)
		return 1
	}
	u, err := url.Parse(f.API)
	if err != nil {
		fmt.Fprintln(os.Stderr, "flood:", err)
		return 1
	}
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	one := map[string]func(context.Context, string){"streams": unreadStreams, "pipelines": unreadPipelines, "resets": resetStreams}[f.Kind]
	clients := floodConnections
	switch f.Kind {
	case "resets":
		clients = 4
	case "guesses":
		clients, one = 1, guesses
	}
	for range clients {
		group.Go(func() {
			for ctx.Err() == nil {
				one(ctx, u.Host)
				select {
				case <-time.After(100 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	group.Wait()
	return 0
}

// dialFlood connects until ctx ends.
func dialFlood(ctx context.Context, address string, secure bool) (conn net.Conn, end func()) {
	var dialer net.Dialer
	limit, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := dialer.DialContext(limit, "tcp", address)
	if err != nil {
		return nil, nil
	}
	if secure {
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		encrypted := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if encrypted.Handshake() != nil {
			_ = conn.Close()
			return nil, nil
		}
		_ = conn.SetDeadline(time.Time{})
		stopped := context.AfterFunc(ctx, func() { _ = conn.Close() })
		return encrypted, func() { stopped(); _ = conn.Close() }
	}
	stopped := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return conn, func() { stopped(); _ = conn.Close() }
}

// floodStreamsOn requests a page repeatedly on a new connection that accepts no byte of any body. each is called after every
// request.
func floodStreamsOn(conn net.Conn, requests int, path string, each func(f *http2.Framer, id uint32) error) {
	f := http2.NewFramer(conn, conn)
	_, err := io.WriteString(conn, http2.ClientPreface)
	if err == nil {
		err = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	}
	var block strings.Builder
	pack := hpack.NewEncoder(&block)
	for i := 0; i < requests && err == nil; i++ {
		block.Reset()
		for _, h := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "localhost"}, {":path", path}} {
			_ = pack.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}) // writing to a builder never fails
		}
		id := uint32(2*i + 1)
		err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte(block.String()), EndStream: true, EndHeaders: true})
		if err == nil && each != nil {
			err = each(f, id)
		}
	}
}

func unreadStreams(ctx context.Context, address string) {
	conn, end := dialFlood(ctx, address, true)
	if conn == nil {
		return
	}
	defer end()
	floodStreamsOn(conn, floodStreams, "/docs/reference", nil)
	_, _ = io.Copy(io.Discard, conn) // reads only frames, because no body is accepted
}

func resetStreams(ctx context.Context, address string) {
	conn, end := dialFlood(ctx, address, true)
	if conn == nil {
		return
	}
	defer end()
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	floodStreamsOn(conn, 1<<20, "/sign-in", func(f *http2.Framer, id uint32) error { return f.WriteRSTStream(id, http2.ErrCodeCancel) })
}

func unreadPipelines(ctx context.Context, address string) {
	conn, end := dialFlood(ctx, address, false)
	if conn == nil {
		return
	}
	defer end()
	request := strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 20)
	for range 100 {
		if _, err := io.WriteString(conn, request); err != nil { // ends when the server closes the connection
			return
		}
	}
	<-ctx.Done()
}

// guesses tries passwords of accounts that do not exist. Each try seems to come from another client behind a trusted proxy.
func guesses(ctx context.Context, address string) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
		return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext(ctx, network, to)
	}}, Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(time.Second / floodSignIns)
	defer tick.Stop()
	var group sync.WaitGroup
	defer group.Wait()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		group.Go(func() {
			form := url.Values{"email": {fmt.Sprintf("person%d@example.com", i)}, "password": {"a guess of a password"}}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/sign-in", strings.NewReader(form.Encode()))
			if err != nil {
				return
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("X-Forwarded-For", fmt.Sprintf("198.18.%d.%d", i>>8&255, i&255))
			if answer, err := client.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
		})
	}
}
