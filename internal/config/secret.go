package config

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
)

// Secret has the installation's master keys, each at least 32 bytes. They are kept outside the database and its
// backups. No key is used directly: each use derives its own key. A Secret is printed as "[secret]" everywhere.
//
// A value that may be resealed is sealed with a key of the ring. A derived value that must never change, such as a
// ProviderReference, uses the reference key: the first key of the installation.
type Secret struct {
	key  []byte   // the reference key
	ring [][]byte // the active key is first, the oldest last
}

// SecretBytes is the minimum length of a master key.
const SecretBytes = 32

const redacted = "[secret]"

// NewSecret returns a Secret with one master key.
func NewSecret(key []byte) (Secret, error) {
	if len(key) < SecretBytes {
		return Secret{}, fmt.Errorf("the master key has %d bytes, %d are needed", len(key), SecretBytes)
	}
	key = append([]byte(nil), key...)
	return Secret{key: key, ring: [][]byte{key}}, nil
}

// ParseSecret parses a ring of master keys in hexadecimal or base64, separated by white space. The active key is
// first, the oldest last. The oldest is the reference key, unless WithReference sets another.
func ParseSecret(text string) (Secret, error) { return parseRing(text) }

// parseKey parses one master key.
func parseKey(text string) ([]byte, error) {
	if key, err := hex.DecodeString(text); err == nil {
		return checked(key)
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if key, err := encoding.DecodeString(text); err == nil {
			return checked(key)
		}
	}
	return nil, errNoKey
}

func checked(key []byte) ([]byte, error) {
	s, err := NewSecret(key)
	return s.key, err
}

// SecretFile reads the master key from a file. With create, it first writes a new key to a missing file, readable
// only for this user. Only development servers use create; their file is in the data folder.
func SecretFile(path string, create bool) (Secret, error) {
	text, err := ReadSecretFile(path)
	if err == nil {
		return ParseSecret(string(text))
	}
	if !create || !errors.Is(err, fs.ErrNotExist) {
		return Secret{}, fmt.Errorf("read the file of the key: %w", err)
	}
	key := make([]byte, SecretBytes)
	rand.Read(key) // never fails
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return Secret{}, fmt.Errorf("create the master key: %w", err)
	}
	// With O_EXCL, if two processes start at once, one creates the key and the other reads it.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return SecretFile(path, false)
	}
	if err != nil {
		return Secret{}, fmt.Errorf("create the master key: %w", err)
	}
	_, err = f.WriteString(hex.EncodeToString(key) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return Secret{}, fmt.Errorf("create the master key: %w", err)
	}
	return NewSecret(key)
}

// Empty reports whether there is no key.
func (s Secret) Empty() bool { return len(s.key) == 0 }

// Weak reports whether a key does not look random: it is text, a pattern, or has few different bytes. Of 32 random
// bytes about 30 differ.
func (s Secret) Weak() bool { return weak(s.key) || slices.ContainsFunc(s.ring, weak) }

func weak(key []byte) bool {
	const least = SecretBytes / 2
	values, steps, text := map[byte]bool{}, map[byte]bool{}, true
	for i, b := range key {
		values[b] = true
		steps[b-key[max(i-1, 0)]] = true
		text = text && b >= ' ' && b <= '~'
	}
	return text || len(values) < least || len(steps) < least
}

// Derive returns the 32-byte key of one use, which label names. It is derived from the reference key, so a rotation
// does not change it. Keys of different labels reveal nothing about each other or about the master key.
func (s Secret) Derive(label string) []byte {
	if s.Empty() {
		panic("config: a key derived from no master key")
	}
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte("makola/" + label))
	return mac.Sum(nil)
}

// String hides the key.
func (s Secret) String() string { return redacted }

// GoString hides the key from %#v.
func (s Secret) GoString() string { return redacted }

// Format hides the key from every verb of fmt.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue hides the key from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the key from JSON and other encodings.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Credential is a password or key that a provider gave us. It is printed as "[secret]" everywhere. Reveal is only for
// the request that needs it.
type Credential string

// Reveal returns the credential itself.
func (c Credential) Reveal() string { return string(c) }

// String hides the credential.
func (c Credential) String() string { return redacted }

// Format hides the credential from every verb of fmt.
func (c Credential) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue hides the credential from logs.
func (c Credential) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the credential from JSON and other encodings.
func (c Credential) MarshalText() ([]byte, error) { return []byte(redacted), nil }
