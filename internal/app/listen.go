package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/problem"
)

// Errors of listening that the operator must fix.
var (
	// ErrAddressInUse means that another process listens at the address.
	ErrAddressInUse = errors.New("address in use")
	// ErrAddressUnfit means that this process can never listen at the address.
	ErrAddressUnfit = errors.New("the address cannot be used")
)

// Limits of every listener.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = api.ListWithin + 15*time.Second // so that the last refusal still arrives
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10 // sms-api/send also reads its fields from the query string
)

// Limits of one HTTP/2 connection: its concurrent streams, and the received bytes that no handler has read.
const (
	maxStreams      = 100 // minimum that RFC 9113 recommends
	connectionAhead = 512 << 10
	streamAhead     = 256 << 10
)

// listener is one address with its server.
type listener struct {
	name   string
	net    net.Listener
	server *http.Server
	tls    bool   // the server's own TLSConfig changes while it starts
	turns  *turns // nil if its connections take no turns
	// refuses is set before the socket is closed while the server still answers requests.
	refuses atomic.Bool
	ended   chan struct{} // closed when serve has returned and accepts no more connections
}

// listen opens an address. With fallback a busy address is replaced by a free port of the same host.
func listen(name, address string, fallback bool, handler http.Handler) (*listener, error) {
	var plain net.ListenConfig
	plain.SetMultipathTCP(false) // Linux accepts no filter on such a socket (refuseSYN)
	l, err := plain.Listen(context.Background(), "tcp", address)
	if err != nil && fallback && errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(address)
		l, err = plain.Listen(context.Background(), "tcp", net.JoinHostPort(host, "0"))
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s at %s: %w", name, address, ErrAddressInUse)
	}
	if unfit(err) {
		return nil, fmt.Errorf("%s at %s: %w: %w", name, address, ErrAddressUnfit, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &listener{name: name, net: l, ended: make(chan struct{}), server: &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: connectionAhead, MaxReceiveBufferPerStream: streamAhead, WriteByteTimeout: answerTime},
	}}, nil
}

// unfit reports whether an address is invalid, belongs to another machine, or is forbidden for this user.
func unfit(err error) bool {
	var address *net.AddrError
	var name *net.DNSError
	return errors.As(err, &address) || errors.As(err, &name) || errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EACCES)
}

// close releases the address before any request was served.
func (l *listener) close(context.Context) error {
	_ = l.net.Close() // a server that was shut down has closed it
	return nil
}

// url returns the URL of the listener for clients on this machine.
func (l *listener) url() string {
	scheme := "http"
	if l.tls {
		scheme = "https"
	}
	return scheme + "://" + l.net.Addr().String()
}

// useTLS makes the listener use TLS. The certificate is read from two PEM files, which may change while the server
// runs.
func (l *listener) useTLS(certFile, keyFile string, log *slog.Logger) error {
	c := &certificate{cert: certFile, key: keyFile, log: log}
	if err := c.load(); err != nil {
		return problem.New(problem.Invalid, "tls_unusable", fmt.Sprintf("The certificate and its key cannot be used: %v", err))
	}
	l.server.TLSConfig = &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12}
	l.tls = true
	return nil
}

// serve blocks until the listener is shut down. It is called once.
func (l *listener) serve() error {
	defer close(l.ended)
	in := l.net
	if l.turns != nil {
		in = turnListener{l.net, l.turns}
	}
	var err error
	if l.tls {
		err = l.server.ServeTLS(in, "", "")
	} else {
		err = l.server.Serve(in)
	}
	if errors.Is(err, http.ErrServerClosed) || l.refuses.Load() && errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("%s: %w", l.name, err)
}

// Time limits for connections in progress when the listening socket is closed.
const (
	handshakeTime = 50 * time.Millisecond // several round trips between a proxy and its nodes
	backlogStep   = 2 * time.Millisecond  // between two looks at the backlog
)

// refuse accepts the pending connections and then no more, so that new clients find the port closed before they write
// anything. If the socket were closed at once, pending connections with requests that clients have written would be
// reset.
func (l *listener) refuse(ctx context.Context) error {
	err := l.acceptRest(ctx)
	l.refuses.Store(true)
	if err := l.net.Close(); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	select {
	case <-l.ended:
	case <-ctx.Done():
	}
	return err
}

// acceptRest makes the kernel refuse new handshakes. It waits until those in progress have completed and every
// connection is accepted.
func (l *listener) acceptRest(ctx context.Context) error {
	socket, is := l.net.(syscall.Conn)
	if !is {
		return fmt.Errorf("%s: the listener has no socket", l.name)
	}
	if err := refuseSYN(socket); err != nil {
		return err
	}
	begun := time.Now()
	step := time.NewTicker(backlogStep)
	defer step.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-step.C:
		}
		waiting, err := backlog(socket)
		if err != nil || waiting == 0 && time.Since(begun) > handshakeTime {
			return err
		}
	}
}

// shutdown stops accepting, waits for the requests in progress until ctx ends, then closes the remaining connections.
func (l *listener) shutdown(ctx context.Context) error {
	if err := l.server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("%s: requests were still running: %w", l.name, err), l.server.Close())
	}
	return nil
}
