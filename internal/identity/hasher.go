package identity

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/makola/makola/internal/problem"
	"golang.org/x/crypto/argon2"
	"golang.org/x/text/secure/precis"
)

// The limits of passwords and of hashing them.
const (
	MinPassword = 12  // characters
	MaxPassword = 128 // characters

	// hashesAtOnce is the number of hashes that a node computes at once. Each takes hashMemory.
	hashesAtOnce = 2
	// hashesForUnknown is the number of these hashes for unknown visitors: visitors whose account knows neither
	// their network nor their browser.
	hashesForUnknown = 1
	// hashesWaiting is the number of unknown visitors that may wait for a hash. The same number of known
	// visitors may wait.
	hashesWaiting = 20

	hashTime   = 3
	hashMemory = 19 << 10 // KiB; two hashes at once fit into the documented 200 MB of a server
	saltBytes  = 16
	hashBytes  = 32
)

// hasher hashes passwords. It limits how many are hashed at once.
type hasher struct {
	line, known  chan struct{} // semaphores of waiting and running visitors: unknown visitors, and known visitors
	turn, share  chan struct{} // semaphores of running hashes: all hashes, and hashes for unknown visitors
	unknown      bool          // this hasher is for an unknown visitor
	memory, time uint32
}

func newHasher(memory uint32) hasher {
	const places = hashesAtOnce + hashesWaiting
	return hasher{line: make(chan struct{}, places), known: make(chan struct{}, places), turn: make(chan struct{}, hashesAtOnce), share: make(chan struct{}, hashesForUnknown),
		memory: cmp.Or(memory, hashMemory), time: hashTime}
}

// form returns the prefix of a stored hash: the algorithm and its parameters.
func (h hasher) form() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=1$", argon2.Version, h.memory, h.time)
}

// enter reserves a place for hashing, or returns an error at once. It is called before a try is counted. So a
// flood of tries cannot cause more hashes than there are places. Known visitors have their own places, which
// unknown visitors cannot use up.
func (h hasher) enter(known bool) (in hasher, leave func(), err error) {
	line := h.line
	if known {
		line = h.known
	}
	h.unknown = !known
	select {
	case line <- struct{}{}:
		return h, func() { <-line }, nil
	default:
		return h, nil, problem.New(problem.Unavailable, "too_busy", "Too many people are signing in. Try again in a few seconds.")
	}
}

// hash computes the hash of a password with a salt. It waits until it may use one of the limited places.
func (h hasher) hash(ctx context.Context, password string, salt []byte) ([]byte, error) {
	if h.unknown {
		select {
		case h.share <- struct{}{}:
			defer func() { <-h.share }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return argon2.IDKey([]byte(password), salt, h.time, h.memory, 1, hashBytes), nil
}

// seal returns the stored form of a password.
func (h hasher) seal(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltBytes)
	rand.Read(salt) // never fails
	sum, err := h.hash(ctx, normal(password), salt)
	if err != nil {
		return "", err
	}
	b64 := base64.RawStdEncoding
	return h.form() + b64.EncodeToString(salt) + "$" + b64.EncodeToString(sum), nil
}

// The largest parameters of a stored hash that matches accepts.
const (
	maxHashMemory = 128 << 10 // KiB
	maxHashTime   = 10
)

// parse parses a stored hash. It uses the parameters in the hash, which may be those of an earlier program.
func (h hasher) parse(stored string) (of hasher, salt, sum []byte, err error) {
	var version int
	parts := strings.Split(stored, "$")
	if len(parts) == 6 {
		_, err = fmt.Sscanf(stored[:len(stored)-len(parts[4])-len(parts[5])-1], "$argon2id$v=%d$m=%d,t=%d,p=1$", &version, &h.memory, &h.time)
	}
	if err != nil || version != argon2.Version || h.memory < 8 || h.memory > maxHashMemory || h.time < 1 || h.time > maxHashTime {
		return h, nil, nil, errStored
	}
	salt, saltErr := base64.RawStdEncoding.DecodeString(parts[4])
	sum, sumErr := base64.RawStdEncoding.DecodeString(parts[5])
	if saltErr != nil || sumErr != nil || len(sum) != hashBytes {
		return h, nil, nil, errStored
	}
	return h, salt, sum, nil
}

var errStored = errors.New("identity: stored password hash is unreadable")

// matches reports whether a password matches the stored hash. stale is set if the hash should be replaced: its
// parameters are old, or the password was hashed without normalisation. Without a stored hash, matches returns false
// after the same time.
func (h hasher) matches(ctx context.Context, stored, password string) (same, stale bool, err error) {
	of, salt, want := h, make([]byte, saltBytes), make([]byte, hashBytes)
	if stored != "" {
		if of, salt, want, err = h.parse(stored); err != nil {
			return false, false, err
		}
	}
	for n, form := range slices.Compact([]string{normal(password), password}) {
		sum, err := of.hash(ctx, form, salt)
		if err != nil {
			return false, false, err
		}
		if subtle.ConstantTimeCompare(sum, want) == 1 && stored != "" {
			return true, n > 0 || !strings.HasPrefix(stored, h.form()), nil
		}
	}
	return false, false, nil
}

// normal returns a password in normalised form, because keyboards and systems may send the same text as different
// characters. It returns a text that RFC 8265 refuses unchanged, because the password may be older than this rule.
func normal(password string) string {
	if text, err := precis.OpaqueString.String(password); err == nil {
		return text
	}
	return password
}
