package audit

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
)

// Actions of entries that this package writes itself.
const (
	actionKeyed    = "audit.keyed"     // the first link with a key
	actionHeadLost = "audit.head_lost" // the sealed head was missing or changed
	chainActor     = "makola"
)

// fence is the number of an additional row after all links, inserted when the chain gets its key. A node of the
// previous release takes this row for the head, and its next number overflows. Such a node therefore links nothing,
// and its entries wait for a node with the key.
const fence = math.MaxInt64

// errKeyLost is returned if the chain has keyed links and the row of its key is missing.
var errKeyLost = errors.New("audit: the key of the chain was removed from the database: run makola audit verify")

// chainKey is the content of the sealed row: the key of the chain, and the last link that was made without it.
type chainKey struct {
	Key  []byte `json:"key"`
	Last Head   `json:"last"`
}

// boundKey is the context to which the sealed row is bound.
var boundKey = []byte("audit chain")

// hasher writes each field with its length before it, so that two different lists of fields never give the same
// bytes.
type hasher struct{ hash.Hash }

func (h hasher) text(texts ...string) {
	for _, s := range texts {
		h.number(int64(len(s)))
		h.Write([]byte(s))
	}
}

func (h hasher) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}

func (h hasher) entry(e Entry) {
	details, _ := e.Details.(json.RawMessage)
	h.text(e.Tenant, e.ID)
	h.number(db.Micros(e.At))
	h.text(e.Actor, e.Person, e.Origin, e.Action, e.Subject, e.Reason, string(details))
}

func (h hasher) sum() string { return hex.EncodeToString(h.Sum(nil)) }

// mac returns a keyed hash for one use of the key.
func (k *chainKey) mac(use string) hasher {
	h := hasher{hmac.New(sha256.New, k.Key)}
	h.text(use)
	return h
}

// content returns the keyed hash of an entry, independent of its place in the chain.
func (k *chainKey) content(e Entry) string {
	h := k.mac("makola audit entry 1")
	h.entry(e)
	return h.sum()
}

// place returns the keyed hash of a link after a head.
func (k *chainKey) place(before Head, number int64, at time.Time, content string) string {
	h := k.mac("makola audit link 1")
	h.text(before.Hash)
	h.number(number)
	h.number(db.Micros(at))
	h.text(content)
	return h.sum()
}

// seal returns the keyed hash in the row of a head.
func (k *chainKey) seal(head Head) string {
	h := k.mac("makola audit head 1")
	h.number(head.Number)
	h.text(head.Hash)
	return h.sum()
}

// next returns the link of an entry after a head. It is keyed if the chain has a key.
func (k *chainKey) next(before Head, number int64, e Entry, at time.Time) link {
	l := link{number: number, tenant: e.Tenant, entry: e.ID, at: at}
	if k == nil {
		l.hash = before.unkeyed(e, at)
		return l
	}
	l.content = k.content(e)
	l.hash = k.place(before, number, at, l.content)
	return l
}

const (
	selectKey   = `SELECT sealed FROM audit_key WHERE id = 1`
	insertKey   = `INSERT INTO audit_key (id, sealed) VALUES (1, $1)`
	updateKey   = `UPDATE audit_key SET sealed = $1 WHERE id = 1 AND sealed = $2`
	selectFence = `SELECT 1 FROM audit_chain WHERE number = $1`
	insertFence = `INSERT INTO audit_chain (number, tenant, entry, linked_at, hash) VALUES ($1, '', '', $2, $3)`
	selectSeal  = `SELECT number, hash, mac FROM audit_head WHERE id = 1`
	writeSeal   = `INSERT INTO audit_head (id, number, hash, mac) VALUES (1, $1, $2, $3)
		ON CONFLICT (id) DO UPDATE SET number = excluded.number, hash = excluded.hash, mac = excluded.mac`
)

// keyRow reads the sealed row. It is empty if the chain has no key yet.
func keyRow(tx *db.Tx) (sealed string, err error) {
	_, err = tx.One(selectKey, nil, &sealed)
	return sealed, err
}

// key opens the key of the chain. It is nil if the chain has no key yet.
func (l *Log) key(tx *db.Tx) (*chainKey, error) {
	sealed, err := keyRow(tx)
	if err != nil {
		return nil, err
	}
	if sealed == "" {
		var one int64
		if fenced, err := tx.One(selectFence, []any{int64(fence)}, &one); err != nil || !fenced {
			return nil, err
		}
		return nil, errKeyLost
	}
	return l.open(sealed)
}

