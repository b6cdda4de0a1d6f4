package dbtest

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A test finds nothing of an earlier test in its database: no rows, tables or connections.
func TestPool_databaseIsCleanAgain(t *testing.T) {
	var left []*pgx.Conn
	for n, change := range []string{
		`INSERT INTO strays SELECT n FROM generate_series(1, 10) AS n`,
		`INSERT INTO job_holds (name, owner) SELECT 'a' || n, '' FROM generate_series(1, 3) AS n`,
		`INSERT INTO job_holds (name, owner) SELECT 'a' || n, '' FROM generate_series(1, 5000) AS n`,
		`ALTER TABLE job_holds DROP COLUMN owner`,
		`DELETE FROM schema_migrations`,
		``,
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c, err := pgx.Connect(t.Context(), URL(t))
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, c)
			var rows, migrations int
			err = c.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM job_holds WHERE owner = ''), (SELECT count(*) FROM schema_migrations)`).Scan(&rows, &migrations)
			if err != nil || rows != 0 || migrations == 0 {
				t.Fatalf("%d rows, %d migrations, %v", rows, migrations, err)
			}
			if _, err := c.Exec(t.Context(), `CREATE TABLE strays (n INT)`); err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				if _, err := c.Exec(t.Context(), `DROP TABLE strays`); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Exec(t.Context(), change); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, c := range left {
		_ = c.Close(t.Context())
	}
}
