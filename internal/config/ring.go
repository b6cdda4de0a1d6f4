package config

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MaxRing is the most master keys that one ring holds.
const MaxRing = 8

// parseRing reads master keys that are separated by white space: the active one first, the oldest last.
func parseRing(text string) (Secret, error) {
	words := strings.Fields(text)
	if len(words) > MaxRing {
		return Secret{}, fmt.Errorf("the ring has %d master keys, at most %d are allowed", len(words), MaxRing)
	}
	var ring Secret
	for i, word := range words {
		one, err := parseKey(word)
		if err != nil && len(words) > 1 {
			err = fmt.Errorf("key %d of the ring is neither hexadecimal nor base64 of a whole key: %w", i+1, err)
		}
		if err != nil {
			return Secret{}, err
		}
		if slices.ContainsFunc(ring.ring, func(key []byte) bool { return bytes.Equal(key, one) }) {
			return Secret{}, fmt.Errorf("key %d of the ring is there twice", i+1)
		}
		ring.ring = append(ring.ring, one)
		ring.key = one
	}
	if ring.Empty() {
		return Secret{}, errNoKey
	}
	return ring, nil
}

// WithReference returns the ring with another reference key: the first key of the installation, which may have left
// the ring and never changes.
func (s Secret) WithReference(reference Secret) Secret {
	s.key = reference.key
	return s
}

// name is the name of a key in sealed texts. It reveals nothing about the key's bytes.
func name(key []byte) string { return hex.EncodeToString(Secret{key: key}.Derive("key name")[:8]) }

// Active is the name of the key that seals.
func (s Secret) Active() string { return s.Names()[0] }

// Reference is the name of the key that references are made under.
func (s Secret) Reference() string { return name(s.key) }

// Names are those of the keys of the ring, the active one first.
func (s Secret) Names() []string {
	names := make([]string, len(s.ring))
	for i, key := range s.ring {
		names[i] = name(key)
	}
	return names
}

// Each returns every key of the ring as a secret of its own, the active one first. It is for short-lived values that
// are derived and not sealed.
func (s Secret) Each() []Secret {
	each := make([]Secret, len(s.ring))
	for i, key := range s.ring {
		each[i] = Secret{key: key, ring: [][]byte{key}}
	}
	return each
}

// sealedPrefix begins a sealed text and comes before the name of its key. A text without it was sealed under the
// first key of the installation, by a server from before there were rings. A random nonce never equals it.
const sealedPrefix = "makola-key-1:"

const nameLength = 16

// Sealer seals small secrets for one use, and opens what any key of the ring sealed.
type Sealer struct {
	active, reference string
	ciphers           map[string]cipher.AEAD
}

// Errors of Open.
var (
	ErrNoKey  = errors.New("the ring lacks the master key that it was sealed under")
	ErrSealed = errors.New("it cannot be opened: is this the master key that it was sealed under?")
	errNoKey  = errors.New("the master key is neither hexadecimal nor base64")
)

// Sealer makes the sealer of one use, named by label; nil without a master key.
func (s Secret) Sealer(label string) *Sealer {
	if s.Empty() {
		return nil
	}
	out := &Sealer{active: s.Active(), reference: s.Reference(), ciphers: map[string]cipher.AEAD{}}
	for _, one := range s.Each() {
		block, err := aes.NewCipher(one.Derive(label))
		if err != nil {
			panic(fmt.Sprintf("config: %v", err)) // a key of 32 bytes always serves
		}
		sealer, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			panic(fmt.Sprintf("config: %v", err))
		}
		out.ciphers[one.Active()] = sealer
	}
	return out
}

// Active is the name of the key that seals.
func (s *Sealer) Active() string { return s.active }

// Under is the name of the key that a text was sealed under.
func (s *Sealer) Under(sealed []byte) string {
	name, _ := s.split(sealed)
	return name
}

// Seal encrypts a text, which opens only with the same bound. It does not name the installation's first key, so that
// servers from before the ring can open its texts.
func (s *Sealer) Seal(text, bound []byte) []byte {
	var head []byte
	if s.active != s.reference {
		head = []byte(sealedPrefix + s.active)
	}
	return append(head, s.ciphers[s.active].Seal(nil, nil, text, bound)...)
}

// Open decrypts what Seal made under a key of the ring.
func (s *Sealer) Open(sealed, bound []byte) ([]byte, error) {
	name, body := s.split(sealed)
	opener, there := s.ciphers[name]
	if !there {
		return nil, fmt.Errorf("%w (%s)", ErrNoKey, name)
	}
	text, err := opener.Open(nil, nil, body, bound)
	if err != nil {
		return nil, ErrSealed
	}
	return text, nil
}

// Reseal gives a text sealed under the active key; changed is false where it is so already.
func (s *Sealer) Reseal(sealed, bound []byte) (fresh []byte, changed bool, err error) {
	if s.Under(sealed) == s.active {
		return sealed, false, nil
	}
	text, err := s.Open(sealed, bound)
	if err != nil {
		return nil, false, err
	}
	return s.Seal(text, bound), true, nil
}

func (s *Sealer) split(sealed []byte) (name string, body []byte) {
	rest, named := bytes.CutPrefix(sealed, []byte(sealedPrefix))
	if !named || len(rest) < nameLength {
		return s.reference, sealed
	}
	return string(rest[:nameLength]), rest[nameLength:]
}
