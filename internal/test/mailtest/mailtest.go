// Package mailtest is a small mail server for tests. It takes mails over SMTP and breaks as a test wants: it hangs, refuses, or drops
// the connection at any step.
package mailtest

import (
	"bufio"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Step is a step of a conversation at which a server may break.
type Step string

// The steps.
const (
	Connect   Step = "connect"
	Recipient Step = "recipient"
	Data      Step = "data"
	Accepted  Step = "accepted" // the mail is stored, and not acknowledged yet
)

// Fault describes how a server fails at a step. The zero value means no fault.
type Fault struct {
	Answer string // answer in place of the usual one, such as 451 4.7.1 greylisted
	Hang   bool   // no answer until the server stops
	Drop   bool   // the connection ends
}

// Mail is a mail that the server took.
type Mail struct {
	To, From, Subject, MessageID, Body string
	Head                               mail.Header
}

// Server is a running mail server.
type Server struct {
	Host string
	Port int

	t     testing.TB
	stop  chan struct{}
	fault func(step Step, n int) Fault

	mu    sync.Mutex
	mails []Mail
	steps map[Step]int
	come  chan struct{}
}

// Start starts a server, which stops with the test. fault returns how it breaks at a step that is reached the nth time, from 1; nil:
// it never breaks.
func Start(t testing.TB, fault func(step Step, n int) Fault) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, t: t, stop: make(chan struct{}), fault: fault, steps: map[Step]int{}, come: make(chan struct{}, 1)}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = conn.Close() }()
				go func() { <-s.stop; _ = conn.Close() }()
				s.talk(conn)
			})
		}
	})
	t.Cleanup(func() {
		close(s.stop)
		_ = l.Close()
		all.Wait()
	})
	return s
}

// Mails returns the mails that the server took, in their order.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails)
}

// Reached returns how often a step was reached.
func (s *Server) Reached(step Step) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.steps[step]
}

// Come receives a signal after a mail came.
func (s *Server) Come() <-chan struct{} { return s.come }

// broken counts a step, and answers as its fault says. It reports whether the usual answer is left out, and whether the conversation
// ends.
func (s *Server) broken(w io.Writer, step Step) (answered, over bool) {
	s.mu.Lock()
	s.steps[step]++
	n := s.steps[step]
	s.mu.Unlock()
	if s.fault == nil {
		return false, false
	}
	f := s.fault(step, n)
	switch {
	case f.Hang:
		<-s.stop
		return true, true
	case f.Drop:
		return true, true
	case f.Answer != "":
		_, _ = fmt.Fprintf(w, "%s\r\n", f.Answer)
		return true, false
	}
	return false, false
}

// talk handles one connection.
func (s *Server) talk(conn net.Conn) {
	say := func(text string) { _, _ = io.WriteString(conn, text+"\r\n") }
	if answered, over := s.broken(conn, Connect); over || answered {
		return
	}
	say("220 test ESMTP")
	in := textproto.NewReader(bufio.NewReader(conn))
	for {
		line, err := in.ReadLine()
		if err != nil {
			return
		}
		verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
		switch verb {
		case "EHLO":
			say("250-test\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES")
		case "RCPT":
			if answered, over := s.broken(conn, Recipient); over {
				return
			} else if !answered {
				say("250 2.1.5 ok")
			}
		case "DATA":
			if s.take(conn, in, say) {
				return
			}
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

// take receives one mail. It reports whether the connection ends.
func (s *Server) take(conn net.Conn, in *textproto.Reader, say func(string)) (over bool) {
	if answered, over := s.broken(conn, Data); over || answered {
		return over
	}
	say("354 go on")
	text, err := in.ReadDotBytes()
	if err != nil {
		return true
	}
	s.keep(text)
	answered, over := s.broken(conn, Accepted)
	if !answered {
		say("250 2.0.0 stored")
	}
	return over
}

// keep stores a mail.
func (s *Server) keep(text []byte) {
	m, err := mail.ReadMessage(strings.NewReader(string(text)))
	if err != nil {
		s.t.Errorf("a mail that cannot be read: %v\n%s", err, text)
		return
	}
	body := io.Reader(m.Body)
	if m.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
		body = quotedprintable.NewReader(m.Body)
	}
	plain, err := io.ReadAll(body)
	if err != nil {
		s.t.Errorf("a body that cannot be read: %v", err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		s.t.Errorf("a subject that cannot be read: %v", err)
	}
	s.mu.Lock()
	s.mails = append(s.mails, Mail{To: m.Header.Get("To"), From: m.Header.Get("From"), Subject: subject, MessageID: m.Header.Get("Message-ID"),
		Body: strings.ReplaceAll(string(plain), "\r\n", "\n"), Head: m.Header})
	s.mu.Unlock()
	select {
	case s.come <- struct{}{}:
	default:
	}
}
