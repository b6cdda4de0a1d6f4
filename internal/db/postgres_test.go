package db_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// proxy forwards to the server. It cuts the connection when the test asks for it.
type proxy struct {
	t        *testing.T
	listener net.Listener
	target   string
	mu       sync.Mutex
	direct   *pgx.Conn // connection to the database that bypasses the proxy
	next     cut
	open     []net.Conn
	wg       sync.WaitGroup
}

// cut selects how the connection breaks at the next bytes.
type cut int

const (
	none          cut = iota
	requestLost       // the server gets no request and sees that the connection is closed
	answerLost        // we get no answer
	requestStuck      // the server gets no request and sees no break
	requestPassed     // the server gets the request, we close the connection, and the server does not notice
)

func newProxy(t *testing.T, database *url.URL) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listener: listener, target: database.Host}
	if p.direct, err = pgx.Connect(t.Context(), database.String()); err != nil {
		t.Fatal(err)
	}
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
			p.mu.Lock()
			p.open = append(p.open, client, server)
			p.mu.Unlock()
			p.wg.Go(func() { p.requests(client, server) })
			p.wg.Go(func() { p.answers(server, client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for _, c := range p.open {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
		_ = p.direct.Close(context.Background())
	})
	return p
}

func (p *proxy) requests(client, server net.Conn) {
	defer func() { _ = client.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			_ = server.Close()
			return
		}
		// The driver sends a cancel request for the interrupted statement. It is dropped, because a broken network
		// would not carry it, and because it would end a COMMIT that the test needs.
		if n == 16 && binary.BigEndian.Uint32(buffer[4:]) == 80877102 {
			_ = server.Close()
			return
		}
		switch p.take(requestLost, requestStuck, requestPassed) {
		case requestLost:
			_ = server.Close()
			return
		case requestStuck:
			return
		case requestPassed:
			p.pass(client, server, buffer[:n])
			return
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// pass forwards a request and then cuts the connection, before the server can answer. It accepts no new connection
// until the server has begun the request. Otherwise the check for the rows could come too early.
func (p *proxy) pass(client, server net.Conn, request []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := func() (at string) {
		err := p.direct.QueryRow(p.t.Context(), `SELECT coalesce(max(state_change)::text, '') FROM pg_stat_activity
			WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`).Scan(&at)
		if err != nil {
			p.t.Errorf("ask past the proxy: %v", err)
		}
		return at
	}
	before := changed()
	_ = client.Close()
	_, _ = server.Write(request)
	for !p.t.Failed() && changed() == before {
	}
}

func (p *proxy) answers(server, client net.Conn) {
	defer func() { _ = server.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil || p.take(answerLost) == answerLost {
			_ = client.Close()
			return
		}
		_, _ = client.Write(buffer[:n]) // the server must not notice that we are gone
	}
}

// take returns the planned cut and clears it, if it is one of cuts.
func (p *proxy) take(cuts ...cut) cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(cuts, p.next) {
		return none
	}
	planned := p.next
	p.next = none
	return planned
}

func (p *proxy) cut(c cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = c
}

// The connection breaks before the server gets COMMIT, or after it has carried it out. Both look the same to us. The
// test checks that neither is mistaken for the other.
func TestWrite_connectionBreaksAtCommit(t *testing.T) {
	direct := dbtest.URL(t)
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, u)
	u.Host = p.listener.Addr().String()
	d := dbtest.OpenWith(t, db.Options{URL: u.String(), MaxConns: 1})
	fillPurse(t, d)
	// All statements are prepared first, because preparing takes an exchange of its own before COMMIT.
	for _, key := range []string{"warm", "warmer", "warmest"} {
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return spend(tx, key) }); err != nil {
			t.Fatal(err)
		}
	}
	_, done := purse(t, d)
	for _, c := range []struct {
		cut      cut
		happened int64
	}{{requestLost, 0}, {answerLost, 1}, {requestStuck, 0}, {requestPassed, 1}} {
		key := fmt.Sprint("lost ", c.cut)
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
			t.Errorf("cut %d: %v", c.cut, err)
		}
		left, notes := settledPurse(t, d)
		if notes != done+c.happened || left != 100-notes {
			t.Errorf("cut %d: %d left, %d notes", c.cut, left, notes)
		}
		done = notes
		key, cut = fmt.Sprint("looked for, lost ", c.cut), true
		if err := d.WriteRecognising(t.Context(), noted(key), body); err != nil {
			t.Errorf("recognising, cut %d: %v", c.cut, err)
		}
		left, notes = purse(t, d)
		if notes != done+1 || left != 100-notes {
			t.Errorf("recognising, cut %d: %d left, %d notes", c.cut, left, notes)
		}
		done = notes
		// Before COMMIT no outcome is ambiguous, so the transaction runs again.
		key, cut = fmt.Sprint("early, lost ", c.cut), true
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			if cut {
				p.cut(c.cut)
				cut = false
			}
			return spend(tx, key)
		})
		if err != nil {
			t.Errorf("early, cut %d: %v", c.cut, err)
		}
		left, notes = purse(t, d)
		if notes != done+1 || left != 100-notes {
			t.Errorf("early, cut %d: %d left, %d notes", c.cut, left, notes)
		}
		done = notes
	}
}

