package otp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// The limits of one-time passwords.
const (
	LeastLength   = 4 // digits; also the default
	MostLength    = 10
	LeastExpiry   = 2 * time.Minute
	MostExpiry    = 1440 * time.Minute
	DefaultExpiry = 5 * time.Minute
)

// Placeholder is the place of the code in a one-time password's message.
const Placeholder = "<%otp_code%>"

const (
	prefixLetters = "ABCDEFGHJKLMNPQRSTUVWXYZ" // no I and O, which look like digits
	prefixLength  = 3
)

// Code is the row of a one-time password. It has a keyed hash, never the code.
type Code struct {
	Tenant  string
	ID      string // of the request, and of its campaign
	Number  msisdn.MSISDN
	Prefix  string // shown with the code, so that the user can match request and code
	Created time.Time
	Expires time.Time
	length  int // in digits
	hash    string
	batch   int64 // of its tap
}

// key is derived from a master key, which is not in the database.
type key struct{ code, hash []byte }

// keys are the keys of the ring, the active one first. The active key makes new codes. A code is valid while its key
// is in the ring, and its hash identifies the key.
type keys []key

func newKeys(ring config.Secret) (all keys) {
	if ring.Empty() {
		return nil
	}
	for _, s := range ring.Each() {
		all = append(all, key{code: s.Derive("messaging/otp-code"), hash: s.Derive("messaging/otp-hash")})
	}
	return all
}

// fits reports whether a code is the one whose hash was stored for a request. It takes as long for a wrong one, whichever
// the key.
func (all keys) fits(id, code, hash string) bool {
	right := false
	for _, k := range all {
		right = hmac.Equal([]byte(hash), []byte(k.hashed(id, code))) || right
	}
	return right
}

// of derives a code from the request's id. The delivering node computes it again, so it is stored nowhere. Without
// the key its digits look random.
func (k key) of(id string, length int) string {
	mac := hmac.New(sha256.New, k.code)
	mac.Write([]byte(id))
	limit := uint64(1)
	for range length {
		limit *= 10
	}
	return fmt.Sprintf("%0*d", length, binary.BigEndian.Uint64(mac.Sum(nil))%limit)
}

// hashed is the stored hash of a code, which holds for one request.
func (k key) hashed(id, code string) string {
	mac := hmac.New(sha256.New, k.hash)
	mac.Write([]byte(id + "\x00" + code))
	return hex.EncodeToString(mac.Sum(nil))
}

// Sample returns a message with digits in the code's place, as long as the message will be.
func Sample(template string, length int) string {
	return strings.ReplaceAll(template, Placeholder, strings.Repeat("0", min(max(length, LeastLength), MostLength)))
}

// CheckTemplate refuses the message of a one-time password without a Placeholder. An empty message is refused with
// the other checks of a text.
func CheckTemplate(message string) error {
	if message == "" || strings.Contains(message, Placeholder) {
		return nil
	}
	return problem.Field("message", "must contain the placeholder "+Placeholder)
}

const selectCode = `SELECT length, hash, expires_at FROM otps WHERE tenant = $1 AND id = $2`

// Find returns the query that reads what Text needs of a code. It leaves the code empty where it has no row.
func (code *Code) Find(tenant, id string) db.Query {
	*code = Code{Tenant: tenant, ID: id}
	return db.Query{SQL: selectCode, Args: []any{tenant, id}, Each: func(r *db.Row) error {
		return r.Scan(&code.length, &code.hash, &code.Expires)
	}}
}

// letters draws the prefix of a request.
func letters() string {
	var octets [prefixLength]byte
	rand.Read(octets[:]) // never fails
	for i, b := range octets {
		octets[i] = prefixLetters[int(b)%len(prefixLetters)]
	}
	return string(octets[:])
}
