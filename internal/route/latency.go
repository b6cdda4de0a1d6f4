package route

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
)

// buckets are the upper limits of the histogram. Rows store their indexes, so a limit never changes, and new ones may
// only be added at the end. The index after the last one is for longer responses.
var buckets = []time.Duration{25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond,
	500 * time.Millisecond, 750 * time.Millisecond, time.Second, 1500 * time.Millisecond, 2 * time.Second, 3 * time.Second, 5 * time.Second,
	8 * time.Second, 12 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute}

// bucketOf returns the index of the histogram's bucket for a duration.
func bucketOf(took time.Duration) int {
	i, _ := slices.BinarySearch(buckets, took)
	return i
}

type latencyKey struct {
	at                        time.Time
	mode, provider, operation string
	bucket                    int
}

type latencyRow struct {
	latencyKey
	n, failed int64
}

var latencyColumns = []db.Column[latencyRow]{
	{Name: "at", Time: func(r latencyRow) time.Time { return r.at }},
	{Name: "mode", Text: func(r latencyRow) string { return r.mode }},
	{Name: "provider", Text: func(r latencyRow) string { return r.provider }},
	{Name: "operation", Text: func(r latencyRow) string { return r.operation }},
	{Name: "bucket", Int: func(r latencyRow) int64 { return int64(r.bucket) }},
	{Name: "n", Int: func(r latencyRow) int64 { return r.n }},
	{Name: "failed", Int: func(r latencyRow) int64 { return r.failed }},
}

const addLatency = `INSERT INTO provider_latency (at, mode, provider, operation, bucket, n, failed)
SELECT r.at, r.mode, r.provider, r.operation, r.bucket, r.n, r.failed FROM rows($1) AS r WHERE true
ON CONFLICT (at, mode, provider, operation, bucket) DO UPDATE SET n = provider_latency.n + excluded.n, failed = provider_latency.failed + excluded.failed`

// deferLatency adds a batch of exchanges to the histogram. It updates rows in the order of their keys, so that two
// nodes cannot deadlock.
func deferLatency(tx *db.Tx, batch []provider.Exchange) {
	sums := map[latencyKey]latencyRow{}
	for _, e := range batch {
		k := latencyKey{e.At.UTC().Truncate(time.Hour), e.Mode, e.Provider, e.Operation, bucketOf(e.Took)}
		row := sums[k]
		row.latencyKey = k
		if row.n++; e.Status == 0 || e.Status >= 500 {
			row.failed++
		}
		sums[k] = row
	}
	rows := make([]latencyRow, 0, len(sums))
	for _, row := range sums {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b latencyRow) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.mode, b.mode), cmp.Compare(a.provider, b.provider), cmp.Compare(a.operation, b.operation), cmp.Compare(a.bucket, b.bucket))
	})
	tx.Defer(addLatency, int64(len(rows)), db.RowsOf(latencyColumns, rows))
}

// A Latency has the response times of a provider for one kind of request.
type Latency struct {
	Provider, Operation string
	N, Failed           int64
	counts              []int64
}

// Percentile returns the time within which a percentage of the responses arrived, as the upper limit of a bucket.
// over is set if that time is longer than the last limit.
func (l Latency) Percentile(percent int64) (within time.Duration, over bool) {
	left := (l.N*percent + 99) / 100
	for i, n := range l.counts {
		if left -= n; left <= 0 {
			return buckets[min(i, len(buckets)-1)], i == len(buckets)
		}
	}
	return 0, false
}

const pruneLatency = `DELETE FROM provider_latency WHERE (at, mode, provider, operation, bucket) IN (
SELECT at, mode, provider, operation, bucket FROM provider_latency WHERE at < $1 ORDER BY at LIMIT $2)`

const latencySince = `SELECT provider, operation, bucket, CAST(sum(n) AS BIGINT), CAST(sum(failed) AS BIGINT) FROM provider_latency
WHERE at >= $1 AND mode = $2 GROUP BY provider, operation, bucket ORDER BY provider, operation, bucket`

// Latencies returns the response times of providers since the hour of a time, by provider and kind of request.
func (t *Table) Latencies(ctx context.Context, mode string, since time.Time) (list []Latency, err error) {
	err = t.db.Read(ctx, func(tx *db.Tx) error {
		list = nil
		return tx.Query(latencySince, []any{db.Micros(since.UTC().Truncate(time.Hour)), mode}, func(r *db.Row) error {
			var one Latency
			var bucket int
			var n, failed int64
			if err := r.Scan(&one.Provider, &one.Operation, &bucket, &n, &failed); err != nil {
				return err
			}
			if last := len(list) - 1; last < 0 || list[last].Provider != one.Provider || list[last].Operation != one.Operation {
				one.counts = make([]int64, len(buckets)+1)
				list = append(list, one)
			}
			l := &list[len(list)-1]
			l.N, l.Failed = l.N+n, l.Failed+failed
			l.counts[min(max(bucket, 0), len(buckets))] += n
			return nil
		})
	})
	return list, err
}