// The connection breaks while the server carries out COMMIT. The check for the rows waits until the server has
// finished.
func TestWrite_connectionBreaksDuringCommit(t *testing.T) {
	u, err := url.Parse(dbtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, u)
	u.Host = p.listener.Addr().String()
	d := dbtest.OpenWith(t, db.Options{URL: u.String(), MaxConns: 1})
	fillPurse(t, d)
	err = d.Write(t.Context(), func(tx *db.Tx) error {
		for _, sql := range []string{
			`CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END'`,
			`CREATE CONSTRAINT TRIGGER dawdles AFTER INSERT ON items DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dawdle()`,
		} {
			if _, err := tx.Exec(sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The first run has no cut. It prepares the statements, which takes an exchange of its own.
	if err := d.Write(t.Context(), func(tx *db.Tx) error { return spend(tx, "warm") }); err != nil {
		t.Fatal(err)
	}
	runs := 0
	err = d.WriteRecognising(t.Context(), noted("slow"), func(tx *db.Tx) error {
		if runs++; runs == 1 {
			defer p.cut(requestPassed)
		}
		return spend(tx, "slow")
	})
	left, notes := purse(t, d)
	if err != nil || runs != 1 || left != 98 || notes != 2 {
		t.Errorf("%d runs, %d left, %d notes: %v", runs, left, notes, err)
	}
}

// The server ends our connections, as in a restart or a failover. Running transactions run again, idle connections
// are replaced, and no caller gets an error.
func TestServer_endsConnections(t *testing.T) {
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
	// If the connection ends before COMMIT, the server itself reports that it did not commit.
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
		// The connection may have closed before we read the server's last bytes. The outcome is then unknown.
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
	// Now all idle connections are ended.
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

// A caller that cancels a running query closes its own connection and no other. Clients that disconnect are therefore
// cheap.
func TestCancel_costsOneConnection(t *testing.T) {
	d := dbtest.OpenWith(t, db.Options{URL: dbtest.URL(t), MaxConns: 2})
	pidOf := func(tx *db.Tx) (pid int64) {
		if _, err := tx.One(`SELECT pg_backend_pid()`, nil, &pid); err != nil {
			t.Error(err)
		}
		return pid
	}
	var kept, next int64
	err := d.Read(t.Context(), func(tx *db.Tx) error {
		kept = pidOf(tx)
		ctx, giveUp := context.WithCancel(context.Background())
		defer giveUp()
		ended := make(chan error)
		go func() {
			ended <- d.Read(ctx, func(tx *db.Tx) error {
				_, err := tx.One(`SELECT 1 FROM pg_sleep(3600)`, nil, new(int64))
				return err
			})
		}()
		for asleep := false; !asleep; { // pg_stat_activity shows when the server runs the query
			var one int64
			var err error
			if asleep, err = tx.One(`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`, nil, &one); err != nil {
				return err
			}
		}
		giveUp()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Read(t.Context(), func(tx *db.Tx) error { next = pidOf(tx); return nil }); err != nil || next != kept {
		t.Errorf("the connection beside it was %d and is %d: %v", kept, next, err)
	}
}

// Our settings apply whatever the defaults of the server are.
func TestSession_overridesServerSettings(t *testing.T) {
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
	if err := d.ReadWhole(t.Context(), check(map[string]string{"transaction_isolation": "repeatable read", "transaction_read_only": "on", "enable_seqscan": "on", "enable_hashjoin": "on", "enable_nestloop": "off"})); err != nil {
		t.Error(err)
	}
	if err := d.ReadSnapshot(t.Context(), check(map[string]string{"transaction_isolation": "repeatable read", "transaction_read_only": "on", "enable_seqscan": "off", "enable_hashjoin": "off", "enable_nestloop": "on"})); err != nil {
		t.Error(err)
	}
	if err := d.Read(t.Context(), check(map[string]string{"enable_seqscan": "off"})); err != nil {
		t.Error(err)
	}
}

// A server that cannot be reached is reported as unavailable.
func TestOpen_unreachableServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	// The local end of an open connection has a port on which nothing listens, and which no other program can get.
	near, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = near.Close() }()
	address := near.LocalAddr().String()
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

// A server that refuses our connection, for any reason, is reported as unavailable, because nothing has run.
func TestSession_refusedIsUnavailable(t *testing.T) {
	t.Parallel()
	address := dbtest.EmptyURL(t)
	d := dbtest.OpenWith(t, db.Options{URL: address, MaxConns: 2})
	other := dbtest.OpenWith(t, db.Options{URL: dbtest.EmptyURL(t), MaxConns: 1})
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	run := func(statement string, args ...any) {
		t.Helper()
		if err := other.Write(t.Context(), func(tx *db.Tx) error {
			_, err := tx.Exec(statement, args...)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	run(`ALTER DATABASE ` + name + ` ALLOW_CONNECTIONS false`)
	run(`SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE datname = $1`, name)
	var one int64
	read := func(tx *db.Tx) error {
		_, err := tx.One(`SELECT 1`, nil, &one)
		return err
	}
	if err := d.Read(t.Context(), read); !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("a read: %v", err)
	}
	if err := d.Write(t.Context(), read); !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("a write: %v", err)
	}
	run(`ALTER DATABASE ` + name + ` ALLOW_CONNECTIONS true`)
	if err := d.Read(t.Context(), read); err != nil {
		t.Errorf("let in again: %v", err)
	}
}
