package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/makola/makola/internal/problem"
)

// clientWords maps the parameters of a database URL to the environment variables of PostgreSQL's own programs.
var clientWords = map[string]string{
	"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY", "sslcrl": "PGSSLCRL",
	"sslsni": "PGSSLSNI", "sslnegotiation": "PGSSLNEGOTIATION", "ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION",
	"channel_binding": "PGCHANNELBINDING", "require_auth": "PGREQUIREAUTH", "krbsrvname": "PGKRBSRVNAME",
	"target_session_attrs": "PGTARGETSESSIONATTRS", "connect_timeout": "PGCONNECT_TIMEOUT",
}

// ClientEnvironment returns the environment variables with which PostgreSQL's own programs connect to the database of
// a URL. The URL then need not be on their command lines, which every user of the machine can read.
func ClientEnvironment(database string) ([]string, error) {
	config, err := pgconn.ParseConfig(database)
	u, urlErr := url.Parse(database)
	if err != nil || urlErr != nil || u.Scheme == "" {
		return nil, errURL
	}
	hosts, ports := []string{config.Host}, []string{strconv.Itoa(int(config.Port))}
	for _, f := range config.Fallbacks {
		host, port := f.Host, strconv.Itoa(int(f.Port))
		if last := len(hosts) - 1; hosts[last] != host || ports[last] != port { // the driver lists a host twice, with and without TLS
			hosts, ports = append(hosts, host), append(ports, port)
		}
	}
	environment := []string{
		"PGHOST=" + strings.Join(hosts, ","), "PGPORT=" + strings.Join(ports, ","),
		"PGUSER=" + config.User, "PGDATABASE=" + config.Database, "PGAPPNAME=makola",
	}
	if config.Password != "" {
		environment = append(environment, "PGPASSWORD="+config.Password)
	}
	for word, variable := range clientWords {
		if value := u.Query().Get(word); value != "" {
			environment = append(environment, variable+"="+value)
		}
	}
	return environment, nil
}

// RefusePooler returns an error if the URL of a database leads to a pooler. PostgreSQL's own programs (pg_dump, psql)
// clear the search path of their session. A pooler would give that session to transactions of servers next, which
// would find no tables.
func RefusePooler(ctx context.Context, database string) error {
	c, err := connectOnce(ctx, database)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	var pid int64
	if err := c.QueryRow(ctx, `select pg_backend_pid()`, pgx.QueryExecModeSimpleProtocol).Scan(&pid); err != nil {
		return classify(err)
	}
	if pid == int64(c.PgConn().PID()) {
		return nil
	}
	return problem.New(problem.Invalid, "database_pooled", "The database URL leads to a connection pooler. pg_dump and psql would change settings of connections that "+
		"other clients use. Give PostgreSQL's own address with --database")
}

// scratchPrefix begins the names of temporary databases.
const scratchPrefix = "scratch_makola_"

// scratchTime is the format of the creation time in the name of a temporary database.
const scratchTime = "20060102t150405"

// scratchKept is the age after which a temporary database without sessions is considered left by a killed process.
const scratchKept = 24 * time.Hour

const sqlScratches = `SELECT datname FROM pg_database d WHERE datname LIKE $1
	AND NOT EXISTS (SELECT 1 FROM pg_stat_activity a WHERE a.datname = d.datname) ORDER BY datname LIMIT 100`

// dropScratches removes the temporary databases of killed processes from the server of a URL. A database that cannot
// be removed stays until the next call.
func dropScratches(ctx context.Context, server string, now time.Time) {
	c, err := pgx.Connect(ctx, server)
	if err != nil {
		return // the creation of the next database reports the cause
	}
	defer func() { _ = c.Close(ctx) }()
	rows, err := c.Query(ctx, sqlScratches, pgx.QueryExecModeCacheDescribe, strings.ReplaceAll(scratchPrefix, "_", `\_`)+"%")
	if err != nil {
		return
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return
	}
	for _, name := range names {
		stamp, _, _ := strings.Cut(strings.TrimPrefix(name, scratchPrefix), "_")
		if at, err := time.Parse(scratchTime, stamp); err == nil && now.Sub(at) > scratchKept {
			_, _ = c.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize(), pgx.QueryExecModeSimpleProtocol)
		}
	}
}

// Scratch creates an empty database on the server of a URL and returns its URL, with schema as the schema of its
// tables. drop removes the database and its contents. Before it creates the database, Scratch removes databases
// that killed processes left more than a day ago.
func Scratch(ctx context.Context, server, schema string) (database string, drop func(context.Context) error, err error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme == "" {
		return "", nil, errURL
	}
	now := time.Now().UTC()
	dropScratches(ctx, server, now)
	name := scratchPrefix + now.Format(scratchTime+"_") + strings.ToLower(rand.Text()[:8])
	if err := alone(ctx, server, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return "", nil, fmt.Errorf("db: make a temporary database: %w", err)
	}
	drop = func(ctx context.Context) error {
		return alone(ctx, server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	}
	u.Path = "/" + name
	path := u.Query()
	path.Set("search_path", schema)
	u.RawQuery = path.Encode()
	err = alone(ctx, u.String(), "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{schema}.Sanitize())
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("db: make a schema in a temporary database: %w", err), drop(ctx))
	}
	return u.String(), drop, nil
}

// alone runs a statement that cannot run in a transaction.
func alone(ctx context.Context, database, statement string) error {
	c, err := connectOnce(ctx, database)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol)
	return classify(errors.Join(err, c.Close(ctx)))
}

// connectOnce opens a connection outside the pool. Its errors do not quote the URL.
func connectOnce(ctx context.Context, database string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(database)
	if err != nil {
		return nil, errURL
	}
	c, err := pgx.ConnectConfig(ctx, config)
	return c, classify(err)
}
