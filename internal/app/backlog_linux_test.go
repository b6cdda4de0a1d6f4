package app

import (
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/makola/makola/internal/test/clocktest"
)

// When the node stops, connections that wait in the kernel are accepted and answered, and no further connection is queued.
func TestStop_answersQueuedConnections(t *testing.T) {
	t.Parallel()
	l, err := listen("test", "127.0.0.1:0", false, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
	}))
	if err != nil {
		t.Fatal(err)
	}
	clients := newClients(100)
	l.server.ConnContext, l.server.ConnState = clients.arrive, clients.changed
	address := l.net.Addr().String()
	var waiting []*caller
	for range 5 {
		c := dialed(t, address)
		if _, err := io.WriteString(c.conn, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, c)
	}
	refused := make(chan error, 1)
	go func() { refused <- l.refuse(t.Context()) }()
	clocktest.Await(t, "a new connection to get no answer", func() bool {
		conn, err := net.DialTimeout("tcp", address, 100*time.Millisecond)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil && !errors.Is(err, syscall.ECONNREFUSED)
	})
	served := make(chan error, 1)
	go func() { served <- l.serve() }()
	if err := errors.Join(<-refused, <-served); err != nil {
		t.Fatal(err)
	}
	clients.answered(t.Context())
	if err := l.shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for n, c := range waiting {
		if answer, err := http.ReadResponse(c.read, nil); err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("connection %d got no answer: %v", n+1, err)
		}
	}
}
