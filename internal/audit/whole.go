package audit

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
)

const (
	// wholeEvery is the time from the beginning of one whole check to that of the next. A check with faults is repeated at once.
	wholeEvery = 24 * time.Hour
	// wholeAge is the age from which a check that has not ended begins anew, so that no stored position lasts.
	wholeAge = 3 * wholeEvery
	// workFor bounds one run of Work. It runs every ten seconds.
	workFor = 2 * time.Second
)

// The stages of the whole check, in their order. They are stored.
const (
	stageEntries = "entries" // looks up each entry in the chain
	stageLinks   = "links"   // follows the chain and checks its end
)

// lastID sorts after every id.
const lastID = "\U0010ffff"

// whole is the stored state of the whole check.
type whole struct {
	version          int64 // zero: not stored
	stage            string
	entry            string
	head             Head
	found, result    faults
	begunAt, endedAt time.Time
}

// faults are the first faults of a check, and the number of all.
type faults struct {
	Count int64
	First []Fault
}

// join adds the faults of a set. A fault that several sets find, such as a lost key, counts once.
func (f *faults) join(v Verified) {
	f.Count += v.FaultCount
	for _, one := range v.Faults {
		one.content = "" // is not stored
		switch {
		case slices.Contains(f.First, one):
			f.Count--
		case len(f.First) < maxFaults:
			f.First = append(f.First, one)
		}
	}
}

// Whole is the result of the whole check.
type Whole struct {
	BegunAt time.Time // of the running check; zero: none runs
	EndedAt time.Time // of the last check that ended; zero: none has
	Links   int64     // that the running check has passed
	Faults  []Fault   // of the last check that ended and of the running one, at most 200
}

