package messaging

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/config"
)

// The limits of one-time passwords.
const (
	OTPLeastLength   = 4 // digits; also the default
	OTPMostLength    = 10
	OTPLeastExpiry   = 2 * time.Minute
	OTPMostExpiry    = 1440 * time.Minute
	OTPDefaultExpiry = 5 * time.Minute
	otpTries         = 5
	otpNotOpen       = "The code is unknown, expired or used"
)

// Placeholder is the place of the code in a one-time password's message.
const Placeholder = "<%otp_code%>"

const (
	otpPrefixLetters = "ABCDEFGHJKLMNPQRSTUVWXYZ" // no I and O, which look like digits
	otpPrefixLength  = 3
)

// otpRow is the row of a code: it has a keyed hash, never the code.
type otpRow struct {
	tenant, id, msisdn, prefix, hash string
	length                           int
	batch                            int64 // of its tap
	created, expires                 time.Time
}

// otpKey is derived from a master key, which is not in the database.
type otpKey struct{ code, hash []byte }

// otpKeys are those of the ring, the active one first. A code is made under the active one and stays good while its key is
// in the ring: its hash tells which one it is.
type otpKeys []otpKey

func newOTPKeys(ring config.Secret) (keys otpKeys) {
	for _, s := range ring.Each() {
		keys = append(keys, otpKey{code: s.Derive("messaging/otp-code"), hash: s.Derive("messaging/otp-hash")})
	}
	return keys
}

// fits says whether a code is the one whose hash was stored for a request. It takes as long for a wrong one, whichever the key.
func (keys otpKeys) fits(id, code, hash string) bool {
	right := false
	for _, k := range keys {
		right = hmac.Equal([]byte(hash), []byte(k.hashed(id, code))) || right
	}
	return right
}

// of gives the code of a request. It is derived from the request's id, so that the node that delivers the message can
// write it and it is stored nowhere. Without the key its digits cannot be told from random ones.
func (k otpKey) of(id string, length int) string {
	mac := hmac.New(sha256.New, k.code)
	mac.Write([]byte(id))
	limit := uint64(1)
	for range length {
		limit *= 10
	}
	return fmt.Sprintf("%0*d", length, binary.BigEndian.Uint64(mac.Sum(nil))%limit)
}

// hashed is the stored hash of a code, which holds for one request.
func (k otpKey) hashed(id, code string) string {
	mac := hmac.New(sha256.New, k.hash)
	mac.Write([]byte(id + "\x00" + code))
	return hex.EncodeToString(mac.Sum(nil))
}

// errNoSecret is a mistake of the program: a domain without a secret was asked for codes.
var errNoSecret = errors.New("messaging: one-time passwords need the installation's secret")

// text is the message of a request with its code; known is false where the key of the code has left the ring.
func (keys otpKeys) text(c Campaign, otp *otpRow) (text string, known bool) {
	for _, k := range keys {
		if code := k.of(c.ID, otp.length); k.hashed(c.ID, code) == otp.hash {
			return strings.ReplaceAll(c.Message, Placeholder, code), true
		}
	}
	return "", false
}

const selectOTP = `SELECT length, hash, expires_at FROM otps WHERE tenant = $1 AND id = $2`

// letters draws the prefix of a request.
func letters() string {
	var octets [otpPrefixLength]byte
	rand.Read(octets[:]) // never fails
	for i, b := range octets {
		octets[i] = otpPrefixLetters[int(b)%len(otpPrefixLetters)]
	}
	return string(octets[:])
}
