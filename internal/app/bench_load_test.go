package app_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The load of the benchmarks uses bare connections instead of an HTTP client. The load, the server, the simulator and the database
// share a machine, so every microsecond of the load is missing elsewhere.

// benchClients is the number of keep-alive clients that send at the same time.
const benchClients = 256

// window is the maximum number of payouts in a whole-life run that were sent but not delivered. It limits the backlog.
const window = 2048

// lives counts payouts from their answer to their webhook.
type lives struct {
	accepted, refused, delivered atomic.Int64
	underway                     chan struct{} // one entry for each payout that is not delivered yet; nil: no limit
	mu                           sync.Mutex
	latencies                    []time.Duration // times of the answers
}

func (l *lives) percentile(p float64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.latencies) == 0 {
		return 0
	}
	slices.Sort(l.latencies)
	return l.latencies[min(len(l.latencies)-1, int(p*float64(len(l.latencies))))]
}

// sink receives webhooks with as little work as possible.
func (l *lives) sink(b *testing.B) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go l.receive(connection)
		}
	}()
	return "http://" + listener.Addr().String() + "/hook"
}

// receive answers the requests of one connection until its sender closes it.
func (l *lives) receive(connection net.Conn) {
	defer connection.Close()
	reader := bufio.NewReaderSize(connection, 4<<10)
	for {
		if _, err := readMessage(reader); err != nil {
			return
		}
		l.delivered.Add(1)
		l.arrived()
		if _, err := io.WriteString(connection, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
			return
		}
	}
}

// workload is one benchmark's traffic.
type workload struct {
	keys       []string // API keys: one makes a hot wallet; several are chosen by a Zipf distribution
	payee      string
	callback   string        // empty: no webhook
	duplicates int           // percentage of requests that repeat the previous reference
	window     int           // 0: no limit
	others     []string      // addresses of further nodes that the clients are distributed over
	every      time.Duration // a client's pause between two requests; 0: none
}

// run sends requests for a time, and returns when every client has its last answer.
func (l *lives) run(b *testing.B, address string, w workload, length time.Duration) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), length)
	defer cancel()
	var group sync.WaitGroup
	addresses := append([]string{address}, w.others...)
	for n := range benchClients {
		group.Add(1)
		go func() {
			defer group.Done()
			if err := l.client(ctx, addresses[n%len(addresses)], w, n); err != nil {
				b.Error(err)
			}
		}()
	}
	group.Wait()
}

func (l *lives) client(ctx context.Context, address string, w workload, n int) error {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	reader := bufio.NewReaderSize(connection, 8<<10)
	random := rand.New(rand.NewPCG(uint64(n), 7))
	zipf := rand.NewZipf(random, 1.1, 1, uint64(len(w.keys)-1))
	var request, body []byte
	var took []time.Duration
	reference, seed := "", time.Now().UnixNano()
	due := time.Now().Add(time.Duration(random.Float64() * float64(w.every)))
	for i := 0; l.mayLeave(ctx); i++ {
		if reference == "" || random.IntN(100) >= w.duplicates {
			reference = fmt.Sprintf("b-%x-%d-%d", seed, n, i)
		}
		if w.every > 0 {
			pause(time.Until(due))
			due = due.Add(w.every)
		}
		key := w.keys[0]
		if len(w.keys) > 1 {
			key = w.keys[zipf.Uint64()]
		}
		body = w.body(body[:0], reference)
		request = head(request[:0], key, len(body))
		request = append(request, body...)
		status, latency, err := exchange(connection, reader, request)
		if err != nil {
			return err
		}
		took = append(took, latency)
		switch {
		case status == http.StatusOK:
			l.accepted.Add(1)
		case status == http.StatusUnprocessableEntity && w.duplicates > 0:
			l.refused.Add(1)
			l.arrived()
		default:
			return fmt.Errorf("a payout was answered with %d", status)
		}
	}
	l.keep(took)
	return nil
}

// mayLeave waits until another payout may be sent. It returns false at the end of the run.
func (l *lives) mayLeave(ctx context.Context) bool {
	if l.underway == nil {
		return ctx.Err() == nil
	}
	select {
	case l.underway <- struct{}{}:
		if ctx.Err() != nil {
			l.arrived()
			return false
		}
		return true
	case <-ctx.Done():
		return false
	}
}

// arrived makes room for another payout. A webhook may arrive twice.
func (l *lives) arrived() {
	select {
	case <-l.underway:
	default:
	}
}

// keep adds one client's latencies.
func (l *lives) keep(took []time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latencies = append(l.latencies, took...)
}

// forget removes the latencies of earlier runs.
func (l *lives) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latencies = nil
}

// exchange makes one request on a bare connection, and returns the response time.
func exchange(connection net.Conn, reader *bufio.Reader, request []byte) (status int, took time.Duration, err error) {
	begun := time.Now()
	if _, err := connection.Write(request); err != nil {
		return 0, 0, err
	}
	status, err = readAnswer(reader)
	return status, time.Since(begun), err
}

func (w workload) body(to []byte, reference string) []byte {
	to = append(to, `{"amount":"0.50","channel":"MTN","account_number":"`...)
	to = append(to, w.payee...)
	to = append(to, `","client_reference":"`...)
	to = append(to, reference...)
	if w.callback != "" {
		to = append(to, `","callback_url":"`...)
		to = append(to, w.callback...)
	}
	return append(to, `"}`...)
}

func head(to []byte, key string, length int) []byte {
	to = append(to, "POST /api/v1/payment-api/send/mobilemoney HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nx-api-key: "...)
	to = append(to, key...)
	to = append(to, "\r\nContent-Length: "...)
	to = strconv.AppendInt(to, int64(length), 10)
	return append(to, "\r\n\r\n"...)
}

// readAnswer reads one answer with a Content-Length, and returns its status.
func readAnswer(reader *bufio.Reader) (int, error) {
	line, err := readMessage(reader)
	if err != nil {
		return 0, err
	}
	if len(line) < 12 {
		return 0, fmt.Errorf("no status line: %q", line)
	}
	return strconv.Atoi(line[9:12])
}

// readMessage reads one message with a Content-Length, and returns its first line.
func readMessage(reader *bufio.Reader) (string, error) {
	line, err := reader.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	first, length := string(line), -1
	for {
		line, err = reader.ReadSlice('\n')
		if err != nil {
			return "", err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		if name, value, ok := bytes.Cut(line, []byte(": ")); ok && bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return "", err
			}
		}
	}
	if length < 0 {
		return "", errors.New("a message without a length")
	}
	_, err = reader.Discard(length)
	return first, err
}
