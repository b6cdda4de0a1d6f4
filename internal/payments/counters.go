package payments

import (
	"cmp"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
)

// A counterKey names one number of the histories: how many payments of a
// tenant, kind and day have a status.
type counterKey struct {
	tenant string
	kind   Kind
	day    int64
	status Status
}

// tally gathers what one transaction changes in the counters.
type tally map[counterKey]int64

// day is the UTC day of a moment, in days since 1970.
func day(at time.Time) int64 { return db.Micros(at) / (24 * time.Hour).Microseconds() }

// opened counts a new payment.
func (t tally) opened(p Payment) { t[p.counter(p.Status)]++ }

// turned counts a payment that went from one status to another.
func (t tally) turned(p Payment, from, to Status) {
	t[p.counter(from)]--
	t[p.counter(to)]++
}

func (p Payment) counter(s Status) counterKey {
	return counterKey{p.Tenant, p.Kind, day(p.CreatedAt), s}
}

const counterUpsert = `INSERT INTO payment_counters (tenant, kind, day, status, shard, n)
SELECT value->>'t', value->>'k', CAST(value->>'d' AS BIGINT), value->>'s', CAST(value->>'h' AS BIGINT), CAST(value->>'n' AS BIGINT)
FROM json_each($1) WHERE true
ON CONFLICT (tenant, kind, day, status, shard) DO UPDATE SET n = payment_counters.n + excluded.n`

// post defers the changes, in the order of the key so that two transactions
// never wait for each other crosswise. Each lane of each node adds to a shard
// of its own: a day's number of a busy tenant is hot for nobody.
func (t tally) post(tx *db.Tx, shard int) {
	type row struct {
		T string `json:"t"`
		K Kind   `json:"k"`
		D int64  `json:"d"`
		S Status `json:"s"`
		H int    `json:"h"`
		N int64  `json:"n"`
	}
	rows := make([]row, 0, len(t))
	for k, n := range t {
		if n != 0 {
			rows = append(rows, row{k.tenant, k.kind, k.day, k.status, shard, n})
		}
	}
	if len(rows) == 0 {
		return
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.T, b.T), cmp.Compare(a.K, b.K), cmp.Compare(a.D, b.D), cmp.Compare(a.S, b.S))
	})
	tx.Defer(counterUpsert, int64(len(rows)), db.Set(rows))
}
