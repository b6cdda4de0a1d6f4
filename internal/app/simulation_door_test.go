package app

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/makola/makola/internal/test/clocktest"
)

// door is the address of the providers. While it is shut, connections are refused, so that no byte of a request is sent.
type door struct {
	t       *testing.T
	handler http.Handler
	address string
	server  *httptest.Server // nil while the door is shut
}

func newDoor(t *testing.T, handler http.Handler) *door {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{t: t, handler: handler, address: l.Addr().String()}
	// A socket that is bound and never listens keeps other programs from the port while the door is shut.
	if keeper, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); err == nil {
		place := &unix.SockaddrInet4{Port: l.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
		if err := unix.SetsockoptInt(keeper, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(keeper) })
		l.Close() // the listener must be closed before the keeper binds the port
		if err := unix.Bind(keeper, place); err != nil {
			t.Logf("the port is not kept: %v", err)
		}
	}
	d.open()
	t.Cleanup(d.shut)
	return d
}

func (d *door) url() string { return "http://" + d.address }

// open lets connections in.
func (d *door) open() {
	if d.server != nil {
		return
	}
	var l net.Listener
	clocktest.Await(d.t, "the door to open", func() (open bool) {
		var err error
		l, err = net.Listen("tcp", d.address)
		return err == nil
	})
	d.server = httptest.NewUnstartedServer(d.handler)
	d.server.Listener.Close()
	d.server.Listener = l
	d.server.Start()
}

// shut refuses new connections, and closes existing ones.
func (d *door) shut() {
	if d.server != nil {
		d.server.Close()
		d.server = nil
	}
}
