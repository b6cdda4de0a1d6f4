package lease

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// The previous release writes no level into its leases. Its valid lease counts as an older node, and its expired
// lease does not.
func TestOlderLives_leaseOfTheReleaseBefore(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		older := func() (lives bool) {
			t.Helper()
			if err := d.Read(t.Context(), func(tx *db.Tx) (err error) {
				lives, err = OlderLives(tx)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return lives
		}
		lease := func(sql string, args ...any) {
			t.Helper()
			if _, err := d.Exec(t.Context(), sql, args...); err != nil {
				t.Fatal(err)
			}
		}
		lease(sqlLease, "new/1", "new", int64(1), time.Hour.Microseconds(), int64(level))
		if older() {
			t.Fatal("a node of this program is taken for an older one")
		}
		lease("INSERT INTO job_leases (owner, node, epoch, expires_at) VALUES ('old/1', 'old', 1, now_micros() + 60000000)")
		if !older() {
			t.Fatal("an older node that is alive is not seen")
		}
		lease("UPDATE job_leases SET expires_at = now_micros() - 1 WHERE owner = 'old/1'")
		if older() {
			t.Fatal("a lease that has lapsed counts")
		}
	})
}
