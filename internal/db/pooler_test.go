package db_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// fakePooler is a pooler in front of a database. Like a real one, it greets clients with a process id of its own and
// drops the settings that the client sent. A strict one refuses them.
func fakePooler(t *testing.T, database *url.URL, strict bool) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		work.Wait()
	})
	work.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", database.Host)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			open = append(open, client, server)
			mu.Unlock()
			work.Go(func() { pool(client, server, strict) })
		}
	})
	u := *database
	u.Host = listener.Addr().String()
	return u.String()
}

func pool(client, server net.Conn, strict bool) {
	defer func() { _, _ = client.Close(), server.Close() }()
	near := pgproto3.NewBackend(client, client)
	first, err := near.ReceiveStartupMessage()
	startup, ok := first.(*pgproto3.StartupMessage)
	if err != nil || !ok {
		return // a request to cancel
	}
	if strict {
		near.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: enable_seqscan"})
		_ = near.Flush()
		return
	}
	startup.Parameters = map[string]string{"user": startup.Parameters["user"], "database": startup.Parameters["database"]}
	far := pgproto3.NewFrontend(server, server)
	far.Send(startup)
	if far.Flush() != nil {
		return
	}
	for ready := false; !ready; { // until the greeting has ended
		head := make([]byte, 5)
		if _, err := io.ReadFull(server, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(server, body); err != nil {
			return
		}
		switch head[0] {
		case 'K':
			binary.BigEndian.PutUint32(body, 1) // 1 is not the process id of any backend
		case 'Z':
			ready = true
		}
		if _, err := client.Write(append(head, body...)); err != nil {
			return
		}
	}
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}

// Behind a pooler, the database role must have our settings. Otherwise Open names the missing settings and the
// statement that sets them.
func TestPooler_keepsSettingsOrIsRefused(t *testing.T) {
	direct, err := url.Parse(dbtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Open(t.Context(), db.Options{URL: fakePooler(t, direct, true), MaxConns: 4})
	if err == nil || !strings.Contains(err.Error(), "ignore_startup_parameters = ") || !strings.Contains(err.Error(), "enable_seqscan") {
		t.Errorf("a pooler that refuses settings: %v", err)
	}
	way := fakePooler(t, direct, false)
	_, err = db.Open(t.Context(), db.Options{URL: way, MaxConns: 4})
	if err == nil || !strings.Contains(err.Error(), `SET enable_seqscan = 'off';`) || !strings.Contains(err.Error(), `SET lock_timeout = '15s';`) {
		t.Errorf("a pooler without settings: %v", err)
	}
	conn, err := pgx.Connect(t.Context(), direct.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	name := strings.TrimPrefix(direct.Path, "/")
	set := func(what string) {
		if _, err := conn.Exec(t.Context(), "ALTER DATABASE "+name+" "+what); err != nil {
			t.Fatal(err)
		}
	}
	defer set("RESET ALL")
	for _, s := range []string{"enable_hashjoin = off", "enable_mergejoin = off", "enable_seqscan = off", "jit = off", "idle_in_transaction_session_timeout = '15s'", "lock_timeout = '15s'"} {
		set("SET " + s)
	}
	d := dbtest.OpenWith(t, db.Options{URL: way, MaxConns: 4})
	fillPurse(t, d)
	if err := spendAlone(t, d, "through a pooler"); err != nil {
		t.Error(err)
	}
	if err := d.Read(t.Context(), func(tx *db.Tx) error {
		var n int64
		_, err := tx.One(`SELECT count(*) FROM pg_prepared_statements`, nil, &n)
		if n != 0 {
			t.Errorf("%d statements are prepared on a connection that is not ours", n)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
