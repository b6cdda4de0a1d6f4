package db

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/makola/makola/internal/problem"
)

// A pooler in transaction mode (PgBouncer) gives each transaction another of its
// connections, which do not have what we ask for when we connect: statements that
// were prepared, and settings. The first we do without; the second must be the
// role's own, or the server is refused.

// roleSettings are those of postgresSettings that answers and plans rest on.
var roleSettings = []string{
	"enable_hashjoin", "enable_mergejoin", "enable_seqscan", "idle_in_transaction_session_timeout", "jit", "lock_timeout", "synchronous_commit",
}

// pooled says whether there is a pooler at the other end: the server has another
// process than the one that greeted us.
func pooled(c *pgx.Conn) bool { return identityOf(c).pid == 0 }

const sqlRoleSettings = `SELECT name, reset_val FROM pg_settings WHERE name = ANY($1) ORDER BY name`

// checkPooler returns an error that names the settings which the pooler's connections lack. Its query prepares no named
// statement: that would stay on the pooler's connection, and the next client to prepare it there would be refused (42P05).
func checkPooler(ctx context.Context, c *pgx.Conn) error {
	rows, err := c.Query(ctx, sqlRoleSettings, pgx.QueryExecModeCacheDescribe, roleSettings)
	if err != nil {
		return err
	}
	var set []string
	var name, value string
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		want := postgresSettings[name]
		if name == "synchronous_commit" {
			want = "on"
			if value != "off" { // one that waits for more than its own disk is as good
				return nil
			}
		}
		if strings.HasSuffix(name, "_timeout") && value != "0" || value == want {
			return nil
		}
		set = append(set, name+" = '"+want+"'")
		return nil
	})
	if err != nil || len(set) == 0 {
		return err
	}
	role := pgx.Identifier{c.Config().User}.Sanitize()
	for i, s := range set {
		set[i] = "ALTER ROLE " + role + " SET " + s + ";"
	}
	return fmt.Errorf("db: there is a pooler between Makola and PostgreSQL, whose connections lack settings. Run this as an administrator and restart the pooler: %s",
		strings.Join(set, " "))
}

// RefusePooler returns an error if a pooler answers at the URL of a database. PostgreSQL's own programs (pg_dump, psql) empty
// the search path of their session. Behind a pooler that session belongs to the servers' transactions next, which then find
// no tables.
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
	return problem.New(problem.Invalid, "database_pooled", "The URL of the database leads to a pooler. pg_dump and psql change settings of its connections, "+
		"which breaks the servers behind it: name PostgreSQL's own address with --database")
}

// startupRefused explains a pooler's refusal of what we ask for when we connect.
func startupRefused(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || !strings.Contains(pg.Message, "startup parameter") {
		return nil
	}
	return fmt.Errorf("db: the pooler before PostgreSQL refuses settings (%s). Set ignore_startup_parameters = %s in PgBouncer, and start again: what is missing then is told by name",
		pg.Message, strings.Join(slices.Sorted(maps.Keys(postgresSettings)), ","))
}
