package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/outbound"
	"github.com/makola/makola/internal/test/dbtest"
)

// dials replaces the dialer of a rig's client.
func (r *rig) dials(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	o := outbound.Options{Dial: dial, TLS: &tls.Config{}, Handshake: patience, PerHost: 8, Kept: 8, KeptFor: idleTime, HeadBytes: 1 << 10, BodyBytes: answerBytes}
	r.client.secure, r.client.plain = outbound.New(o), outbound.New(o)
}

func unknownName(context.Context, string, string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "db.internal", Server: "10.255.255.53:53", IsNotFound: true}}
}

func brokenResolver(context.Context, string, string) (net.Conn, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "server misbehaving", Name: "db.internal", Server: "10.255.255.53:53", IsTemporary: true}}
}

// privateName dials a name that leads to a private address, as production does.
func privateName(ctx context.Context, network, _ string) (net.Conn, error) {
	return (&net.Dialer{Control: newControl(false, false).dial}).DialContext(ctx, network, "127.0.0.1:5432")
}

func failing(err error) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 443}, Err: err}
	}
}

// The customer's log shows why there was no response. It shows no address or name of our own network.
func TestSend_errorsHideOurNetwork(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		var lines bytes.Buffer
		r.log = slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
		const nowhere = "the host was not found, or has no public address"
		for i, c := range []struct {
			name  string
			dial  func(context.Context, string, string) (net.Conn, error)
			want  string
			ofLog string
		}{
			{"a name that is not there", unknownName, nowhere, "no such host"},
			{"a private name", privateName, nowhere, "127.0.0.0/8"},
			{"a resolver that is broken", brokenResolver, nowhere, "misbehaving"},
			{"refused", failing(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "the connection was refused", "connection refused"},
			{"no way there", failing(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), "the connection failed", "no route to host"},
			{"slow", failing(os.ErrDeadlineExceeded), "no answer in time", "no answer in time"},
		} {
			r.dials(c.dial)
			r.send(r.event(i, nil))
			r.quiet()
			list, err := r.List(t.Context(), Filter{Tenant: "tenant", Subject: fmt.Sprintf("subject-%04d", i)})
			if err != nil || len(list) != 1 || list[0].Error != c.want || list[0].State != Pending {
				t.Errorf("%s: %+v, %v", c.name, list, err)
			}
			tries, err := r.Attempts(t.Context(), "tenant", fmt.Sprintf("event-%04d", i))
			if err != nil || len(tries) != 1 || tries[0].Error != c.want || tries[0].Answer != "" {
				t.Errorf("%s: %+v, %v", c.name, tries, err)
			}
			if said := lines.String(); !strings.Contains(said, c.ofLog) || !strings.Contains(said, fmt.Sprintf("event=event-%04d", i)) {
				t.Errorf("%s: the log has %s", c.name, said)
			}
			if n := strings.Count(lines.String(), "level=INFO"); n != 1 {
				t.Errorf("%d lines at info after %d attempts of one minute", n, i+1)
			}
			if said := lines.String(); strings.Contains(said, "order=7") {
				t.Errorf("the log has a callback address: %s", said)
			}
			waiting, err := r.q.List(t.Context(), jobs.Filter{Kind: jobKind})
			if err != nil || !slices.ContainsFunc(waiting, func(j jobs.Listed) bool { return j.ID == list[0].ID && j.LastError == c.want }) {
				t.Errorf("%s: the jobs are %+v, %v", c.name, waiting, err)
			}
		}
		r.dials(unknownName)
		r.c.Advance(2 * time.Minute)
		r.send(r.event(100, nil))
		r.quiet()
		if n := strings.Count(lines.String(), "level=INFO"); n != 2 {
			t.Errorf("%d lines at info in two minutes", n)
		}
	})
}

// Rows of earlier versions, and of nodes that still run one, contain the error text of the dialer.
func TestList_earlierErrorsHideOurNetwork(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := newRig(t, d, "a", Options{})
		r.dials(unknownName)
		r.send(r.event(1, nil))
		r.quiet()
		for _, said := range []string{
			"dial tcp: lookup db.internal on 10.255.255.53:53: no such host",
			"dial tcp 127.0.0.1:5432: prohibited IP address: 127.0.0.1 is not a permitted destination (denied by: 127.0.0.0/8)",
			"read tcp 10.0.0.5:41000->93.184.216.34:443: read: connection reset by peer",
			"write tcp 10.0.0.5:41000->93.184.216.34:443: write: broken pipe",
			"remote error: tls: from 10.0.0.5",
		} {
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				_, err := tx.Exec(`UPDATE webhook_events SET error = $1`, said)
				if err == nil {
					_, err = tx.Exec(`UPDATE webhook_attempts SET error = $1`, said)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			tries, err := r.Attempts(t.Context(), "tenant", "event-0001")
			if e := r.one(); err != nil || len(tries) != 1 || e.Error != "the connection failed" || tries[0].Error != "the connection failed" {
				t.Errorf("%q is shown as %q and %+v, %v", said, e.Error, tries, err)
			}
		}
	})
}

func TestSend_noResponseReasons(t *testing.T) {
	receiver := httptest.NewUnstartedServer(nil)
	receiver.Config.ErrorLog = log.New(io.Discard, "", 0)
	receiver.StartTLS()
	defer receiver.Close()
	_, untrusted := tls.Dial("tcp", receiver.Listener.Addr().String(), &tls.Config{ServerName: "example.com"})
	reset := &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	for _, c := range []struct {
		err     error
		written bool
		want    string
	}{
		{untrusted, false, "the certificate is not valid"},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, false, "the host does not use TLS"},
		{tls.AlertError(40), false, "the connection failed"},
		{outbound.ErrTimeout, false, "no answer in time"},
		{outbound.ErrTimeout, true, "no answer within 15 s"},
		{outbound.ErrClosed, true, "the connection was closed without an answer"},
		{io.EOF, false, "the connection was closed without an answer"},
		{reset, true, "the connection was closed without an answer"},
		{outbound.ErrTooLong, true, "the answer is not HTTP, or its header is too long"},
		{errors.New(`malformed HTTP version "SSH-2.0"`), true, "the answer is not HTTP, or its header is too long"},
		{errors.New("anything else"), false, "the connection failed"},
	} {
		if c.err == nil {
			t.Fatalf("no error for %q", c.want)
		}
		if got := why(outbound.Answer{Err: c.err, Written: c.written}, 15*time.Second); got != c.want || !ours(got) {
			t.Errorf("%v, written %v: %q", c.err, c.written, got)
		}
	}
}
