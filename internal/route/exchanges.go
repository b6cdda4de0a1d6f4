package route

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
)

const (
	queuedExchanges = 4096 // waiting to be written; more are dropped and counted
	batchExchanges  = 256  // rows in one transaction
	gatherFor       = 250 * time.Millisecond
	writeWithin     = 10 * time.Second
	keptText        = 8192 // bytes of a body, URL or error
)

// Record takes an exchange for the operators' log. It never waits: when the
// writer cannot follow, the exchange is dropped and counted.
func (t *Table) Record(e provider.Exchange) {
	select {
	case t.log2db.exchanges <- e:
	default:
		t.metrics.dropped.Inc()
	}
}

// Flush waits until everything recorded and decided before the call is
// written. The table must be started.
func (t *Table) Flush(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case t.log2db.flush <- done:
	case <-t.log2db.stop:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write is the background work: it gathers exchanges for a moment, so that the
// log costs a few transactions a second at most, and publishes breakers at once.
func (t *Table) write() {
	w := &t.log2db
	defer w.done.Done()
	var batch []provider.Exchange
	gather := time.NewTimer(time.Hour)
	gather.Stop()
	defer gather.Stop()
	for {
		select {
		case e := <-w.exchanges:
			if batch = append(batch, e); len(batch) == 1 {
				gather.Reset(gatherFor)
			}
			if len(batch) < batchExchanges {
				continue
			}
			batch = t.writeExchanges(batch)
		case <-gather.C:
			batch = t.writeExchanges(batch)
			t.publishOrRetry()
		case <-w.publish:
			t.publishOrRetry()
		case done := <-w.flush:
			batch = t.drain(batch)
			t.publishOrRetry()
			close(done)
		case <-w.stop:
			t.drain(batch)
			t.publishOrRetry()
			return
		}
	}
}

// drain writes what is gathered and queued.
func (t *Table) drain(batch []provider.Exchange) []provider.Exchange {
	for range queuedExchanges {
		select {
		case e := <-t.log2db.exchanges:
			if batch = append(batch, e); len(batch) == batchExchanges {
				batch = t.writeExchanges(batch)
			}
			continue
		default:
		}
		break
	}
	return t.writeExchanges(batch)
}

// publishOrRetry leaves what cannot be published for the next exchange or
// change: without a database there is no work to route either.
func (t *Table) publishOrRetry() {
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	if err := t.publishBreakers(ctx); err != nil {
		t.log.Warn("publish circuit breakers", "error", err)
	}
}

// writeExchanges writes a batch and gives the emptied slice back. What cannot
// be written is dropped and counted: this log is an aid, not a record.
func (t *Table) writeExchanges(batch []provider.Exchange) []provider.Exchange {
	if len(batch) == 0 {
		return batch
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	rows := make([]Exchange, len(batch))
	for i, e := range batch {
		id, err := uuid.NewV7()
		if err != nil {
			id = uuid.New()
		}
		rows[i] = Exchange{ID: id.String(), Exchange: e}
	}
	err := t.db.Write(ctx, func(tx *db.Tx) error {
		db.Insert(tx, "provider_exchanges", exchangeColumns, rows)
		return nil
	})
	if err != nil {
		t.metrics.dropped.Add(float64(len(batch)))
		t.log.Warn("write the log of exchanges", "rows", len(batch), "error", err)
	}
	return batch[:0]
}

// Exchange is one row of the log.
type Exchange struct {
	ID string
	provider.Exchange
}

var exchangeColumns = []db.Column[Exchange]{
	{Name: "id", Text: func(e Exchange) string { return e.ID }},
	{Name: "payment", Text: func(e Exchange) string { return e.Payment }},
	{Name: "reference", Text: func(e Exchange) string { return clip(provider.PlainReference(e.Reference)) }},
	{Name: "at", Time: func(e Exchange) time.Time { return e.At }},
	{Name: "took", Int: func(e Exchange) int64 { return e.Took.Microseconds() }},
	{Name: "provider", Text: func(e Exchange) string { return e.Provider }},
	{Name: "mode", Text: func(e Exchange) string { return e.Mode }},
	{Name: "operation", Text: func(e Exchange) string { return e.Operation }},
	{Name: "method", Text: func(e Exchange) string { return e.Method }},
	{Name: "url", Text: func(e Exchange) string { return clip(e.URL) }},
	{Name: "status", Int: func(e Exchange) int64 { return int64(e.Status) }},
	{Name: "request", Text: func(e Exchange) string { return clip(e.Request) }},
	{Name: "answer", Text: func(e Exchange) string { return clip(e.Answer) }},
	{Name: "written", Bool: func(e Exchange) bool { return e.Written }},
	{Name: "error", Text: func(e Exchange) string { return clip(e.Err) }},
}

// clip makes text fit to store: bounded, valid and without NUL on both engines.
func clip(s string) string {
	if len(s) > keptText {
		s = s[:keptText]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "")
}

const sqlExchanges = `SELECT id, payment, reference, at, took, provider, mode, operation, method, url, status, request, answer, written, error
	FROM provider_exchanges WHERE payment = $1 ORDER BY at, id LIMIT 1000`

const sqlLatestExchanges = `SELECT id, payment, reference, at, took, provider, mode, operation, method, url, status, request, answer, written, error
	FROM provider_exchanges ORDER BY at DESC, id DESC LIMIT $1`

// Exchanges gives what was said about one payment, named by our id, oldest
// first, at most 1,000.
func (t *Table) Exchanges(ctx context.Context, payment string) ([]Exchange, error) {
	return t.readExchanges(ctx, sqlExchanges, payment)
}

// LatestExchanges gives the newest n of the log, newest first, at most 1,000.
func (t *Table) LatestExchanges(ctx context.Context, n int) ([]Exchange, error) {
	return t.readExchanges(ctx, sqlLatestExchanges, min(max(n, 1), 1000))
}

func (t *Table) readExchanges(ctx context.Context, sql string, arg any) ([]Exchange, error) {
	var list []Exchange
	err := t.db.Read(ctx, func(tx *db.Tx) error {
		list = nil
		return tx.Query(sql, []any{arg}, func(row *db.Row) error {
			var e Exchange
			var took int64
			err := row.Scan(&e.ID, &e.Payment, &e.Reference, &e.At, &took, &e.Provider, &e.Mode, &e.Operation, &e.Method, &e.URL,
				&e.Status, &e.Request, &e.Answer, &e.Written, &e.Err)
			e.Took = time.Duration(took) * time.Microsecond
			list = append(list, e)
			return err
		})
	})
	return list, err
}

const sqlPrune = `DELETE FROM provider_exchanges WHERE (at, id) IN
	(SELECT at, id FROM provider_exchanges WHERE at < $1 ORDER BY at, id LIMIT $2)`

// Prune removes exchanges from before the given time, a thousand rows in a
// transaction, and answers how many went. Package app calls it periodically.
func (t *Table) Prune(ctx context.Context, before time.Time) (int64, error) {
	const atOnce = 1000
	var total int64
	for {
		var n int64
		err := t.db.Write(ctx, func(tx *db.Tx) (err error) {
			n, err = tx.Exec(sqlPrune, db.Micros(before), atOnce)
			return err
		})
		if err != nil {
			return total, err
		}
		if total += n; n < atOnce {
			return total, nil
		}
	}
}
