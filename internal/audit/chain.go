package audit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/makola/makola/internal/db"
)

const (
	// LinkEvery is how often committed entries are linked.
	LinkEvery = 500 * time.Millisecond
	// headEvery is how often the head of the chain is logged.
	headEvery = 24 * time.Hour
	// linkAtOnce entries are linked in one transaction.
	linkAtOnce = 500
)

// Head is the end of the chain. A copy of it that is kept elsewhere proves later that nothing before it was changed.
type Head struct {
	Number int64 // 0: the chain is empty
	Hash   string
}

// link is one link of the chain.
type link struct {
	number int64
	tenant string
	entry  string
	at     time.Time
	hash   string
}

// chainVersion begins what is hashed; another form of it gets another version.
const chainVersion = "makola audit 1"

// next makes the link of an entry behind a head. Each member is hashed with its length before it, so that nothing can be
// moved from one member to the next.
func (h Head) next(e Entry, at time.Time) link {
	sum := sha256.New()
	text := func(s string) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(s)))
		sum.Write(size[:])
		sum.Write([]byte(s))
	}
	number := func(n int64) {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(n))
		sum.Write(b[:])
	}
	text(chainVersion)
	text(h.Hash)
	number(h.Number + 1)
	number(db.Micros(at))
	details, _ := e.Details.(json.RawMessage)
	text(e.Tenant)
	text(e.ID)
	number(db.Micros(e.At))
	for _, s := range []string{e.Actor, e.Person, e.Origin, e.Action, e.Subject, e.Reason, string(details)} {
		text(s)
	}
	return link{number: h.Number + 1, tenant: e.Tenant, entry: e.ID, at: at, hash: hex.EncodeToString(sum.Sum(nil))}
}

var linkColumns = []db.Column[link]{
	{Name: "number", Int: func(l link) int64 { return l.number }},
	{Name: "tenant", Text: func(l link) string { return l.tenant }},
	{Name: "entry", Text: func(l link) string { return l.entry }},
	{Name: "linked_at", Time: func(l link) time.Time { return l.at }},
	{Name: "hash", Text: func(l link) string { return l.hash }},
}

const (
	selectHead = `SELECT number, hash FROM audit_chain ORDER BY number DESC LIMIT 1`

	selectUnlinked = `SELECT ` + entryColumns + ` FROM audit_log a WHERE a.linked = 0 AND NOT EXISTS (
		SELECT 1 FROM audit_chain c WHERE c.tenant = a.tenant AND c.entry = a.id) ORDER BY a.id LIMIT $1`

	markLinked = `UPDATE audit_log SET linked = 1 FROM rows($1) AS r
		WHERE audit_log.tenant IN (r.tenant) AND audit_log.id = r.entry AND audit_log.linked = 0`
)

// Head reads the end of the chain.
func (l *Log) Head(ctx context.Context) (h Head, err error) {
	err = l.db.Read(ctx, func(tx *db.Tx) error {
		h, err = head(tx)
		return err
	})
	return h, err
}

func head(tx *db.Tx) (h Head, err error) {
	_, err = tx.One(selectHead, nil, &h.Number, &h.Hash)
	return h, err
}

// Link links the entries that are committed and not in the chain yet. It may run on two nodes at once: a number of the
// chain is taken once, and the other transaction fails as a whole.
func (l *Log) Link(ctx context.Context) (linked int, err error) {
	for {
		n, err := l.linkSome(ctx)
		linked += n
		if err != nil || n < linkAtOnce {
			return linked, err
		}
	}
}

func (l *Log) linkSome(ctx context.Context) (int, error) {
	waiting, err := l.unlinked(ctx)
	if err != nil || waiting == 0 {
		return 0, err
	}
	var links []link
	err = l.db.Write(ctx, func(tx *db.Tx) error {
		links = nil
		h, err := head(tx)
		if err != nil {
			return err
		}
		now := l.clock.Now()
		if err := tx.Query(selectUnlinked, []any{linkAtOnce}, func(r *db.Row) error {
			var e Entry
			err := scan(r, &e)
			next := h.next(e, now)
			links = append(links, next)
			h = Head{next.number, next.hash}
			return err
		}); err != nil || len(links) == 0 {
			return err
		}
		db.Insert(tx, "audit_chain", linkColumns, links)
		tx.Defer(markLinked, int64(len(links)), db.RowsOf(linkColumns, links))
		return nil
	})
	return len(links), err
}

// unlinked looks without a writing transaction, because most looks find nothing.
func (l *Log) unlinked(ctx context.Context) (found int, err error) {
	err = l.db.Read(ctx, func(tx *db.Tx) error {
		found = 0
		return tx.Query(selectUnlinked, []any{1}, func(*db.Row) error { found++; return nil })
	})
	return found, err
}

const selectOldestUnlinked = `SELECT coalesce(min(at), 0) FROM audit_log WHERE linked = 0`

// UnlinkedSince is the time of the oldest entry that is not linked; zero: all are.
func (l *Log) UnlinkedSince(ctx context.Context) (at time.Time, err error) {
	err = l.db.Read(ctx, func(tx *db.Tx) error {
		_, err := tx.One(selectOldestUnlinked, nil, &at)
		return err
	})
	return at, err
}

// Keep links entries as they come, and logs the head when it begins and once a day, until ctx ends. One node at a time
// should run it.
func (l *Log) Keep(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(LinkEvery) // by the machine's clock, whatever hour it is for the simulator
	defer tick.Stop()
	var logged time.Time
	healthy := true
	for ctx.Err() == nil {
		_, err := l.Link(ctx)
		if errors.Is(err, db.ErrUnique) || errors.Is(err, db.ErrGuard) {
			err = nil // a node whose lease ended was quicker
		}
		if err == nil && (logged.IsZero() || time.Since(logged) >= headEvery) {
			var h Head
			if h, err = l.Head(ctx); err == nil {
				log.InfoContext(ctx, "head of the audit chain", "number", h.Number, "hash", h.Hash)
				logged = time.Now()
			}
		}
		switch {
		case err != nil && healthy && ctx.Err() == nil:
			log.ErrorContext(ctx, "entries of the audit log are not linked", "error", err)
		case err == nil && !healthy:
			log.InfoContext(ctx, "entries of the audit log are linked again")
		}
		healthy = err == nil
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
