package db

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
)

// clientWords are the words of a database URL that PostgreSQL's own programs know, and the environment variables by
// which they read them.
var clientWords = map[string]string{
	"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY", "sslcrl": "PGSSLCRL",
	"sslsni": "PGSSLSNI", "sslnegotiation": "PGSSLNEGOTIATION", "ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION",
	"channel_binding": "PGCHANNELBINDING", "require_auth": "PGREQUIREAUTH", "krbsrvname": "PGKRBSRVNAME",
	"target_session_attrs": "PGTARGETSESSIONATTRS", "connect_timeout": "PGCONNECT_TIMEOUT",
}

// ClientEnvironment gives the environment variables by which PostgreSQL's own programs reach the database of a URL, so
// that nothing of it stands on their command lines, which every user of the machine can read.
func ClientEnvironment(database string) ([]string, error) {
	config, err := pgconn.ParseConfig(database)
	u, urlErr := url.Parse(database)
	if err != nil || urlErr != nil || u.Scheme == "" {
		return nil, errURL
	}
	hosts, ports := []string{config.Host}, []string{strconv.Itoa(int(config.Port))}
	for _, f := range config.Fallbacks {
		host, port := f.Host, strconv.Itoa(int(f.Port))
		if last := len(hosts) - 1; hosts[last] != host || ports[last] != port { // the same one, with and without TLS
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

// errURL does not quote the URL, which may have a password.
var errURL = errors.New("db: the database must be named by a URL: postgres://user:password@host:port/name")

// scratchPrefix begins the names of databases that are made for a while.
const scratchPrefix = "scratch_makola_"

// Scratch makes an empty database on the server of a URL and gives its URL, whose tables will be in schema. drop removes
// it with all that it holds.
func Scratch(ctx context.Context, server, schema string) (database string, drop func(context.Context) error, err error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme == "" {
		return "", nil, errURL
	}
	name := scratchPrefix + time.Now().UTC().Format("20060102t150405_") + strings.ToLower(rand.Text()[:8])
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

// alone runs a statement that cannot be part of a transaction.
func alone(ctx context.Context, database, statement string) error {
	config, err := pgx.ParseConfig(database)
	if err != nil {
		return errURL
	}
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return classify(err)
	}
	_, err = c.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol)
	return classify(errors.Join(err, c.Close(ctx)))
}
