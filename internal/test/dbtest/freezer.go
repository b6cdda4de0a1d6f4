package dbtest

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Freezer is a proxy between a test and its PostgreSQL server. While it is frozen every connection stays open and
// silent, like those of a machine that hangs.
type Freezer struct {
	t        testing.TB
	listener net.Listener
	target   string

	mu     sync.Mutex
	frozen bool
	cut    bool
	open   []net.Conn
	done   chan struct{} // closed by Freeze: open connections stay silent for good
	work   sync.WaitGroup
}

// Freezable makes a fresh PostgreSQL database and returns its URL through a Freezer.
func Freezable(t testing.TB) (way string, f *Freezer) {
	t.Helper()
	u, err := url.Parse(URL(t))
	if err != nil {
		t.Fatal(err)
	}
	f = &Freezer{t: t, target: u.Host, done: make(chan struct{})}
	if f.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	u.Host = f.listener.Addr().String()
	f.work.Go(f.accept)
	t.Cleanup(f.close)
	return u.String(), f
}

// Freeze silences all open connections for good, and all new connections until Thaw.
func (f *Freezer) Freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = true
	close(f.done)
	f.done = make(chan struct{})
}

// Cut ends all open connections and refuses new connections until Thaw, as a restarting server does.
func (f *Freezer) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = true
	for _, c := range f.open {
		_ = c.Close()
	}
	f.open = nil
}

// Thaw lets new connections through, as after the promotion of a standby.
func (f *Freezer) Thaw() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen, f.cut = false, false
}

func (f *Freezer) accept() {
	for {
		client, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		if f.cut {
			_ = client.Close()
			f.mu.Unlock()
			continue
		}
		f.open = append(f.open, client)
		frozen, done := f.frozen, f.done
		f.mu.Unlock()
		if frozen {
			continue
		}
		server, err := net.Dial("tcp", f.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		f.mu.Lock()
		if f.open = append(f.open, server); f.cut {
			_ = server.Close()
		}
		f.mu.Unlock()
		f.work.Go(func() { pass(server, client, done) })
		f.work.Go(func() { pass(client, server, done) })
	}
}

// pass forwards bytes until one side ends. After done is closed it discards them.
func pass(to, from net.Conn, done chan struct{}) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		select {
		case <-done:
			return
		default:
		}
		if err != nil {
			_ = to.Close()
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			_, _ = io.Copy(io.Discard, from)
			return
		}
	}
}

func (f *Freezer) close() {
	_ = f.listener.Close()
	f.mu.Lock()
	for _, c := range f.open {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.work.Wait()
}
