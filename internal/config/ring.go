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

// MaxRing is the maximum number of master keys in a ring.
const MaxRing = 8

// parseRing parses master keys that are separated by white space. The active key is first, the oldest last.
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
			return Secret{}, fmt.Errorf("key %d of the ring occurs twice", i+1)
		}
		ring.ring = append(ring.ring, one)
		ring.key = one
	}
	if ring.Empty() {
		return Secret{}, errNoKey
	}
	return ring, nil
}

// WithReference returns the ring with another reference key. The reference key is the first key of the
// installation. It never changes, but may no longer be in the ring.
func (s Secret) WithReference(reference Secret) Secret {
	s.key = reference.key
	return s
}

// name returns the name of a key, which is written in sealed texts. It reveals nothing about the key.
func name(key []byte) string { return hex.EncodeToString(Secret{key: key}.Derive("key name")[:8]) }

// Active returns the name of the key that seals.
func (s Secret) Active() string { return s.Names()[0] }

// Reference returns the name of the reference key.
func (s Secret) Reference() string { return name(s.key) }

// Names returns the names of all keys in the ring, the active one first.
func (s Secret) Names() []string {
	names := make([]string, len(s.ring))
	for i, key := range s.ring {
		names[i] = name(key)
	}
	return names
}

// Each returns each key of the ring as a separate Secret, the active one first. It is for short-lived values that are
// derived and not sealed.
func (s Secret) Each() []Secret {
	each := make([]Secret, len(s.ring))
	for i, key := range s.ring {
		each[i] = Secret{key: key, ring: [][]byte{key}}
	}
	return each
}

// sealedPrefix begins a sealed text. The name of its key follows. A text without the prefix was sealed under the
// first key of the installation. A random nonce never equals the prefix.
const sealedPrefix = "makola-key-1:"

const nameLength = 16

// Sealer seals small secrets for one purpose. It opens secrets that any key of the ring has sealed.
type Sealer struct {
	active, reference string
	ciphers           map[string]cipher.AEAD
}

// Errors of Sealer.Open.
var (
	ErrNoKey  = errors.New("the ring lacks the master key that it was sealed under")
	ErrSealed = errors.New("it cannot be opened: another master key may have sealed it")
	errNoKey  = errors.New("the master key is neither hexadecimal nor base64")
)

// Sealer returns the sealer of the purpose that label names, such as webhook secrets. It returns nil without a master
// key.
func (s Secret) Sealer(label string) *Sealer {
	if s.Empty() {
		return nil
	}
	out := &Sealer{active: s.Active(), reference: s.Reference(), ciphers: map[string]cipher.AEAD{}}
	for _, one := range s.Each() {
		block, err := aes.NewCipher(one.Derive(label))
		if err != nil {
			panic(fmt.Sprintf("config: %v", err)) // cannot happen: keys have 32 bytes
		}
		sealer, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			panic(fmt.Sprintf("config: %v", err))
		}
		out.ciphers[one.Active()] = sealer
	}
	return out
}

// Active returns the name of the key that seals.
func (s *Sealer) Active() string { return s.active }

// Under returns the name of the key with which a text was sealed.
func (s *Sealer) Under(sealed []byte) string {
	name, _ := s.split(sealed)
	return name
}

// Seal encrypts a text. Open needs the same bound. If the active key is the installation's first key, the text does
// not name it, so that servers of releases without rings can open it.
func (s *Sealer) Seal(text, bound []byte) []byte {
	var head []byte
	if s.active != s.reference {
		head = []byte(sealedPrefix + s.active)
	}
	return append(head, s.ciphers[s.active].Seal(nil, nil, text, bound)...)
}

// Open decrypts a text that Seal encrypted with any key of the ring.
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

// Reseal returns a text sealed with the active key. changed is false if it was sealed with that key already.
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
