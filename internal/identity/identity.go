// Package identity knows the people who use the console: who they are, which role each has at a tenant or at the
// installation, how they prove it (a password, a second factor) and for how long they stay. One table of the code
// (policy.go) says what a role may do; the documents print it, and every route of the console names a line of it.
//
// A session is a row, so that it can be listed and ended. The browser has a random token of 256 bits and the row its
// hash. A request reads the session, the person and the memberships at most once a second on each node: what was ended
// or taken away is in force everywhere within one second.
//
// Files:
//
//	identity.go   the service; what ended sessions and links are pruned after
//	policy.go     which role may do what
//	people.go     a person and their memberships, stored
//	named.go      whether a free text may mean a person
//	manage.go     what one person does about another: invite, give a role, disable, reset
//	links.go      links that work once: to accept an invitation, to sign in
//	codes.go      the code without which the link of an invitation does not work
//	signin.go     proof of who somebody is: the password, then the code
//	password.go   passwords, hashed
//	totp.go       codes of an authenticator
//	factors.go    the second factor enrolled, and recovery codes
//	reseal.go     second factors under another master key
//	tries.go      how often a password or a code may be tried
//	uses.go       limits for each person, such as of searches by number
//	devices.go    browsers in which a person signed in before
//	sessions.go   who is signed in, and for how long they may be idle
//	tokens.go     personal tokens, by which commands know a person
//	standing.go   what a person may do at this moment, read inside the transaction that does it
package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
)

// The limits of sessions and links.
const (
	// Freshness is how old the session may be that a request is judged by.
	Freshness = time.Second
	// LinkLasts is how long a sign-in link of a development server works, and InvitationLasts one that an operator makes.
	LinkLasts       = 30 * time.Minute
	InvitationLasts = 24 * time.Hour
	// usedEvery is how often the last use of a session is written.
	usedEvery = time.Minute
	// keepEnded is how long ended sessions and links are kept.
	keepEnded = 30 * 24 * time.Hour

	cachedSessions = 10_000
	tokenBytes     = 32
	maxAgent       = 200
)

// Identity keeps people, memberships, links and sessions. It is safe for concurrent use.
type Identity struct {
	db          *db.DB
	clock       *clock.Clock
	audit       *audit.Log
	sealer      *config.Sealer // of factors; nil without a master key
	development bool
	devices     []byte // key that signs browsers; nil without a master key
	hasher      hasher
	sessions    *cache.Cache[string, sessionRow]
}

// Options are what an Identity needs to know of its installation.
type Options struct {
	Secret      config.Secret // empty: factors cannot be used, only taken away
	Development bool          // links of the first screen work
	// HashMemory is what the hash of a password takes, in KiB; 0: what protects real people. Tests of what people do take little.
	// Passwords that were stored under another one are not readable.
	HashMemory uint32
}

// New makes an Identity.
func New(d *db.DB, c *clock.Clock, log *audit.Log, o Options) *Identity {
	i := &Identity{db: d, clock: c, audit: log, sealer: o.Secret.Sealer(sealLabel), development: o.Development, hasher: newHasher(o.HashMemory)}
	if !o.Secret.Empty() {
		i.devices = o.Secret.Derive("identity/devices")
	}
	i.sessions = cache.New(c, Freshness, cachedSessions, i.loadSession)
	return i
}

// newToken makes the text of a link or a session. It must be called before the transaction that stores its hash,
// which may run twice.
func newToken() string {
	var b [tokenBytes]byte
	rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// tokenLength is that of a token's text.
var tokenLength = base64.RawURLEncoding.EncodedLen(tokenBytes)

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

const (
	pruneSessions = `DELETE FROM sessions WHERE created_at < $1`
	pruneLinks    = `DELETE FROM sign_in_links WHERE expires_at < $1`
	pruneTokens   = `DELETE FROM personal_tokens WHERE expires_at < $1`
)

// Prune removes sessions, links and personal tokens that ended long ago.
func (i *Identity) Prune(ctx context.Context) error {
	before := i.clock.Now().Add(-keepEnded)
	err := i.db.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(pruneSessions, -1, before)
		tx.Defer(pruneLinks, -1, before)
		tx.Defer(pruneTokens, -1, before)
		tx.Defer(pruneTries, -1, i.clock.Now())
		return nil
	})
	if err != nil {
		return err
	}
	return i.pruneUses(ctx)
}
