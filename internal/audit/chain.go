package audit

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"time"

	"github.com/makola/makola/internal/db"
)

const (
	// LinkEvery is the interval at which committed entries are linked.
	LinkEvery = 500 * time.Millisecond
	// headEvery is the interval at which the head of the chain is logged.
	headEvery = time.Hour
	// linkAtOnce is the number of entries that one transaction links.
	linkAtOnce = 500
)

// Head is the last link of the chain. A copy that was stored elsewhere later proves that nothing before it was
// changed.
type Head struct {
	Number int64 // 0: the chain is empty
	Hash   string
}

// link is one link of the chain.
type link struct {
	number  int64
	tenant  string
	entry   string
	at      time.Time
	hash    string
	content string // keyed hash of the entry; empty for a link without a key
}

// chainVersion begins the text that is hashed for a link without a key. Another form of the text would get another
// version.
const chainVersion = "makola audit 1"

// unkeyed returns the hash of the link after a head, in the form from before the chain had a key.
func (h Head) unkeyed(e Entry, at time.Time) string {
	sum := hasher{sha256.New()}
	sum.text(chainVersion, h.Hash)
	sum.number(h.Number + 1)
	sum.number(db.Micros(at))
	sum.entry(e)
	return sum.sum()
}

var linkColumns = []db.Column[link]{
	{Name: "number", Int: func(l link) int64 { return l.number }},
	{Name: "tenant", Text: func(l link) string { return l.tenant }},
	{Name: "entry", Text: func(l link) string { return l.entry }},
	{Name: "linked_at", Time: func(l link) time.Time { return l.at }},
	{Name: "hash", Text: func(l link) string { return l.hash }},
	{Name: "content", Text: func(l link) string { return l.content }},
}

const (
	selectHead = `SELECT number, hash FROM audit_chain WHERE number < $1 ORDER BY number DESC LIMIT 1`

	selectUnlinked = `SELECT ` + entryColumns + ` FROM audit_log a WHERE a.linked = 0 AND NOT EXISTS (
		SELECT 1 FROM audit_chain c WHERE c.tenant = a.tenant AND c.entry = a.id) ORDER BY a.id LIMIT $1`

	markLinked = `UPDATE audit_log SET linked = 1 FROM rows($1) AS r
		WHERE audit_log.tenant IN (r.tenant) AND audit_log.id = r.entry AND audit_log.linked = 0`
)

// Head reads the end of the chain.
func (l *Log) Head(ctx context.Context) (Head, error) {
	return db.Get(ctx, l.db, func(tx *db.Tx) (Head, error) { return head(tx) })
}

func head(tx *db.Tx) (h Head, err error) {
	_, err = tx.One(selectHead, []any{int64(fence)}, &h.Number, &h.Hash)
	return h, err
}

// Link links the committed entries that are not in the chain yet. If two nodes run it at once, they compete for the
// same number, and one transaction fails as a whole.
func (l *Log) Link(ctx context.Context) (linked int, err error) { return l.linkAll(ctx, false) }

// linkAll is Link. keyed is set when linkAll has once seen the chain with its key. From then on it links
// nothing without a key.
func (l *Log) linkAll(ctx context.Context, keyed bool) (linked int, err error) {
	for {
		n, err := l.linkSome(ctx, keyed)
		linked += n
		if err != nil || n < linkAtOnce {
			return linked, err
		}
	}
}

func (l *Log) linkSome(ctx context.Context, keyed bool) (int, error) {
	waiting, err := l.unlinked(ctx)
	if err != nil || waiting == 0 {
		return 0, err
	}
	linked := 0
	err = l.db.Write(ctx, func(tx *db.Tx) error {
		k, err := l.key(tx)
		if err == nil && k == nil && keyed {
			err = errKeyLost
		}
		if err != nil {
			return err
		}
		now := l.clock.Now()
		before, number, err := l.end(tx, k, now)
		if err != nil {
			return err
		}
		var links []link
		if err := tx.Query(selectUnlinked, []any{linkAtOnce}, func(r *db.Row) error {
			var e Entry
			err := scan(r, &e)
			next := k.next(before, number, e, now)
			links = append(links, next)
			before, number = Head{next.number, next.hash}, number+1
			return err
		}); err != nil {
			return err
		}
		linked = len(links)
		insertLinks(tx, k, links)
		return nil
	})
	return linked, err
}

