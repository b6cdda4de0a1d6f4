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

// Placeholder marks the place of the code in a one-time password's message.
const Placeholder = "<%otp_code%>"

const (
	prefixLetters = "ABCDEFGHJKLMNPQRSTUVWXYZ" // no I and O, which look like digits
	prefixLength  = 3
)

// Code is the row of a one-time password. It stores a keyed hash, never the code.
type Code struct {
	Tenant  string
	ID      string // id of the request and of its campaign
	Number  msisdn.MSISDN
	Prefix  string // shown with the code, so that the user can match request and code
	Created time.Time
	Expires time.Time
	length  int // number of digits
	hash    string
	batch   int64 // number of its batch in its tap
}

// key is derived from a master key, which is not in the database.
type key struct{ code, hash []byte }

// keys has the keys of the ring, the active key first. New codes are made with the active key. A code is valid while
// its key is in the ring. The code's hash identifies the key.
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

// fits reports whether a code is the one whose hash is stored for a request. The time that it takes does not depend
// on the code or the key.
func (all keys) fits(id, code, hash string) bool {
	right := false
	for _, k := range all {
		right = hmac.Equal([]byte(hash), []byte(k.hashed(id, code))) || right
	}
	return right
}

// of computes a code from the request's id. The node that delivers the message computes it again, so it is stored
// nowhere. Without the key its digits look random.
func (k key) of(id string, length int) string {
	mac := hmac.New(sha256.New, k.code)
	mac.Write([]byte(id))
	limit := uint64(1)
	for range length {
		limit *= 10
	}
	return fmt.Sprintf("%0*d", length, binary.BigEndian.Uint64(mac.Sum(nil))%limit)
}

// hashed returns the stored hash of a code. It is valid for one request only.
func (k key) hashed(id, code string) string {
	mac := hmac.New(sha256.New, k.hash)
	mac.Write([]byte(id + "\x00" + code))
	return hex.EncodeToString(mac.Sum(nil))
}

// Sample returns the message with digits in place of the code. It is as long as the final message.
func Sample(template string, length int) string {
	return strings.ReplaceAll(template, Placeholder, strings.Repeat("0", min(max(length, LeastLength), MostLength)))
}

// CheckTemplate returns an error if the message of a one-time password has no Placeholder. It ignores an empty
// message, because the other checks of a text refuse it.
func CheckTemplate(message string) error {
	if message == "" || strings.Contains(message, Placeholder) {
		return nil
	}
	return problem.Field("message", "must contain the placeholder "+Placeholder)
}

const selectCode = `SELECT length, hash, expires_at FROM otps WHERE tenant = $1 AND id = $2`

// Find returns the query that reads the fields that Text needs. If the code has no row, the fields stay empty.
func (code *Code) Find(tenant, id string) db.Query {
	*code = Code{Tenant: tenant, ID: id}
	return db.Query{SQL: selectCode, Args: []any{tenant, id}, Each: func(r *db.Row) error {
		return r.Scan(&code.length, &code.hash, &code.Expires)
	}}
}

// letters returns a random prefix for a request.
func letters() string {
	var octets [prefixLength]byte
	rand.Read(octets[:]) // never fails
	for i, b := range octets {
		octets[i] = prefixLetters[int(b)%len(prefixLetters)]
	}
	return string(octets[:])
}
