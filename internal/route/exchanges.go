package route

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
)

// Record adds an exchange to the operators' log. It never waits. If the writer is too slow, the exchange is dropped
// and counted.
func (t *Table) Record(e provider.Exchange) {
	select {
	case t.log2db.exchanges <- e:
	default:
		t.metrics.dropped.Inc()
	}
}

// Flush waits until everything that was recorded or decided before the call is stored. The table must be started.
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

// write is the background work. It collects exchanges for a moment, so that the log costs at most a few transactions
// a second. It publishes breakers at once.
func (t *Table) write() {
	w := &t.log2db
	defer w.done.Done()
	var batch []provider.Exchange
	gather := time.NewTimer(time.Hour)
	gather.Stop()
	defer gather.Stop()
	callbacks := time.NewTimer(time.Hour)
	callbacks.Stop()
	defer callbacks.Stop()
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
		case <-t.callbacks.new:
			callbacks.Reset(publishCallbacksEvery)
		case <-callbacks.C:
			t.publishCallbacks()
		case done := <-w.flush:
			batch = t.drain(batch)
			t.publishOrRetry()
			t.publishCallbacks()
			close(done)
		case <-w.stop:
			t.drain(batch)
			t.publishOrRetry()
			t.publishCallbacks()
			return
		}
	}
}

// drain stores the collected and queued exchanges.
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

// publishOrRetry publishes breakers. If that fails, it is tried again at the next exchange or change. A later retry
// is enough, because without a database there is no work to route.
func (t *Table) publishOrRetry() {
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	if err := t.publishBreakers(ctx); err != nil {
		t.log.Warn("failed to publish circuit breakers", "error", err)
	}
}

// writeExchanges stores a batch and returns the emptied slice. A batch that cannot be stored is dropped and counted,
// because the log is only an aid for operators.
func (t *Table) writeExchanges(batch []provider.Exchange) []provider.Exchange {
	if len(batch) == 0 {
		return batch
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	rows := make([]exchangeRow, len(batch))
	for i, e := range batch {
		rows[i] = exchangeRow{exchangeKey{db.Micros(e.At), rand.Int64N(exchangeIDs)}, e.Payment, t.packer.pack(e)}
	}
	err := t.db.Write(ctx, func(tx *db.Tx) error {
		db.Insert(tx, "exchanges", exchangeColumns, rows)
		deferLatency(tx, batch)
		return nil
	})
	if err != nil {
		t.metrics.dropped.Add(float64(len(batch)))
		t.log.Warn("failed to write exchange log", "rows", len(batch), "error", err)
	}
	return batch[:0]
}

// exchangeIDs is the number of possible ids for the exchanges of one microsecond.
const exchangeIDs = 1 << 48

// An exchangeKey identifies an exchange in the log.
type exchangeKey struct {
	at int64 // microseconds
	id int64
}

// An exchangeRow is an exchange as it is stored.
type exchangeRow struct {
	exchangeKey
	payment string
	packed  []byte
}

var exchangeColumns = []db.Column[exchangeRow]{
	{Name: "at", Int: func(e exchangeRow) int64 { return e.at }},
	{Name: "id", Int: func(e exchangeRow) int64 { return e.id }},
	{Name: "payment", Text: func(e exchangeRow) string { return e.payment }},
	{Name: "packed", Blob: func(e exchangeRow) []byte { return e.packed }},
}

// Statements for the exchanges of a payment and for the latest exchanges, in the packed form and in the form of
// earlier versions.
const (
	exchangesOfPayment = `SELECT at, id, payment, packed FROM exchanges WHERE payment = $1 ORDER BY at, id LIMIT 1000`
	latestExchanges    = `SELECT at, id, payment, packed FROM exchanges ORDER BY at DESC, id DESC LIMIT $1`
	unpackedColumns    = `payment, reference, at, took, provider, mode, operation, method, url, status, request, answer, written, error`
	unpackedOfPayment  = `SELECT ` + unpackedColumns + ` FROM provider_exchanges WHERE payment = $1 ORDER BY at, id LIMIT 1000`
	latestUnpacked     = `SELECT ` + unpackedColumns + ` FROM provider_exchanges ORDER BY at DESC, id DESC LIMIT $1`
	mostExchanges      = 1000
)

// Exchanges returns the exchanges about one payment, identified by our id, oldest first, at most 1,000.
func (t *Table) Exchanges(ctx context.Context, payment string) ([]provider.Exchange, error) {
	list, err := t.readExchanges(ctx, exchangesOfPayment, unpackedOfPayment, payment)
	slices.SortStableFunc(list, func(a, b provider.Exchange) int { return a.At.Compare(b.At) })
	return list[:min(len(list), mostExchanges)], err
}

// LatestExchanges returns the newest n exchanges, newest first, at most 1,000.
func (t *Table) LatestExchanges(ctx context.Context, n int) ([]provider.Exchange, error) {
	n = min(max(n, 1), mostExchanges)
	list, err := t.readExchanges(ctx, latestExchanges, latestUnpacked, n)
	slices.SortStableFunc(list, func(a, b provider.Exchange) int { return b.At.Compare(a.At) })
	return list[:min(len(list), n)], err
}

// readExchanges reads packed exchanges and those of earlier versions.
func (t *Table) readExchanges(ctx context.Context, packed, unpacked string, arg any) (list []provider.Exchange, err error) {
	err = t.db.Read(ctx, func(tx *db.Tx) error {
		list = nil
		return tx.Gather(
			db.Query{SQL: packed, Args: []any{arg}, Each: func(r *db.Row) error {
				_, e, err := t.scanPacked(r)
				list = append(list, e)
				return err
			}},
			db.Query{SQL: unpacked, Args: []any{arg}, Each: func(r *db.Row) error {
				var e provider.Exchange
				var took int64
				err := r.Scan(&e.Payment, &e.Reference, &e.At, &took, &e.Provider, &e.Mode, &e.Operation, &e.Method, &e.URL,
					&e.Status, &e.Request, &e.Answer, &e.Written, &e.Err)
				e.Took = time.Duration(took) * time.Microsecond
				list = append(list, e)
				return err
			}})
	})
	return list, err
}

// scanPacked reads the columns at, id, payment and packed.
func (t *Table) scanPacked(r *db.Row) (k exchangeKey, e provider.Exchange, err error) {
	var packed []byte
	if err := r.Scan(&k.at, &k.id, &e.Payment, &packed); err != nil {
		return k, e, err
	}
	e.At = db.FromMicros(k.at)
	return k, e, t.packer.unpack(packed, &e)
}

var pruneExchanges = []string{
	`DELETE FROM exchanges WHERE (at, id) IN (SELECT at, id FROM exchanges WHERE at < $1 ORDER BY at, id LIMIT $2)`,
	`DELETE FROM provider_exchanges WHERE (at, id) IN (SELECT at, id FROM provider_exchanges WHERE at < $1 ORDER BY at, id LIMIT $2)`,
}

// Prune deletes exchanges and latencies from before the given time, a thousand rows in each transaction. It returns
// the number of deleted exchanges. Package app calls it periodically.
func (t *Table) Prune(ctx context.Context, before time.Time) (total int64, err error) {
	const atOnce = 1000
	for _, prune := range pruneExchanges {
		for n := int64(atOnce); n == atOnce; total += n {
			err := t.db.Write(ctx, func(tx *db.Tx) (err error) {
				n, err = tx.Exec(prune, db.Micros(before), atOnce)
				return err
			})
			if err != nil {
				return total, err
			}
		}
	}
	return total, db.Prune(ctx, t.db, pruneLatency, atOnce, db.Micros(before))
}
