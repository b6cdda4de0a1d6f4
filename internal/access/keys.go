package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

// Scope is a permission of a key.
type Scope string

// The scopes. Each endpoint requires exactly one.
const (
	All      Scope = "all"      // every permission, including those of later versions
	Read     Scope = "read"     // balances, histories, statuses, lists
	Collect  Scope = "collect"  // collections
	Payout   Scope = "payout"   // transfers to wallets and bank accounts
	Batches  Scope = "batches"  // batches of payouts
	Airtime  Scope = "airtime"  // airtime and data packages
	SMS      Scope = "sms"      // messages, sender IDs
	OTP      Scope = "otp"      // one-time passwords
	Contacts Scope = "contacts" // contact groups
	Webhooks Scope = "webhooks" // the tenant's signing secret and deliveries
)

// Scopes returns all scopes.
func Scopes() []Scope {
	return []Scope{All, Read, Collect, Payout, Batches, Airtime, SMS, OTP, Contacts, Webhooks}
}

// Caller is the sender of a request.
type Caller struct {
	Tenant string // the owner of the key, even if a member calls
	KeyID  string
	Member string // the team member to whom the key belongs; empty for a key of the account
	Scopes []Scope
	Daily  money.Pesewas // daily spending limit of the key; 0: none
}

// Can reports whether the caller has a scope.
func (c Caller) Can(s Scope) bool {
	return slices.Contains(c.Scopes, All) || slices.Contains(c.Scopes, s)
}

// Key describes an API key. The text of the key is not stored.
type Key struct {
	ID         string
	Tenant     string
	Hint       string // beginning and end of the key, for people
	Member     string // the e-mail address of Person; for an older key, free text
	Person     string // id of the person to whom the key belongs; empty for the account's own or an older key
	Label      string // free text for people
	Scopes     []Scope
	CreatedAt  time.Time
	ExpiresAt  time.Time     // zero: never
	RevokedAt  time.Time     // zero: not revoked
	ReplacedBy string        // id of the key that replaced it by a rotation
	Daily      money.Pesewas // daily spending limit of the key; 0: none
	Creator    string        // id of the person who created the key and has seen its text; empty: unknown
}

// State returns active, expired or revoked, at a time.
func (k Key) State(at time.Time) string {
	switch {
	case !k.RevokedAt.IsZero():
		return "revoked"
	case !k.ExpiresAt.IsZero() && !at.Before(k.ExpiresAt):
		return "expired"
	}
	return "active"
}

// The prefixes of keys, by the mode of their tenant.
const (
	livePrefix = "mk_live_"
	testPrefix = "mk_test_"
)

// A key consists of its prefix, 256 random bits and a checksum, the last two in letters and digits of a fixed length.
// With the checksum, scanners can recognise a leaked key, and we can refuse a mistyped key without a query.
const (
	alphabet       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	secretBytes    = 32
	secretLength   = 43 // 62^43 > 2^256
	checksumLength = 6  // 62^6 > 2^32
)

// maxMember is the maximum length of a member's name in characters.
const maxMember = 80

// MaxOverlap is the maximum time for which both keys of a rotation are valid.
const MaxOverlap = 7 * 24 * time.Hour

func encode(n *big.Int, length int) string {
	n = new(big.Int).Set(n)
	text := make([]byte, length)
	base, digit := big.NewInt(int64(len(alphabet))), new(big.Int)
	for i := length - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		text[i] = alphabet[digit.Int64()]
	}
	return string(text)
}

func checksum(text string) string {
	return encode(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(text)))), checksumLength)
}

// newKey returns the text of a key. Call it before the transaction that stores the key, because the transaction may
// run twice.
func newKey(live bool, secret []byte) string {
	if secret == nil {
		secret = make([]byte, secretBytes)
		rand.Read(secret) // never fails
	}
	text := testPrefix
	if live {
		text = livePrefix
	}
	text += encode(new(big.Int).SetBytes(secret), secretLength)
	return text + checksum(text)
}

// wellFormed reports whether text has the form of a key.
func wellFormed(text string) bool {
	if len(text) != len(livePrefix)+secretLength+checksumLength ||
		!strings.HasPrefix(text, livePrefix) && !strings.HasPrefix(text, testPrefix) {
		return false
	}
	cut := len(text) - checksumLength
	return checksum(text[:cut]) == text[cut:]
}