// end returns the head that the next link follows, and the number of that link. A chain with a key continues after
// its sealed head, so that a truncated end leaves a gap. If the sealed head is missing or changed, end links an entry
// that records this.
func (l *Log) end(tx *db.Tx, k *chainKey, now time.Time) (before Head, number int64, err error) {
	last, err := head(tx)
	if err != nil || k == nil {
		return last, last.Number + 1, err
	}
	sealed, intact, err := sealedHead(tx, k)
	if err != nil {
		return Head{}, 0, err
	}
	if intact {
		return sealed, max(sealed.Number, last.Number) + 1, nil
	}
	e, err := l.write(tx, Entry{Actor: chainActor, Action: actionHeadLost, Details: map[string]any{"last": last.Number, "head": sealed.Number}})
	if err != nil {
		return Head{}, 0, err
	}
	own := k.next(last, last.Number+1, e, now)
	insertLinks(tx, k, []link{own})
	return Head{own.number, own.hash}, own.number + 1, nil
}

// insertLinks inserts links, marks their entries as linked, and seals the last link as the head.
func insertLinks(tx *db.Tx, k *chainKey, links []link) {
	if len(links) == 0 {
		return
	}
	db.Insert(tx, "audit_chain", linkColumns, links)
	tx.Defer(markLinked, int64(len(links)), db.RowsOf(linkColumns, links))
	if k != nil {
		h := Head{links[len(links)-1].number, links[len(links)-1].hash}
		tx.Defer(writeSeal, 1, h.Number, h.Hash, k.seal(h))
	}
}

// unlinked returns 1 if an entry waits for a link, and otherwise 0. It only reads, because most calls find no
// entry.
func (l *Log) unlinked(ctx context.Context) (found int, err error) {
	err = l.db.Read(ctx, func(tx *db.Tx) error {
		found = 0
		return tx.Query(selectUnlinked, []any{1}, func(*db.Row) error { found++; return nil })
	})
	return found, err
}

const selectOldestUnlinked = `SELECT coalesce(min(at), 0) FROM audit_log WHERE linked = 0`

// UnlinkedSince returns the time of the oldest entry that is not linked, or zero if all are linked.
func (l *Log) UnlinkedSince(ctx context.Context) (at time.Time, err error) {
	_, err = l.db.ReadOne(ctx, selectOldestUnlinked, nil, &at)
	return at, err
}

// Keep links new entries until ctx ends. It logs the head at the beginning and then once an hour. Only one node
// should run it. It creates the chain's key when older reports that no running node links without one.
func (l *Log) Keep(ctx context.Context, log *slog.Logger, older func(*db.Tx) (bool, error)) {
	tick := time.NewTicker(LinkEvery) // by the machine's clock, which a simulation does not change
	defer tick.Stop()
	var logged time.Time
	healthy, keyed := true, false
	for ctx.Err() == nil {
		var err error
		if !keyed {
			keyed, err = l.StartKey(ctx, older)
		}
		if err == nil {
			_, err = l.linkAll(ctx, keyed)
		}
		if errors.Is(err, db.ErrUnique) || errors.Is(err, db.ErrGuard) {
			err = nil // another node linked the entries, after this node's lease ended
		}
		if err == nil && (logged.IsZero() || time.Since(logged) >= headEvery) {
			var h Head
			if h, err = l.Head(ctx); err == nil {
				log.InfoContext(ctx, "audit chain head", "number", h.Number, "hash", h.Hash, "keyed", keyed)
				logged = time.Now()
			}
		}
		switch {
		case err != nil && healthy && ctx.Err() == nil:
			log.ErrorContext(ctx, "failed to link audit log entries", "error", err)
		case err == nil && !healthy:
			log.InfoContext(ctx, "resumed linking audit log entries")
		}
		healthy = err == nil
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
