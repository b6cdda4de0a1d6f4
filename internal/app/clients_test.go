package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/test/clocktest"
)

// caller is one connection.
type caller struct {
	t    *testing.T
	conn net.Conn
	read *bufio.Reader
}

func dialed(t *testing.T, address string) *caller {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return &caller{t, conn, bufio.NewReader(conn)}
}

// get requests a path with lines for the header, and returns the status. It returns 0 if the connection has ended.
func (c *caller) get(path string, header ...string) int {
	c.t.Helper()
	lines := strings.Join(append([]string{"GET " + path + " HTTP/1.1", "Host: 127.0.0.1"}, header...), "\r\n")
	if _, err := io.WriteString(c.conn, lines+"\r\n\r\n"); err != nil {
		return 0
	}
	answer, err := http.ReadResponse(c.read, nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode
}

// A client that opens many connections does not take connections from others. The connection that was idle for the longest time
// is closed. If all are busy, probes and callbacks are still answered.
func TestConnections_bounded(t *testing.T) {
	t.Parallel()
	a := startLocal(t, func(c *config.Server) { c.MaxClients = 3 })
	address := a.doors.api.net.Addr().String()
	open := func() int {
		a.crowd.mu.Lock()
		defer a.crowd.mu.Unlock()
		return len(a.crowd.open)
	}
	var idle []*caller
	for n := range 3 {
		c := dialed(t, address)
		if got := c.get("/healthz"); got != http.StatusOK {
			t.Fatalf("answered %d", got)
		}
		idle = append(idle, c)
		clocktest.Await(t, "it to be idle", func() bool {
			a.crowd.mu.Lock()
			defer a.crowd.mu.Unlock()
			return a.crowd.idle.Len() == n+1
		})
	}
	more := dialed(t, address)
	if got := more.get("/api/v1/account-api/balance"); got != http.StatusUnauthorized {
		t.Errorf("one more is answered %d", got)
	}
	if first, last := idle[0].get("/healthz"), idle[2].get("/healthz"); first != 0 || last != http.StatusOK {
		t.Errorf("of those that were idle the first is answered %d, the last %d", first, last)
	}
	for _, c := range append(idle, more) {
		_ = c.conn.Close()
	}
	clocktest.Await(t, "the end of all", func() bool { return open() == 0 })
	for range 3 { // each stays busy with a request that does not end
		c := dialed(t, address)
		if _, err := io.WriteString(c.conn, "POST /api/v1/payment-api/momopay HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: "+a.ready.APIKey+"\r\nContent-Length: 10\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	clocktest.Await(t, "nobody idle", func() bool {
		a.crowd.mu.Lock()
		defer a.crowd.mu.Unlock()
		return a.crowd.idle.Len() == 0 && len(a.crowd.open) == 3
	})
	for path, want := range map[string]int{"/readyz": 200, "/callbacks/mtn/x": 404, "/api/v1/account-api/balance": 503} {
		c := dialed(t, address)
		if got := c.get(path); got != want {
			t.Errorf("with all connections busy %s is answered %d, want %d", path, got, want)
		}
		_ = c.conn.Close()
	}
	for range 2 * moreClients {
		dialed(t, address)
	}
	if got := dialed(t, address).get("/readyz"); got != http.StatusOK {
		t.Errorf("among silent connections a probe is answered %d", got)
	}
	if n := open(); n > 3+moreClients {
		t.Errorf("%d connections are open", n)
	}
}

// If a request arrives on a new connection while the node stops, it is answered. A proxy that has written the request does not send
// it to another node.
func TestStop_answersNewConnections(t *testing.T) {
	t.Parallel()
	moment := time.Millisecond
	a := startLocal(t, func(c *config.Server) { c.DrainNotice = &moment })
	a.crowd.first = time.Minute // net/http waits 5 s, so it closes a connection only after our limit
	address := a.doors.api.net.Addr().String()
	early := dialed(t, address)
	stopped := make(chan error, 1)
	go func() { stopped <- a.Stop(t.Context()) }()
	clocktest.Await(t, "the port to be closed", func() bool {
		conn, err := net.DialTimeout("tcp", address, 20*time.Millisecond)
		if err == nil {
			_ = conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	if got := early.get("/healthz"); got != http.StatusOK {
		t.Errorf("answered %d", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A client that writes its whole body before it reads gets the refusal of a body that is too large. Its connection is not reset.
func TestBody_tooLargeIsAnswered413(t *testing.T) {
	t.Parallel()
	a := startLocal(t, func(*config.Server) {})
	c := dialed(t, a.doors.api.net.Addr().String())
	const size = 12 << 20 // more than the kernel's buffers hold
	if _, err := fmt.Fprintf(c.conn, "POST /api/v1/sms-api/send HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n", size); err != nil {
		t.Fatal(err)
	}
	if _, err := c.conn.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(c.read, nil)
	if err != nil || answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("answered %v, %v", answer, err)
	}
}

// A client that sends "Expect: 100-continue" before a large body is refused at once. The server never requests the body.
func TestBody_expectContinueIsRefused(t *testing.T) {
	t.Parallel()
	a := startLocal(t, func(*config.Server) {})
	c := dialed(t, a.doors.api.net.Addr().String())
	if _, err := io.WriteString(c.conn, "POST /api/v1/sms-api/send HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\nContent-Length: 12000000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := c.read.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 413 ") {
		t.Errorf("answered %q, %v", line, err)
	}
}

// For an unreadable query string the error names the query string, not missing fields.
func TestQuery_malformedIsNamed(t *testing.T) {
	t.Parallel()
	a := startLocal(t, func(*config.Server) {})
	status, said := getWithKey(t, a, "/sms-api/send?sender_id=x&message=Save+100%+now&recipients=0240000001")
	if status != http.StatusUnprocessableEntity || !strings.Contains(said, "%25") || strings.Contains(said, "is required") {
		t.Errorf("answered %d %s", status, said)
	}
}