func hashKey(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func hint(text string) string {
	return text[:len(livePrefix)+4] + "..." + text[len(text)-4:]
}

// keyRow is the cached key of a hash. A missing key is cached, too.
type keyRow struct {
	key   Key
	found bool
}

const keyColumns = `id, tenant, hint, member, scopes, created_at, expires_at, revoked_at, replaced_by, daily, maker, person, label`

const selectKeyByHash = `SELECT ` + keyColumns + ` FROM api_keys WHERE hash = $1`

func (k *Key) scan(r *db.Row) error {
	var scopes string
	var daily int64
	err := r.Scan(&k.ID, &k.Tenant, &k.Hint, &k.Member, &scopes, &k.CreatedAt, &k.ExpiresAt, &k.RevokedAt, &k.ReplacedBy, &daily, &k.Creator, &k.Person, &k.Label)
	k.Daily = money.Pesewas(daily)
	for _, s := range strings.Fields(scopes) {
		k.Scopes = append(k.Scopes, Scope(s))
	}
	return err
}

func (a *Access) loadKey(ctx context.Context, hash string) (keyRow, error) {
	var row keyRow
	err := a.db.Read(ctx, func(tx *db.Tx) error {
		row = keyRow{}
		return tx.Query(selectKeyByHash, []any{hash}, func(r *db.Row) error {
			row.found = true
			return row.key.scan(r)
		})
	})
	return row, err
}

// errKey is returned for every key that is missing, unknown, expired or revoked. The response does not reveal which
// of them applies.
func errKey() error {
	return problem.New(problem.Unauthenticated, "invalid_api_key", "Invalid API key")
}

// Authenticate returns the caller to whom a key belongs. The key's data may be up to one second old, but the expiry
// is exact.
func (a *Access) Authenticate(ctx context.Context, text string) (Caller, error) {
	if !wellFormed(text) {
		return Caller{}, errKey()
	}
	row, err := a.keys.Get(ctx, hashKey(text))
	if err != nil {
		return Caller{}, err
	}
	if !row.found || row.key.State(a.clock.Now()) != "active" {
		return Caller{}, errKey()
	}
	k := row.key
	return Caller{Tenant: k.Tenant, KeyID: k.ID, Member: k.Member, Scopes: k.Scopes, Daily: k.Daily}, nil
}

// AuthenticateFrom is Authenticate for a caller at an address. An address that sent too many wrong keys gets
// RateLimited, unless this node has accepted the key before.
func (a *Access) AuthenticateFrom(ctx context.Context, text string, from netip.Addr) (Caller, error) {
	if !wellFormed(text) {
		return Caller{}, errKey() // this check needs no query
	}
	hash := hashKey(text)
	if err := a.guesses.Refused(from, hash); err != nil {
		return Caller{}, err
	}
	caller, err := a.Authenticate(ctx, text)
	switch {
	case err == nil:
		a.guesses.Right(hash)
	case problem.Is(err, problem.Unauthenticated):
		a.guesses.Wrong(from, hash)
	}
	return caller, err
}

// NewKey describes a key to create.
type NewKey struct {
	Tenant string
	Live   bool    // mode of the tenant
	Member string  // e-mail address of the person to whom the key belongs; empty for a key of the account
	Person string  // id of that person
	Label  string  // free text for people
	Scopes []Scope // empty: All
	Expiry time.Duration
	Daily  money.Pesewas
	Secret []byte // 32 bytes from which the key is made, for demos; nil: random bytes
}

// Minted is a new key with its text, which is shown once and not stored.
type Minted struct {
	Key  Key
	Text string
}

// Mint creates a key in memory. CreateKey stores it. They are separate because a transaction may run twice and the
// key must be the same.
func (a *Access) Mint(n NewKey) (Minted, error) {
	scopes, err := checkScopes(n.Scopes)
	if err != nil {
		return Minted{}, err
	}
	if n.Tenant == "" {
		return Minted{}, problem.Field("tenant", "is required")
	}
	if !utf8.ValidString(n.Member) || utf8.RuneCountInString(n.Member) > maxMember || strings.TrimSpace(n.Member) != n.Member {
		return Minted{}, problem.Field("member", "must have at most 80 characters and no space around them")
	}
	if !usertext.Storable(n.Label) || utf8.RuneCountInString(n.Label) > maxMember || strings.TrimSpace(n.Label) != n.Label {
		return Minted{}, problem.Field("label", "must be one line of at most 80 characters, with no space around it")
	}
	if n.Expiry < 0 {
		return Minted{}, problem.Field("expiry", "must be in the future")
	}
	if n.Secret != nil && (len(n.Secret) != secretBytes || n.Live) {
		return Minted{}, errors.New("access: a given secret must have 32 bytes and is for test keys only")
	}
	if err := checkDaily(n.Daily); err != nil {
		return Minted{}, err
	}
	text := newKey(n.Live, n.Secret)
	now := a.clock.Now()
	k := Key{ID: uuid.Must(uuid.NewV7()).String(), Tenant: n.Tenant, Hint: hint(text), Member: n.Member, Person: n.Person, Label: n.Label, Scopes: scopes, CreatedAt: now, Daily: n.Daily}
	if n.Expiry > 0 {
		k.ExpiresAt = now.Add(n.Expiry)
	}
	return Minted{Key: k, Text: text}, nil
}

func checkScopes(scopes []Scope) ([]Scope, error) {
	if len(scopes) == 0 {
		return []Scope{All}, nil
	}
	var kept []Scope
	for _, known := range Scopes() { // in a fixed order
		if slices.Contains(scopes, known) {
			kept = append(kept, known)
		}
	}
	for _, s := range scopes {
		if !slices.Contains(kept, s) {
			return nil, problem.Field("scope", "has no right named "+string(s))
		}
	}
	return kept, nil
}

const insertKey = `INSERT INTO api_keys (` + keyColumns + `, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`

// CreateKey stores a minted key in tx.
func (a *Access) CreateKey(tx *db.Tx, m Minted) {
	k, hash := m.Key, hashKey(m.Text)
	scopes := make([]string, len(k.Scopes))
	for i, s := range k.Scopes {
		scopes[i] = string(s)
	}
	tx.Defer(insertKey, 1, k.ID, k.Tenant, k.Hint, k.Member, strings.Join(scopes, " "),
		k.CreatedAt, k.ExpiresAt, k.RevokedAt, k.ReplacedBy, int64(k.Daily), k.Creator, k.Person, k.Label, hash)
	tx.AfterCommit(func() { a.keys.Forget(hash) })
}

const listKeys = `SELECT ` + keyColumns + ` FROM api_keys WHERE tenant = $1 ORDER BY id`

// Keys returns all keys of a tenant in the order of creation, including expired and revoked ones.
func (a *Access) Keys(ctx context.Context, tenant string) ([]Key, error) {
	return db.ReadAll(ctx, a.db, listKeys, []any{tenant}, (*Key).scan)
}

const expiringKeys = `SELECT ` + keyColumns + ` FROM api_keys WHERE revoked_at = 0 AND expires_at > $1 AND expires_at < $2 AND replaced_by = '' ORDER BY expires_at, id LIMIT $3`

// Expiring lists the active keys of all tenants that expire within a time and have no successor. most is the
// maximum number of keys.
func (a *Access) Expiring(ctx context.Context, within time.Duration, most int) (keys []Key, err error) {
	now := a.clock.Now()
	return db.ReadAll(db.Bulk(ctx, ""), a.db, expiringKeys, []any{now, now.Add(within), int64(most)}, (*Key).scan)
}

const lockKey = `SELECT ` + keyColumns + `, hash FROM api_keys WHERE tenant = $1 AND id = $2`

func (a *Access) lockKey(tx *db.Tx, tenant, id string) (k Key, hash string, err error) {
	found := false
	err = tx.Query(lockKey+tx.ForUpdate(), []any{tenant, id}, func(r *db.Row) error {
		found = true
		var scopes string
		var daily int64
		err := r.Scan(&k.ID, &k.Tenant, &k.Hint, &k.Member, &scopes, &k.CreatedAt, &k.ExpiresAt, &k.RevokedAt, &k.ReplacedBy, &daily, &k.Creator, &k.Person, &k.Label, &hash)
		k.Daily = money.Pesewas(daily)
		for _, s := range strings.Fields(scopes) {
			k.Scopes = append(k.Scopes, Scope(s))
		}
		return err
	})
	if err == nil && !found {
		err = errKeyNotFound()
	}
	return k, hash, err
}

const selectKey = `SELECT ` + keyColumns + ` FROM api_keys WHERE tenant = $1 AND id = $2`

// Key returns a key of a tenant, even if it is expired or revoked.
func (a *Access) Key(ctx context.Context, tenant, id string) (k Key, err error) {
	found := false
	err = a.db.Read(ctx, func(tx *db.Tx) error {
		return tx.Query(selectKey, []any{tenant, id}, func(r *db.Row) error {
			found, k = true, Key{}
			return k.scan(r)
		})
	})
	if err == nil && !found {
		err = errKeyNotFound()
	}
	return k, err
}

// selectHolders follows a key back through the keys that it replaced. UNION ends the recursion if keys replaced each
// other.
const selectHolders = `WITH RECURSIVE chain (id, maker, person) AS (
	SELECT id, maker, person FROM api_keys WHERE tenant = $1 AND id = $2
	UNION SELECT k.id, k.maker, k.person FROM api_keys k JOIN chain c ON k.replaced_by = c.id WHERE k.tenant = $1)
	SELECT maker, person FROM chain ORDER BY id`

// Holders returns the ids of all people who have or may have seen the text of a key, or of a key that it replaced.
// These are the people who created or rotated the keys, and the members to whom the keys belong.
func (a *Access) Holders(ctx context.Context, tenant, id string) (people []string, err error) {
	err = a.db.Read(ctx, func(tx *db.Tx) error {
		people = nil
		return tx.Query(selectHolders, []any{tenant, id}, func(r *db.Row) error {
			var creator, person string
			err := r.Scan(&creator, &person)
			for _, p := range []string{creator, person} {
				if p != "" && !slices.Contains(people, p) {
					people = append(people, p)
				}
			}
			return err
		})
	})
	return people, err
}

// LockedKey is Key in tx. It locks the row until tx ends.
func (a *Access) LockedKey(tx *db.Tx, tenant, id string) (Key, error) {
	k, _, err := a.lockKey(tx, tenant, id)
	return k, err
}

func errKeyNotFound() error {
	return problem.New(problem.NotFound, "key_not_found", "API key not found")
}

const replaceKey = `UPDATE api_keys SET expires_at = $3, replaced_by = $4
	WHERE tenant = $1 AND id = $2 AND revoked_at = 0 AND replaced_by = ''`

// Rotate stores the successor of a key in tx. The old key stays valid for at most overlap, and never longer than
// before. A key can be rotated once.
func (a *Access) Rotate(tx *db.Tx, tenant, id string, successor Minted, overlap time.Duration) (old Key, err error) {
	if overlap < 0 || overlap > MaxOverlap {
		return Key{}, problem.Field("overlap", "must be between 0 and 7 days")
	}
	old, hash, err := a.lockKey(tx, tenant, id)
	if err != nil {
		return Key{}, err
	}
	now := a.clock.Now()
	if old.State(now) != "active" || old.ReplacedBy != "" {
		return Key{}, problem.New(problem.InProgress, "key_not_active", "The API key is "+old.rotationState(now)+", make a new one")
	}
	ends := now.Add(overlap)
	if !old.ExpiresAt.IsZero() && old.ExpiresAt.Before(ends) {
		ends = old.ExpiresAt
	}
	old.ExpiresAt, old.ReplacedBy = ends, successor.Key.ID
	tx.Defer(replaceKey, 1, tenant, id, ends, successor.Key.ID)
	a.CreateKey(tx, successor)
	tx.AfterCommit(func() { a.keys.Forget(hash) })
	return old, nil
}

func (k Key) rotationState(at time.Time) string {
	if state := k.State(at); state != "active" {
		return state
	}
	return "already rotated"
}

func checkDaily(daily money.Pesewas) error {
	if daily < 0 {
		return problem.Field("daily", "must not be negative")
	}
	return nil
}

const setDaily = `UPDATE api_keys SET daily = $3 WHERE tenant = $1 AND id = $2`

// SetDaily sets a key's daily spending limit in tx. The limit applies within a second. 0 removes it. Earlier spending
// does not count.
func (a *Access) SetDaily(tx *db.Tx, tenant, id string, daily money.Pesewas) (old, changed Key, err error) {
	if err := checkDaily(daily); err != nil {
		return Key{}, Key{}, err
	}
	old, hash, err := a.lockKey(tx, tenant, id)
	if err != nil {
		return Key{}, Key{}, err
	}
	changed = old
	changed.Daily = daily
	tx.Defer(setDaily, 1, tenant, id, int64(daily))
	tx.AfterCommit(func() { a.keys.Forget(hash) })
	return old, changed, nil
}

const revokeKey = `UPDATE api_keys SET revoked_at = $3 WHERE tenant = $1 AND id = $2 AND revoked_at = 0`

// RevokeKey revokes a key for ever, in tx. It does nothing if the key is revoked already.
func (a *Access) RevokeKey(tx *db.Tx, tenant, id string) (Key, error) {
	k, hash, err := a.lockKey(tx, tenant, id)
	if err != nil || !k.RevokedAt.IsZero() {
		return k, err
	}
	k.RevokedAt = a.clock.Now()
	tx.Defer(revokeKey, 1, tenant, id, k.RevokedAt)
	tx.AfterCommit(func() { a.keys.Forget(hash) })
	return k, nil
}
