package lease

import "github.com/makola/makola/internal/db"

const sqlEndAll = `UPDATE job_leases SET expires_at = 0 WHERE expires_at > 0`

// EndAll ends the lease of every node. It is for a database that was restored to an earlier state. The memory of the
// nodes does not agree with this state: finished jobs exist again, and running jobs may be missing. Each node begins
// a new epoch with its next heartbeat, and reads its jobs from the rows.
func EndAll(tx *db.Tx) { tx.Defer(sqlEndAll, -1) }

const sqlAlive = `SELECT DISTINCT node FROM job_leases WHERE expires_at > now_micros() ORDER BY node`

// AliveNodes lists the nodes whose lease has not lapsed. Callers use it to refuse changes of a database that a
// server uses.
func AliveNodes(tx *db.Tx) ([]string, error) { return tx.Texts(sqlAlive) }

// level is stored with each lease of this program. It grows by one with each change that all running nodes must
// support. Level 1 links the audit chain with a key, and level 2 posts floats by account. Programs without levels
// count as 0.
const level = 2

const sqlOlder = `SELECT 1 FROM job_leases WHERE expires_at > now_micros() AND level < $1 LIMIT 1`

// OlderLives reports whether a node of an older program has a lease that has not lapsed.
func OlderLives(tx *db.Tx) (bool, error) {
	var one int64
	return tx.One(sqlOlder, []any{level}, &one)
}
