//go:build !race

// The program under test is built as it ships, as in the other tests of processes.

package app_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// bouncer is a PgBouncer in transaction mode in front of the PostgreSQL of the tests.
type bouncer struct {
	t       *testing.T
	folder  string
	address string
	server  *url.URL // URL of the database behind the pooler
	run     *exec.Cmd
}

// startBouncer starts PgBouncer in front of a database, with its default settings.
func startBouncer(t *testing.T, server *url.URL) *bouncer {
	t.Helper()
	folder, err := os.MkdirTemp("", "makola-pgbouncer-") // PgBouncer's user cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	b := &bouncer{t: t, folder: folder, address: freeAddress(t), server: server}
	b.start("")
	t.Cleanup(func() {
		b.stop()
		if log, err := os.ReadFile(filepath.Join(folder, "log")); err == nil && t.Failed() {
			t.Logf("the end of PgBouncer's log:\n%s", lastLines(string(log), 30))
		}
		_ = os.RemoveAll(folder)
	})
	return b
}

// start writes the configuration and starts PgBouncer. ignored is the value of ignore_startup_parameters. PgBouncer has few
// connections, so that the transactions of a node probably get different ones.
func (b *bouncer) start(ignored string) {
	b.t.Helper()
	host, port, _ := strings.Cut(b.address, ":")
	settings := fmt.Sprintf(`[databases]
* = host=%s port=%s
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 200
logfile = %s/log
`, b.server.Hostname(), b.server.Port(), host, port, b.folder)
	if user := b.server.User.Username(); user != "" {
		settings = strings.Replace(settings, "port="+b.server.Port(), "port="+b.server.Port()+" user="+user, 1)
	}
	if ignored != "" {
		settings += "ignore_startup_parameters = " + ignored + "\n"
	}
	file := filepath.Join(b.folder, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
		b.t.Fatal(err)
	}
	args := []string{"-q", file}
	if os.Geteuid() == 0 { // PgBouncer refuses to run as root
		args = append(args, "-u", "nobody")
		if err := os.Chmod(b.folder, 0o777); err != nil {
			b.t.Fatal(err)
		}
	}
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		path = "/usr/sbin/pgbouncer"
	}
	b.run = exec.Command(path, args...)
	if err := b.run.Start(); err != nil {
		b.t.Fatalf("start PgBouncer (scripts/tools.sh installs it): %v", err)
	}
	clocktest.Await(b.t, "PgBouncer to listen", func() bool {
		c, err := net.Dial("tcp", b.address)
		return err == nil && c.Close() == nil
	})
}

func (b *bouncer) stop() {
	_ = b.run.Process.Signal(syscall.SIGINT)
	_ = b.run.Wait()
}

// restart ends every connection, as an upgrade of the pooler does.
func (b *bouncer) restart(ignored string) {
	b.t.Helper()
	b.stop()
	b.start(ignored)
}

// url is the URL by which Makola reaches the database through the pooler.
func (b *bouncer) url() string {
	way := *b.server
	way.Host = b.address
	return way.String()
}

// refused runs a command that the pooler's settings do not allow yet, and returns its error.
func refused(t *testing.T, where site, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := exec.CommandContext(ctx, program(t), append(args, where.args()...)...)
	var complaint bytes.Buffer
	run.Stderr = &complaint
	if err := run.Run(); err == nil {
		t.Fatalf("makola %s was not refused", strings.Join(args, " "))
	}
	return complaint.String()
}

// owned makes an empty database with its own role, because the settings are stored for the role.
func owned(t testing.TB) (admin string, server *url.URL) {
	t.Helper()
	admin = dbtest.EmptyURL(t)
	server, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(server.Path, "/")
	role := "role_of_" + name
	execute(t, admin, "CREATE ROLE "+role+" LOGIN", "ALTER DATABASE "+name+" OWNER TO "+role)
	t.Cleanup(func() {
		execute(t, admin, "REASSIGN OWNED BY "+role+" TO CURRENT_USER", "DROP OWNED BY "+role, "DROP ROLE "+role)
	})
	server.User = url.User(role)
	return admin, server
}

