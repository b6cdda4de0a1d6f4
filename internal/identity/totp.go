package identity

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" // required by RFC 6238 and by all authenticator apps; the key is secret, so collisions do not matter
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Time-based one-time codes (RFC 6238), as all authenticator apps compute them.
const (
	codePeriod   = 30 * time.Second
	codeDigits   = 6
	codeModulus  = 1_000_000
	factorBytes  = 20
	codeDrift    = 1 // steps by which a phone's clock may differ, in either direction
	issuer       = "Makola"
	recoverySize = 10 // bytes of one recovery code: 80 random bits
)

var base32Text = base32.StdEncoding.WithPadding(base32.NoPadding)

// codeAt returns the code of a step.
func codeAt(key []byte, step int64) string {
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], uint64(step))
	mac := hmac.New(sha1.New, key)
	mac.Write(counter[:])
	sum := mac.Sum(nil)
	offset := sum[len(sum)-1] & 0xf
	n := binary.BigEndian.Uint32(sum[offset:]) & 0x7fffffff
	return fmt.Sprintf("%0*d", codeDigits, n%codeModulus)
}

func stepAt(t time.Time) int64 { return t.Unix() / int64(codePeriod/time.Second) }

// stepOf returns the step around a time whose code is code, or 0 if there is none. It always compares all steps, so
// that its time reveals nothing about the code.
func stepOf(key []byte, code string, at time.Time) (step int64) {
	now := stepAt(at)
	for s := now - codeDrift; s <= now+codeDrift; s++ {
		if subtle.ConstantTimeCompare([]byte(codeAt(key, s)), []byte(code)) == 1 {
			step = s
		}
	}
	return step
}

func newFactorKey() []byte {
	key := make([]byte, factorBytes)
	rand.Read(key) // never fails
	return key
}

// factorURI returns the content of a QR code for an authenticator app.
func factorURI(key []byte, email string) string {
	label := url.PathEscape(issuer + ":" + email)
	return "otpauth://totp/" + label + "?" + url.Values{"secret": {base32Text.EncodeToString(key)}, "issuer": {issuer}}.Encode()
}

// newRecoveryCode returns a random code in groups that a person can copy by hand.
func newRecoveryCode() string {
	var b [recoverySize]byte
	rand.Read(b[:]) // never fails
	text := strings.ToLower(base32Text.EncodeToString(b[:]))
	return text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:]
}
