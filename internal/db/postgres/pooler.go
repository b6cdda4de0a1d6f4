package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A pooler in transaction mode (PgBouncer) runs each transaction on another of its connections to the server. These
// connections lack our prepared statements and our connection settings. Behind a pooler we use no prepared
// statements. The settings must be set for the role, or Open refuses the server.

// roleSettings are the settings that correct results and good plans need.
var roleSettings = []string{
	"enable_hashjoin", "enable_mergejoin", "enable_seqscan", "idle_in_transaction_session_timeout", "jit", "lock_timeout", "synchronous_commit",
}

// pooled reports whether the connection goes through a pooler. The server's process id then differs from the id that
// we received when we connected.
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
		want := settings[name]
		if name == "synchronous_commit" {
			want = "on"
			if value != "off" { // a stricter setting than on is valid, too
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

// startupRefused returns an error that explains the fix if a pooler refused the parameters of our connection, and nil
// for any other error.
func startupRefused(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || !strings.Contains(pg.Message, "startup parameter") {
		return nil
	}
	return fmt.Errorf("db: the pooler before PostgreSQL refuses settings (%s). Set ignore_startup_parameters = %s in PgBouncer, and start again. The next start names the remaining settings",
		pg.Message, strings.Join(slices.Sorted(maps.Keys(settings)), ","))
}
