// Package identitytest makes signed-in people for tests of the console. Each has a password and a second factor, whose
// codes it computes as an authenticator app does.
package identitytest

import (
	"crypto/hmac"
	"crypto/sha1" // required by RFC 6238
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
)

// HashMemory is for identity.Options: what passwords cost is not what these tests are about.
const HashMemory = 64

// Password is that of everybody.
const Password = "correct horse battery"

// Code returns the code of an authenticator app for a key at a time.
func Code(t testing.TB, key string, at time.Time) string {
	t.Helper()
	raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ReplaceAll(key, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha1.New, raw)
	_ = binary.Write(mac, binary.BigEndian, at.Unix()/30) // a hash takes everything
	sum := mac.Sum(nil)
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[sum[len(sum)-1]&15:])&0x7fffffff%1_000_000)
}

// One is a signed-in person.
type One struct {
	identity.Visitor
	Token string
	Key   string // of the app
}

// Join makes a person with a role, a password and a factor, and signs them in. The factor was given just now.
func Join(t testing.TB, d *db.DB, c *clock.Clock, people *identity.Identity, email string, m identity.Membership) One {
	t.Helper()
	by := identity.NewInvitation()
	if err := d.Write(t.Context(), func(tx *db.Tx) error {
		_, _, err := people.Invite(tx, by, email, "Somebody", m)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	token, err := people.Accept(t.Context(), by.Token, by.Code, Password, "a test", netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	one := One{Visitor: Visit(t, people, token), Token: token}
	if err := people.BeginFactor(t.Context(), one.Visitor, "", netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	waiting, _, err := people.PendingFactor(t.Context(), one.Visitor)
	if err != nil {
		t.Fatal(err)
	}
	one.Key = waiting.Key
	if _, err := people.ConfirmFactor(t.Context(), one.Visitor, Code(t, one.Key, c.Now()), "", netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	one.Visitor = Visit(t, people, token)
	return one
}

// Visit is who a session's token is of, now.
func Visit(t testing.TB, people *identity.Identity, token string) identity.Visitor {
	t.Helper()
	v, err := people.Visit(t.Context(), token, true)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
