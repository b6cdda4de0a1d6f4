// Package identity stores the people who use the console: their roles at tenants and at the installation, their
// proofs (a password, a second factor) and their sessions. Package roles holds the permissions of each role.
//
// A session is a row, so that it can be listed and ended. The browser has a random token of 256 bits and the row its
// hash. A request reads the session, the person and the memberships at most once a second on each node. So an ended
// session or a removed role takes effect everywhere within one second.
//
// Files, each of which uses only files below it:
//
//	build.go         construction of the service; removal of old sessions and links
//	forgotten.go     links by which a person chooses a new password
//	manage.go        changes of one person by another: invite, give a role, disable, reset
//	links.go         links that work once: to accept an invitation, to sign in
//	signin.go        sign-in: the password, then the code
//	factors.go       enrolment of the second factor, and recovery codes
//	tries.go         limits of tries of a password or a code
//	devices.go       browsers in which a person signed in before
//	sessions.go      the visitor of a session, and how sessions end
//	tokens.go        personal tokens for commands
//	in_force.go      whether a visitor may still act, read inside the transaction of the change
//	bearer.go, step_up.go
//	                 the person of a personal token; the age of a second factor
//	standing.go      a person's rights at this moment, read inside the transaction of the change
//	session_rows.go  the stored session and its idle time
//	codes.go         the code that the link of an invitation needs
//	proof.go         stored proofs of a person, and the comparison with them
//	password.go      weak passwords
//	reseal.go        second factors under another master key
//	people.go        a person and their memberships, stored
//	named.go         whether a free text may mean a person
//	record.go        entries of the audit log
//	sealing.go       the keys of second factors, sealed
//	uses.go          limits for each person, such as of searches by number
//	visitor.go       the person behind a request, with the session and the roles
//	identity.go      the service
//	person.go        a person and a membership
//	hasher.go        passwords, hashed
//	token_limits.go  the lifetime and the number of personal tokens
//	totp.go          codes of an authenticator
package identity

import (
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
	// Freshness is the maximum age of the session data that decides about a request.
	Freshness = time.Second
	// LinkLasts is how long a sign-in link of a development server is valid. InvitationLasts is how long an
	// invitation is valid.
	LinkLasts       = 30 * time.Minute
	InvitationLasts = 24 * time.Hour
	// usedEvery is the interval at which the last use of a session is stored.
	usedEvery = time.Minute
	// keepEnded is how long ended sessions and links are kept.
	keepEnded = 30 * 24 * time.Hour

	cachedSessions = 10_000
	tokenBytes     = 32
	maxAgent       = 200
)

// Identity stores people, memberships, links and sessions. It is safe for concurrent use.
type Identity struct {
	db          *db.DB
	clock       *clock.Clock
	audit       *audit.Log
	sealer      *config.Sealer // seals the keys of factors; nil without a master key
	development bool
	devices     []byte // key that signs the tokens of browsers; nil without a master key
	hasher      hasher
	sessions    *cache.Cache[string, sessionRow]
}

// newToken returns the token of a link or a session. Call it before the transaction that stores its hash, because
// the transaction may run twice.
func newToken() string {
	var b [tokenBytes]byte
	rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// tokenLength is the length of a token's text.
var tokenLength = base64.RawURLEncoding.EncodedLen(tokenBytes)

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
