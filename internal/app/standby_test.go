//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

// couple is a PostgreSQL primary with a standby, on this machine and for one test. The standby is asynchronous until
// synchronous is called.
type couple struct {
	t                testing.TB
	programs         string // folder of initdb and the other programs
	owner            *syscall.Credential
	primary, standby *cluster
}

// cluster is one PostgreSQL server.
type cluster struct {
	port int
	run  *exec.Cmd
	log  *tail
	gone chan struct{}
}

// startCouple makes a primary with an empty database and a standby that has caught up with it.
func startCouple(t testing.TB) *couple {
	t.Helper()
	folder, err := os.MkdirTemp("", "makola-couple-") // the server's user cannot enter a test's folder that belongs to root
	if err != nil {
		t.Fatal(err)
	}
	c := &couple{t: t, programs: postgresPrograms(t), owner: postgresOwner(t)}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if c.owner != nil {
		if err := os.Chown(folder, int(c.owner.Uid), int(c.owner.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	primary := filepath.Join(folder, "primary")
	c.do("initdb", "-D", primary, "-U", "makola", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	// A killed server loses nothing that its machine still has, so fsync can be off.
	c.append(filepath.Join(primary, "postgresql.conf"), `listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 60
shared_buffers = 32MB
fsync = off
autovacuum = off
wal_retrieve_retry_interval = '20ms'
`)
	c.primary = c.start(primary)
	c.exec(c.primary, "postgres", "CREATE DATABASE makola")
	standby := filepath.Join(folder, "standby")
	c.do("pg_basebackup", "-h", "127.0.0.1", "-p", strconv.Itoa(c.primary.port), "-U", "makola", "-D", standby,
		"--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync")
	c.standby = c.start(standby)
	c.caughtUp()
	return c
}

// postgresPrograms returns the folder of PostgreSQL's programs, in the way of scripts/postgres.sh.
func postgresPrograms(t testing.TB) string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin"} {
		folders, _ := filepath.Glob(pattern)
		found = append(found, folders...)
	}
	slices.Reverse(found)
	if path, err := exec.LookPath("pg_basebackup"); err == nil {
		found = append(found, filepath.Dir(path))
	}
	for _, folder := range found {
		if _, err := os.Stat(filepath.Join(folder, "initdb")); err == nil {
			return folder
		}
	}
	t.Fatal("PostgreSQL's initdb is not here; scripts/postgres.sh start says how to get it")
	return ""
}

// postgresOwner returns the user that runs PostgreSQL when root runs the tests, because PostgreSQL refuses root. It returns nil for
// any other user.
func postgresOwner(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
			gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
			if err := errors.Join(uidErr, gidErr); err != nil {
				t.Fatal(err)
			}
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	t.Fatal("PostgreSQL refuses root, and there is neither a user postgres nor nobody")
	return nil
}

// command returns a command that runs one of PostgreSQL's programs as its owner.
func (c *couple) command(name string, args ...string) *exec.Cmd {
	run := exec.Command(filepath.Join(c.programs, name), args...)
	run.Dir = "/" // a folder that every user may enter
	run.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner}
	return run
}

func (c *couple) do(name string, args ...string) {
	c.t.Helper()
	if out, err := c.command(name, args...).CombinedOutput(); err != nil {
		c.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func (c *couple) append(path, text string) {
	c.t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteString(text)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// start starts a server on a free port and waits until it answers. If another program has taken the port, start uses another port.
func (c *couple) start(data string) *cluster {
	c.t.Helper()
	for {
		s := c.launch(data)
		answers := false
		clocktest.Await(c.t, filepath.Base(data)+" to answer", func() bool {
			select {
			case <-s.gone:
				return true
			default:
				answers = c.ask(s, "postgres", "SELECT 1") == "1"
				return answers
			}
		})
		if answers {
			return s
		}
		if !strings.Contains(s.log.String(), "could not bind") {
			c.t.Fatalf("%s ended: %s", filepath.Base(data), s.log)
		}
	}
}

// launch starts a server.
func (c *couple) launch(data string) *cluster {
	c.t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	s := &cluster{port: free.Addr().(*net.TCPAddr).Port, log: &tail{}, gone: make(chan struct{})}
	_ = free.Close()
	s.run = c.command("postgres", "-D", data, "-p", strconv.Itoa(s.port))
	s.run.Stdout, s.run.Stderr = s.log, s.log
	if err := s.run.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		_ = s.run.Wait()
		close(s.gone)
	}()
	c.t.Cleanup(func() {
		c.end(s)
		if c.t.Failed() {
			c.t.Logf("the end of what %s printed:\n%s", filepath.Base(data), lastLines(s.log.String(), 30))
		}
	})
	return s
}

// urlOf is the URL of a database of one server.
func urlOf(s *cluster, name string) string {
	return fmt.Sprintf("postgres://makola@127.0.0.1:%d/%s?sslmode=disable", s.port, name)
}

// url names both servers. A connection goes to the server that accepts writes, as after a failover.
func (c *couple) url() string {
	return fmt.Sprintf("postgres://makola@127.0.0.1:%d,127.0.0.1:%d/makola?sslmode=disable&target_session_attrs=read-write", c.primary.port, c.standby.port)
}

// ask returns the first value of a query as text, and nothing where there is no answer.
func (c *couple) ask(s *cluster, name, query string) (text string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, urlOf(s, name))
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close(ctx) }()
	_ = conn.QueryRow(ctx, "SELECT CAST(("+query+") AS text)").Scan(&text)
	return text
}

func (c *couple) exec(s *cluster, name string, statements ...string) {
	c.t.Helper()
	conn, err := pgx.Connect(c.t.Context(), urlOf(s, name))
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, statement := range statements {
		if _, err := conn.Exec(c.t.Context(), statement); err != nil {
			c.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// caughtUp waits until the standby shows all commits up to now.
func (c *couple) caughtUp() {
	c.t.Helper()
	to := c.ask(c.primary, "postgres", "SELECT pg_current_wal_lsn()")
	clocktest.Await(c.t, "the standby to be at "+to, func() bool {
		return to != "" && c.ask(c.standby, "postgres", "SELECT pg_last_wal_replay_lsn() >= '"+to+"'") == "true"
	})
}

// synchronous makes the primary wait for the standby at each commit, and sets the server's flag for this.
func (c *couple) synchronous() {
	c.t.Helper()
	c.exec(c.primary, "postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
	clocktest.Await(c.t, "the standby to be synchronous", func() bool {
		return c.ask(c.primary, "postgres", "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1"
	})
}

// freeze keeps later commits from the standby by stopping the sender of the primary. A stopped receiver would read the sent commits
// when it continues.
func (c *couple) freeze() {
	c.t.Helper()
	c.caughtUp()
	pid, err := strconv.Atoi(c.ask(c.primary, "postgres", "SELECT pid FROM pg_stat_replication"))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGSTOP)
	}
	if err != nil {
		c.t.Fatalf("stop the sender: %v", err)
	}
}

// killPrimary ends all processes of the primary at once, like a power cut.
func (c *couple) killPrimary() {
	c.t.Helper()
	c.end(c.primary)
}

// end kills a server with its children. A frozen child would not end by itself.
func (c *couple) end(s *cluster) {
	select {
	case <-s.gone:
		return
	default:
	}
	all := strings.Split(c.ask(s, "postgres", "SELECT string_agg(CAST(pid AS text), ',') FROM pg_stat_activity"), ",")
	_ = s.run.Process.Kill()
	for _, text := range all {
		if pid, err := strconv.Atoi(text); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // one that has ended meanwhile
		}
	}
	<-s.gone
}

// promote makes the standby the primary, on a new timeline.
func (c *couple) promote() {
	c.t.Helper()
	if promoted := c.ask(c.standby, "postgres", "SELECT pg_promote(true, 600)"); promoted != "true" {
		c.t.Fatalf("the standby was not promoted: %q", promoted)
	}
}

// A promoted asynchronous standby lacks the commits that it did not receive, like a restored backup. The program continues with
// the commits that it received.
func TestStandby_asynchronousBeginsRecovery(t *testing.T) {
	t.Parallel()
	c, sim, in := startCouple(t), startSim(t), newInbox(t)
	where := site{engine: db.Postgres, data: t.TempDir(), url: c.url()}
	server := where.serve(t, "makola", sim)
	api := newClient(server.ready.APIURL, server.ready.APIKey)
	pay := func(reference string) bool {
		a, err := api.call(http.MethodPost, "/payment-api/send/mobilemoney", map[string]any{"amount": "0.50", "account_number": "0240000001",
			"channel": "MTN", "client_reference": reference, "callback_url": in.server.URL})
		return err == nil && a.status == http.StatusOK
	}
	there := func(s *cluster, reference string) bool {
		return c.ask(s, "makola", "SELECT count(*) FROM payments WHERE reference = '"+reference+"'") == "1"
	}
	if !pay("before-the-freeze") {
		t.Fatal("no payout before the freeze")
	}
	open := held(t, api, in)
	c.freeze()
	// The payment ends in the lost period: the node has forgotten it, and the promoted standby has its job.
	(&client{base: sim.ready.SimURL, http: api.http}).post(t, "/transactions/"+open, map[string]any{"action": "succeed"})
	clocktest.Await(t, "the open payout to be paid", func() bool {
		return c.ask(c.primary, "makola", "SELECT status FROM payments WHERE provider_reference = '"+open+"'") == "success"
	})
	if !pay("after-the-freeze") || !there(c.primary, "after-the-freeze") {
		t.Fatal("no payout after the freeze")
	}
	was := c.ask(c.primary, "postgres", "SELECT pg_walfile_name(pg_current_wal_lsn())")
	c.killPrimary()
	c.promote()
	is := c.ask(c.standby, "postgres", "SELECT pg_walfile_name(pg_current_wal_lsn())")
	if len(was) != 24 || len(is) != 24 || was[:8] == is[:8] {
		t.Errorf("the primary wrote to %q, the promoted standby to %q: the timeline is the same", was, is)
	}
	if !there(c.standby, "before-the-freeze") || there(c.standby, "after-the-freeze") {
		t.Error("the promoted standby has not what the frozen one had")
	}
	clocktest.Await(t, "the payout that was lost to be adopted where it was paid", func() bool { return pay("after-the-freeze") })
	if phase := c.ask(c.standby, "makola", "SELECT phase FROM recovery"); phase != "open" {
		t.Errorf("the recovery is %q", phase)
	}
	clocktest.Await(t, "all to be settled", func() bool { return openTransfers(t, api) == 0 })
	api.settledOnce(t, sim, "/payment-api/checkstatus/after-the-freeze")
	api.settledOnce(t, sim, "/payment-api/checkstatus/open-at-the-freeze")
}

// held makes a payout that stays open until a command to the simulator, and returns its provider reference.
func held(t *testing.T, api *client, in *inbox) (reference string) {
	t.Helper()
	a, err := api.call(http.MethodPost, "/payment-api/send/mobilemoney", map[string]any{"amount": "0.50", "account_number": "0240000003",
		"channel": "MTN", "client_reference": "open-at-the-freeze", "callback_url": in.server.URL})
	if err != nil || a.status != http.StatusOK {
		t.Fatalf("an open payout: %v %+v", err, a)
	}
	return field(a.data, "transaction_id")
}

func (c *client) post(t *testing.T, path string, body any) {
	t.Helper()
	if a, err := c.call(http.MethodPost, path, body); err != nil || a.status != http.StatusOK {
		t.Fatalf("POST %s: %v %+v", path, err, a)
	}
}

// A synchronous standby has every acknowledged commit.
func TestStandby_synchronousIsComplete(t *testing.T) {
	t.Parallel()
	c := startCouple(t)
	c.synchronous()
	c.exec(c.primary, "makola", "CREATE TABLE acknowledged (n INT)", "INSERT INTO acknowledged VALUES (1)")
	c.killPrimary()
	c.promote()
	if n := c.ask(c.standby, "makola", "SELECT count(*) FROM acknowledged"); n != "1" {
		t.Errorf("%q of 1 row", n)
	}
}
