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

// otpKeys are derived from the installation's secret, which is not in the database.
type otpKeys struct{ code, hash []byte }

// of gives the code of a request. It is derived from the request's id, so that the node that delivers the message can
// write it and it is stored nowhere. Without the key its digits cannot be told from random ones.
func (k otpKeys) of(id string, length int) string {
	mac := hmac.New(sha256.New, k.code)
	mac.Write([]byte(id))
	limit := uint64(1)
	for range length {
		limit *= 10
	}
	return fmt.Sprintf("%0*d", length, binary.BigEndian.Uint64(mac.Sum(nil))%limit)
}

// hashed is the stored hash of a code, which holds for one request.
func (k otpKeys) hashed(id, code string) string {
	mac := hmac.New(sha256.New, k.hash)
	mac.Write([]byte(id + "\x00" + code))
	return hex.EncodeToString(mac.Sum(nil))
}

// errNoSecret is a mistake of the program: a domain without a secret was asked for codes.
var errNoSecret = errors.New("messaging: one-time passwords need the installation's secret")

// text is the message of a request with its code.
func (k otpKeys) text(c Campaign, length int) string {
	return strings.ReplaceAll(c.Message, Placeholder, k.of(c.ID, length))
}

const selectOTP = `SELECT length, expires_at FROM otps WHERE tenant = $1 AND id = $2`

// letters draws the prefix of a request.
func letters() string {
	var octets [otpPrefixLength]byte
	rand.Read(octets[:]) // never fails
	for i, b := range octets {
		octets[i] = otpPrefixLetters[int(b)%len(otpPrefixLetters)]
	}
	return string(octets[:])
}
