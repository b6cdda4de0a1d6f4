package smpp

import (
	"bufio"
	"context"
	"net"
	"testing"
	"time"

	gosmpp "github.com/linxGnu/gosmpp/pdu"

	"github.com/makola/makola/internal/provider"
)

// A peer that sends enquiries without end and reads no answer loses its session. Earlier, the unsent answers took 866
// MB.
func TestSession_peerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	sent := make(chan int, 100) // number of octets that were sent before the client ended the session
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			sent <- flood(conn)
		}
	}()
	_, stop := run(t, func(context.Context, provider.Receipt) error { return nil },
		Bind{Name: "flood", Address: listener.Addr().String(), SystemID: "makola", Password: "secret", ReconnectWithin: 50 * time.Millisecond})
	defer stop()
	select {
	case n := <-sent:
		t.Logf("the session ended after %d KB", n>>10) // most octets are in the buffers of the two sockets
	case <-time.After(patience):
		t.Error("the session never ended")
	}
}

// flood accepts a bind. Then it sends enquiries and reads nothing until the connection ends.
func flood(conn net.Conn) (octets int) {
	defer conn.Close()
	p, err := gosmpp.Parse(bufio.NewReader(conn))
	if err != nil {
		return 0
	}
	bind, is := p.(*gosmpp.BindRequest)
	if !is {
		return 0
	}
	answer := gosmpp.NewBuffer(nil)
	bind.GetResponse().Marshal(answer)
	if _, err := conn.Write(answer.Bytes()); err != nil {
		return 0
	}
	many := gosmpp.NewBuffer(nil)
	for range 1_000 {
		gosmpp.NewEnquireLink().Marshal(many)
	}
	for {
		n, err := conn.Write(many.Bytes())
		octets += n
		if err != nil {
			return octets
		}
	}
}