const (
	selectWhole = `SELECT version, stage, entry, number, hash, found, result, begun_at, ended_at, mac FROM audit_whole WHERE id = 1`
	insertWhole = `INSERT INTO audit_whole (id, version, stage, entry, number, hash, found, result, begun_at, ended_at, mac) VALUES (1, $1 + 1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	updateWhole = `UPDATE audit_whole SET version = version + 1, stage = $2, entry = $3, number = $4, hash = $5, found = $6, result = $7, begun_at = $8, ended_at = $9, mac = $10
		WHERE id = 1 AND version = $1`

	lastLinkOfSet  = `SELECT number FROM audit_chain WHERE number > $1 AND number < $2 ORDER BY number LIMIT 1 OFFSET $3`
	lastEntryOfSet = `SELECT id FROM audit_log WHERE id > $1 ORDER BY id LIMIT 1 OFFSET $2`
	linkBefore     = `SELECT number, hash FROM audit_chain WHERE number < $1 AND linked_at < $2 ORDER BY number DESC LIMIT 1`
)

// HeadBefore returns the last link that was made before a time. The zero Head means that there is none.
func (l *Log) HeadBefore(ctx context.Context, at time.Time) (h Head, err error) {
	err = l.db.Read(ctx, func(tx *db.Tx) error {
		h = Head{}
		_, err := tx.One(linkBefore, []any{int64(fence), at}, &h.Number, &h.Hash)
		return err
	})
	return h, err
}

// Whole returns the result of the whole check.
func (l *Log) Whole(ctx context.Context) (Whole, error) {
	w, err := l.whole(ctx)
	is := Whole{EndedAt: w.endedAt, Links: w.head.Number, Faults: append(w.result.First, w.found.First...)}
	if w.stage != "" {
		is.BegunAt = w.begunAt
	}
	return is, err
}

// whole reads the state. A position that was not written with the key of the chain, or that is too old, counts as none.
func (l *Log) whole(ctx context.Context) (w whole, err error) {
	err = l.db.Read(ctx, func(tx *db.Tx) error {
		var found, result, mac string
		w = whole{}
		there, err := tx.One(selectWhole, nil, &w.version, &w.stage, &w.entry, &w.head.Number, &w.head.Hash, &found, &result, &w.begunAt, &w.endedAt, &mac)
		if err != nil || !there {
			return err
		}
		// Faults that cannot be read are no reason to trust the position.
		readable := json.Unmarshal([]byte(found), &w.found) == nil && json.Unmarshal([]byte(result), &w.result) == nil
		k, err := l.wholeKey(tx)
		if err != nil {
			return err
		}
		age := l.clock.Now().Sub(w.begunAt)
		if !readable || k != nil && !hmac.Equal([]byte(mac), []byte(k.position(w))) || age > wholeAge || age < -clock.Skew {
			w = whole{version: w.version, result: w.result}
		}
		return nil
	})
	return w, err
}

// wholeKey is key, and nil if the key cannot be opened: the check itself reports this.
func (l *Log) wholeKey(tx *db.Tx) (*chainKey, error) {
	k, err := l.key(tx)
	if errors.Is(err, errNoMaster) || errors.Is(err, errKeyLost) {
		return nil, nil
	}
	return k, err
}

// position returns the keyed hash of a position and of the times of its check.
func (k *chainKey) position(w whole) string {
	if k == nil {
		return ""
	}
	h := k.mac("makola audit whole 1")
	h.text(w.stage, w.entry, w.head.Hash)
	h.number(w.head.Number)
	h.number(db.Micros(w.begunAt))
	h.number(db.Micros(w.endedAt))
	return h.sum()
}

// Work continues the whole check, or begins one that is due, for a bounded time. Verify checks everything in one
// transaction instead. Entries and links that are changed behind the position are found by the next whole check.
func (l *Log) Work(ctx context.Context) error {
	ctx = db.Bulk(ctx, "")
	w, err := l.whole(ctx)
	if err != nil {
		return err
	}
	if now := l.clock.Now(); w.stage == "" {
		if !w.endedAt.IsZero() && now.Sub(w.begunAt) < wholeEvery && w.result.Count == 0 {
			return nil
		}
		w = whole{version: w.version, stage: stageEntries, result: w.result, begunAt: now, endedAt: w.endedAt}
	}
	for begun := time.Now(); w.stage != "" && time.Since(begun) < workFor; {
		if err := l.step(ctx, &w); err != nil {
			return err
		}
	}
	err = l.db.Write(ctx, func(tx *db.Tx) error { return l.keep(tx, w) })
	if errors.Is(err, db.ErrGuard) || errors.Is(err, db.ErrUnique) {
		return nil // another node goes on with it
	}
	return err
}

// keep stores the state.
func (l *Log) keep(tx *db.Tx, w whole) error {
	k, err := l.wholeKey(tx)
	if err != nil {
		return err
	}
	found, err := json.Marshal(w.found)
	if err != nil {
		return err
	}
	result, err := json.Marshal(w.result)
	if err != nil {
		return err
	}
	sql := updateWhole
	if w.version == 0 {
		sql = insertWhole
	}
	tx.Defer(sql, 1, w.version, w.stage, w.entry, w.head.Number, w.head.Hash, string(found), string(result), w.begunAt, w.endedAt, k.position(w))
	return nil
}

// step checks one set.
func (l *Log) step(ctx context.Context, w *whole) error {
	return l.db.ReadSnapshot(ctx, func(tx *db.Tx) error {
		if w.stage == stageEntries {
			return w.entries(tx, l.set)
		}
		upto := int64(fence)
		if _, err := tx.One(lastLinkOfSet, []any{w.head.Number, int64(fence), l.set}, &upto); err != nil {
			return err
		}
		v, err := l.follow(tx, w.head, Head{}, upto)
		if err != nil {
			return err
		}
		w.found.join(v)
		if w.head = v.Head; upto == fence {
			w.stage, w.entry, w.result, w.found, w.endedAt = "", "", w.found, faults{}, l.clock.Now()
		}
		return nil
	})
}

// entries looks up one set of entries in the chain.
func (w *whole) entries(tx *db.Tx, size int) error {
	upto := lastID
	if _, err := tx.One(lastEntryOfSet, []any{w.entry, size}, &upto); err != nil {
		return err
	}
	set := walk{}
	if err := set.outside(tx, w.entry, upto); err != nil {
		return err
	}
	w.found.join(set.Verified)
	if w.entry = upto; upto == lastID {
		w.stage = stageLinks
	}
	return nil
}
