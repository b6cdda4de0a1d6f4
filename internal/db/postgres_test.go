package db_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/dbtest"
)

// proxy stands between us and the server and cuts the line on demand.
type proxy struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	swallow  string // "", "requests" or "answers"
	wg       sync.WaitGroup
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: target}
	p.wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", p.target)
			if err != nil {
				_ = client.Close()
				continue
			}
			p.wg.Go(func() { p.carry(client, server, "requests") })
			p.wg.Go(func() { p.carry(server, client, "answers") })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.wg.Wait()
	})
	return p
}

// carry moves bytes until either end closes, or until it has to swallow some:
// then it closes both ends, once.
func (p *proxy) carry(from, to net.Conn, what string) {
	defer func() {
		_ = from.Close()
		_ = to.Close()
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.mu.Lock()
			cut := p.swallow == what
			if cut {
				p.swallow = ""
			}
			p.mu.Unlock()
			if cut {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) cut(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = what
}

// The line breaks at COMMIT, really: before the server has it, and after it
// has done it. Both are the same to us, and neither is taken for the other.
func TestTheLineBreaksAtCommit(t *testing.T) {
	direct := dbtest.URL(t)
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, u.Host)
	u.Host = p.listener.Addr().String()
	d := dbtest.OpenWith(t, db.Options{URL: u.String(), MaxConns: 2})
	fillPurse(t, d)
	done := int64(0)
	for _, c := range []struct {
		cut      string
		happened int64
	}{{"requests", 0}, {"answers", 1}} {
		key := "lost " + c.cut
		cut := true
		body := func(tx *db.Tx) error {
			if err := spend(tx, key); err != nil {
				return err
			}
			if cut {
				p.cut(c.cut)
				cut = false
			}
			return nil
		}
		if err := d.Write(t.Context(), body); !errors.Is(err, db.ErrAmbiguous) {
			t.Errorf("%s: %v", c.cut, err)
		}
		left, notes := purse(t, d)
		if notes != done+c.happened || left != 100-notes {
			t.Errorf("%s: %d left, %d notes", c.cut, left, notes)
		}
		done = notes
		key, cut = "looked for, lost "+c.cut, true
		if err := d.WriteRecognising(t.Context(), noted(key), body); err != nil {
			t.Errorf("recognising, %s: %v", c.cut, err)
		}
		left, notes = purse(t, d)
		if notes != done+1 || left != 100-notes {
			t.Errorf("recognising, %s: %d left, %d notes", c.cut, left, notes)
		}
		done = notes
		// Before COMMIT nothing is ambiguous: the transaction runs again.
		key, cut = "early, lost "+c.cut, true
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			if cut {
				p.cut(c.cut)
				cut = false
			}
			return spend(tx, key)
		})
		if err != nil {
			t.Errorf("early, %s: %v", c.cut, err)
		}
		left, notes = purse(t, d)
		if notes != done+1 || left != 100-notes {
			t.Errorf("early, %s: %d left, %d notes", c.cut, left, notes)
		}
		done = notes
	}
}

// The server ends our connections (a restart, a failover): what runs is run
// again, what is idle is replaced, and nobody hears of it.
func TestTheServerEndsOurConnections(t *testing.T) {
	d := dbtest.OpenWith(t, db.Options{URL: dbtest.URL(t), MaxConns: 3})
	fillPurse(t, d)
	other := dbtest.OpenWith(t, db.Options{URL: dbtest.URL(t), MaxConns: 1})
	end := func(pids ...int64) {
		err := other.Read(t.Context(), func(tx *db.Tx) error {
			return tx.Query(`SELECT pg_terminate_backend(value::integer, 30000) FROM ints($1)`, []any{pids}, func(*db.Row) error { return nil })
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	runs := 0
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		runs++
		var pid int64
		if _, err := tx.One(`SELECT pg_backend_pid()`, nil, &pid); err != nil {
			return err
		}
		if runs == 1 {
			end(pid)
		}
		return spend(tx, "busy")
	})
	if err != nil || runs != 2 {
		t.Errorf("a busy connection: %d runs, %v", runs, err)
	}
	// Before COMMIT: the server says itself that it did not commit.
	runs = 0
	err = d.Write(t.Context(), func(tx *db.Tx) error {
		runs++
		var pid int64
		if _, err := tx.One(`SELECT pg_backend_pid()`, nil, &pid); err != nil {
			return err
		}
		if err := spend(tx, "late"); err != nil {
			return err
		}
		if runs == 1 {
			end(pid)
		}
		return nil
	})
	if errors.Is(err, db.ErrAmbiguous) {
		// The line may have closed before its last words were read. Then nobody knows.
		_, notes := purse(t, d)
		if notes != 1 {
			t.Errorf("a connection that ended before COMMIT committed: %d notes", notes)
		}
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return spend(tx, "late") }); err != nil {
			t.Fatal(err)
		}
	} else if err != nil {
		t.Errorf("a connection at its commit: %d runs, %v", runs, err)
	}
	// Idle ones, all of them.
	var pids []int64
	var wg sync.WaitGroup
	meet := make(chan struct{})
	var mu sync.Mutex
	for range 3 {
		wg.Go(func() {
			err := d.Read(context.Background(), func(tx *db.Tx) error {
				var pid int64
				_, err := tx.One(`SELECT pg_backend_pid()`, nil, &pid)
				mu.Lock()
				if pids = append(pids, pid); len(pids) == 3 {
					close(meet)
				}
				mu.Unlock()
				<-meet
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	end(pids...)
	if err := d.WriteRecognising(t.Context(), noted("idle"), func(tx *db.Tx) error { return spend(tx, "idle") }); err != nil {
		t.Errorf("idle connections: %v", err)
	}
	if left, notes := purse(t, d); left != 97 || notes != 3 {
		t.Errorf("%d left, %d notes", left, notes)
	}
}

// The settings that hold whatever the server's defaults are.
func TestSessionSettings(t *testing.T) {
	d := dbtest.Open(t, db.Postgres)
	check := func(want map[string]string) func(tx *db.Tx) error {
		return func(tx *db.Tx) error {
			for name, value := range want {
				var got string
				if _, err := tx.One(`SELECT current_setting($1)`, []any{name}, &got); err != nil {
					return err
				}
				if got != value {
					t.Errorf("%s is %s, want %s", name, got, value)
				}
			}
			return nil
		}
	}
	if err := d.Write(t.Context(), check(map[string]string{"transaction_isolation": "read committed", "synchronous_commit": "on", "enable_seqscan": "off", "TimeZone": "UTC"})); err != nil {
		t.Error(err)
	}
	if err := d.ReadWhole(t.Context(), check(map[string]string{"transaction_isolation": "repeatable read", "transaction_read_only": "on", "enable_seqscan": "on", "enable_hashjoin": "on"})); err != nil {
		t.Error(err)
	}
	if err := d.Read(t.Context(), check(map[string]string{"enable_seqscan": "off"})); err != nil {
		t.Error(err)
	}
}

func TestAServerThatIsAway(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	_, err = db.Open(t.Context(), db.Options{URL: "postgres://makola:secret@" + address + "/x?sslmode=disable"})
	if !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("away: %v", err)
	}
	_, err = db.Open(t.Context(), db.Options{URL: "postgres://makola:secret word@[/x"})
	if err == nil {
		t.Error("a broken URL was opened")
	} else if got := err.Error(); len(got) == 0 || errors.Is(err, db.ErrUnavailable) || strings.Contains(got, "secret") {
		t.Errorf("a broken URL: %v", err)
	}
}