// errNoMaster is returned if the chain has a key and the process has no master key.
var errNoMaster = errors.New("audit: the chain's key is sealed, and there is no master key")

func (l *Log) open(sealed string) (*chainKey, error) {
	if l.sealer == nil {
		return nil, errNoMaster
	}
	raw, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil {
		return nil, fmt.Errorf("audit: the chain's key cannot be read: %w", err)
	}
	text, err := l.sealer.Open(raw, boundKey)
	if err != nil {
		return nil, fmt.Errorf("audit: unseal the chain's key: %w", err)
	}
	var k chainKey
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("audit: the chain's key cannot be read: %w", err)
	}
	return &k, nil
}

// StartKey creates the key of the chain, unless it has one or older reports a running node that links without a key.
// done reports whether the chain has a key. The first keyed link takes its number in the same transaction, so a
// concurrent node without the key fails.
func (l *Log) StartKey(ctx context.Context, older func(*db.Tx) (bool, error)) (done bool, err error) {
	err = l.db.Write(ctx, func(tx *db.Tx) error {
		k, err := l.key(tx)
		if done = k != nil; err != nil || done {
			return err
		}
		if waits, err := older(tx); err != nil || waits {
			return err
		}
		last, err := head(tx)
		if err != nil {
			return err
		}
		k = &chainKey{Key: make([]byte, sha256.Size), Last: last}
		rand.Read(k.Key) // never fails
		text, err := json.Marshal(k)
		if err != nil {
			return err
		}
		now := l.clock.Now()
		tx.Defer(insertKey, 1, base64.StdEncoding.EncodeToString(l.sealer.Seal(text, boundKey)))
		tx.Defer(insertFence, 1, int64(fence), now, strings.Repeat("0", 2*sha256.Size))
		done = true
		return l.linkOwn(tx, k, last, last.Number+1, now, Entry{Action: actionKeyed, Details: map[string]any{"last": last.Number, "hash": last.Hash}})
	})
	return done && err == nil, err
}

// linkOwn writes an entry of this package together with its link, which becomes the head.
func (l *Log) linkOwn(tx *db.Tx, k *chainKey, before Head, number int64, now time.Time, e Entry) error {
	e.Actor = chainActor
	e, err := l.write(tx, e)
	if err != nil {
		return err
	}
	insertLinks(tx, k, []link{k.next(before, number, e, now)})
	return nil
}

// sealedHead reads the head of a chain with a key. intact is false if the row is missing or was not sealed with the
// key.
func sealedHead(tx *db.Tx, k *chainKey) (h Head, intact bool, err error) {
	var mac string
	found, err := tx.One(selectSeal, nil, &h.Number, &h.Hash, &mac)
	return h, found && hmac.Equal([]byte(mac), []byte(k.seal(h))), err
}

// SealedUnder returns the number of keys that are sealed under each master key, by the master key's name. The chain
// has one key at most.
func (l *Log) SealedUnder(ctx context.Context) (map[string]int64, error) {
	sealed, raw, err := l.sealedKey(ctx)
	if err != nil || sealed == "" {
		return nil, err
	}
	return map[string]int64{l.sealer.Under(raw): 1}, nil
}

// Reseal reseals the chain's key under the active master key, and calls moved with the number of resealed keys.
func (l *Log) Reseal(ctx context.Context, moved func(int64)) error {
	sealed, raw, err := l.sealedKey(ctx)
	if err != nil || sealed == "" {
		return err
	}
	again, changed, err := l.sealer.Reseal(raw, boundKey)
	if err != nil {
		return fmt.Errorf("audit: reseal the chain's key: %w", err)
	}
	if !changed {
		return nil
	}
	if err := l.db.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(updateKey, 1, base64.StdEncoding.EncodeToString(again), sealed)
		return nil
	}); err != nil {
		return err
	}
	moved(1)
	return nil
}

func (l *Log) sealedKey(ctx context.Context) (sealed string, raw []byte, err error) {
	if l.sealer == nil {
		return "", nil, errNoMaster
	}
	if err = l.db.Read(ctx, func(tx *db.Tx) error {
		sealed, err = keyRow(tx)
		return err
	}); err != nil {
		return "", nil, err
	}
	if raw, err = base64.StdEncoding.DecodeString(sealed); err != nil {
		err = fmt.Errorf("audit: the chain's key cannot be read: %w", err)
	}
	return sealed, raw, err
}
