package identity

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/makola/makola/internal/problem"
	"golang.org/x/crypto/argon2"
)

// The limits of passwords and of hashing them.
const (
	MinPassword = 12  // characters
	MaxPassword = 128 // characters

	// hashesAtOnce are computed on a node; each takes hashMemory.
	hashesAtOnce = 2
	// hashesForStrangers of these are for visitors from networks and browsers that their account does not know.
	hashesForStrangers = 1
	// hashesWaiting may wait for that, and as many again of visitors who are known.
	hashesWaiting = 20

	hashTime   = 3
	hashMemory = 19 << 10 // KiB: two at once fit beside a server that promises to need no more than 200 MB
	saltBytes  = 16
	hashBytes  = 32
)

// hasher hashes passwords, few at once.
type hasher struct {
	line, known  chan struct{} // places of strangers, and of visitors who are known
	turn, share  chan struct{} // the hashes at once, and those of them that strangers may have
	stranger     bool          // the place is one of strangers
	memory, time uint32
}

func newHasher(memory uint32) hasher {
	const places = hashesAtOnce + hashesWaiting
	return hasher{line: make(chan struct{}, places), known: make(chan struct{}, places), turn: make(chan struct{}, hashesAtOnce), share: make(chan struct{}, hashesForStrangers),
		memory: cmp.Or(memory, hashMemory), time: hashTime}
}

// form begins what is stored of a password.
func (h hasher) form() string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=1$", argon2.Version, h.memory, h.time)
}

// enter gives a place in the line for a hash, or refuses at once. It comes before anything is counted: a flood of tries costs
// no more hashes than the line is long. Visitors who are known have a line and a turn that strangers cannot fill.
func (h hasher) enter(known bool) (in hasher, leave func(), err error) {
	line := h.line
	if known {
		line = h.known
	}
	h.stranger = !known
	select {
	case line <- struct{}{}:
		return h, func() { <-line }, nil
	default:
		return h, nil, problem.New(problem.Unavailable, "too_busy", "Too many people sign in at this moment. Try again in a few seconds.")
	}
}

// hash computes the hash of a password under a salt, in its turn.
func (h hasher) hash(ctx context.Context, password string, salt []byte) ([]byte, error) {
	if h.stranger {
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

// seal makes what is stored of a password.
func (h hasher) seal(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltBytes)
	rand.Read(salt) // never fails
	sum, err := h.hash(ctx, password, salt)
	if err != nil {
		return "", err
	}
	b64 := base64.RawStdEncoding
	return h.form() + b64.EncodeToString(salt) + "$" + b64.EncodeToString(sum), nil
}

// matches says whether a password is the one that was stored. Where none was stored it takes as long and says no.
func (h hasher) matches(ctx context.Context, stored, password string) (bool, error) {
	salt, want := make([]byte, saltBytes), make([]byte, hashBytes)
	if stored != "" {
		text, ours := strings.CutPrefix(stored, h.form())
		saltText, sumText, _ := strings.Cut(text, "$")
		var saltErr, sumErr error
		salt, saltErr = base64.RawStdEncoding.DecodeString(saltText)
		want, sumErr = base64.RawStdEncoding.DecodeString(sumText)
		if !ours || saltErr != nil || sumErr != nil || len(want) != hashBytes {
			return false, errors.New("identity: a stored password that cannot be read")
		}
	}
	sum, err := h.hash(ctx, password, salt)
	return err == nil && subtle.ConstantTimeCompare(sum, want) == 1 && stored != "", err
}

// easy are the words that guesses begin with.
var easy = []string{"makola", "password", "passwort", "123456", "qwerty", "asdfgh", "abcdef", "letmein", "iloveyou", "welcome", "admin"}

// checkPassword refuses a password that is too easy to guess: what is left without easy words and the e-mail address must be
// a password still.
func checkPassword(password string, p Person) error {
	var bad problem.Fields
	n := utf8.RuneCountInString(password)
	local, _, _ := strings.Cut(p.Email, "@")
	left := strings.ToLower(password)
	for _, word := range append([]string{local}, easy...) {
		if len(word) > 3 {
			left = strings.ReplaceAll(left, word, "")
		}
	}
	switch {
	case !utf8.ValidString(password) || n < MinPassword || n > MaxPassword:
		bad.Add("password", fmt.Sprintf("must have %d to %d characters", MinPassword, MaxPassword))
	case utf8.RuneCountInString(left) < 8 || distinct(left) < 5:
		bad.Add("password", "is too easy to guess: take a few words that do not belong together, without your e-mail address")
	}
	return bad.Err()
}

func distinct(text string) int {
	seen := map[rune]bool{}
	for _, r := range text {
		seen[r] = true
	}
	return len(seen)
}