func execute(t testing.TB, way string, statements ...string) {
	t.Helper()
	c, err := pgx.Connect(context.Background(), way)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	for _, s := range statements {
		if _, err := c.Exec(context.Background(), s, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

var (
	ignoredParameters = regexp.MustCompile(`ignore_startup_parameters = (\S+)`)
	roleStatements    = regexp.MustCompile(`ALTER ROLE \S+ SET [^;]+;`)
)

// PgBouncer in transaction mode is configured exactly as the refusals print it. Then commands, migrations and two nodes under load
// work behind it, also after its restart.
func TestPgBouncer_transactionMode(t *testing.T) {
	t.Parallel()
	admin, server := owned(t)
	pooler := startBouncer(t, server)
	where := site{engine: db.Postgres, data: t.TempDir(), url: pooler.url()}

	said := refused(t, where, "migrate", "status")
	ignored := ignoredParameters.FindStringSubmatch(said)
	if ignored == nil {
		t.Fatalf("the refusal names no startup parameters: %s", said)
	}
	pooler.restart(ignored[1])
	said = refused(t, where, "migrate", "up")
	statements := roleStatements.FindAllString(said, -1)
	if len(statements) == 0 {
		t.Fatalf("the refusal prints no statements for the role: %s", said)
	}
	execute(t, admin, statements...)
	pooler.restart(ignored[1])

	where.command(t, "migrate", "up")
	for range 3 { // the second command gets connections of the pooler that the first one used
		where.command(t, "migrate", "status")
	}
	sim, in := startSim(t), newInbox(t)
	nodes := []*process{where.serve(t, "node 1", sim), where.serve(t, "node 2", sim)}
	first := nodes[0].ready
	where.command(t, "wallet", "fund", first.TenantID, "100000.00", "--reason", "load", "--reference", "load")
	opening := balance(t, newClient(first.APIURL, first.APIKey))
	l := startLoad(t, "pooled", in.server.URL, newClient(first.APIURL, first.APIKey))
	grows := func() {
		t.Helper()
		before := l.sent.Load()
		clocktest.Await(t, "the load to get answers", func() bool { return l.sent.Load() >= before+3*callers })
	}
	grows()
	pooler.restart(ignored[1])
	l.target.Store(newClient(nodes[1].ready.APIURL, first.APIKey))
	grows()
	where.command(t, "tenant", "list")
	where.command(t, "ledger", "check")
	// pg_dump empties the search path of its session, in which the nodes' next transactions would find no tables.
	if said := refused(t, where, "backup", "create", "--folder", t.TempDir()); !strings.Contains(said, "PostgreSQL's own address") {
		t.Errorf("a backup through the pooler: %s", said)
	}
	direct := site{engine: db.Postgres, data: where.data, url: server.String()}
	direct.command(t, "backup", "create", "--folder", t.TempDir())
	payouts := l.end()
	verify(t, verification{site: where, sim: sim, servers: nodes, api: newClient(first.APIURL, first.APIKey), inbox: in, opening: opening, payouts: payouts})
}

// A URL without a cache of prepared statements works, as PgBouncer's documents recommend it.
func TestPostgreSQL_withoutStatementCache(t *testing.T) {
	t.Parallel()
	where := newSite(t, db.Postgres)
	where.url += "&statement_cache_capacity=0"
	server := where.serve(t, "makola", startSim(t))
	if a, err := newClient(server.ready.APIURL, server.ready.APIKey).call(http.MethodGet, "/account-api/balance", nil); err != nil || a.status != http.StatusOK {
		t.Errorf("balance: %v %+v", err, a)
	}
	where.command(t, "ledger", "check")
}
