package config

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

// ringOf returns a ring of keys, the active one first. All bytes of a key are the same.
func ringOf(t *testing.T, fills ...byte) Secret {
	t.Helper()
	var words []string
	for _, fill := range fills {
		words = append(words, hex.EncodeToString(bytes.Repeat([]byte{fill}, SecretBytes)))
	}
	s, err := ParseSecret(strings.Join(words, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Derived values do not change in a rotation, because a repeated request with a changed reference would pay twice.
func TestRing_rotationKeepsDerivedValues(t *testing.T) {
	first := ringOf(t, 1)
	want := first.Derive("payments/provider-reference")
	for what, s := range map[string]Secret{
		"a new key that waits": ringOf(t, 1), "a new active key": ringOf(t, 2, 1), "a second rotation": ringOf(t, 3, 2, 1),
		"the first key apart": ringOf(t, 2).WithReference(first), "and two in the ring": ringOf(t, 3, 2).WithReference(first),
	} {
		if !bytes.Equal(s.Derive("payments/provider-reference"), want) || s.Reference() != first.Reference() {
			t.Errorf("%s: references change", what)
		}
	}
	if bytes.Equal(ringOf(t, 2).Derive("payments/provider-reference"), want) {
		t.Error("the reference key does not matter")
	}
}

func TestRing_sealedValueNamesItsKey(t *testing.T) {
	old, bound := ringOf(t, 1), []byte("owner")
	before := old.Sealer("use").Seal([]byte("text"), bound)
	both := ringOf(t, 2, 1).Sealer("use")
	after := both.Seal([]byte("text"), bound)
	if both.Under(before) != old.Active() || both.Under(after) != ringOf(t, 2).Active() || old.Active() == ringOf(t, 2).Active() {
		t.Fatalf("%s, %s", both.Under(before), both.Under(after))
	}
	for _, sealed := range [][]byte{before, after} {
		if text, err := both.Open(sealed, bound); err != nil || string(text) != "text" {
			t.Errorf("%q, %v", text, err)
		}
		if _, err := both.Open(sealed, []byte("another")); !errors.Is(err, ErrSealed) {
			t.Errorf("it opens for another owner: %v", err)
		}
	}
	fresh, changed, err := both.Reseal(before, bound)
	if err != nil || !changed || both.Under(fresh) != both.Active() {
		t.Fatal(changed, err)
	}
	if _, changed, err := both.Reseal(fresh, bound); err != nil || changed {
		t.Fatal("what is under the active key is sealed again", err)
	}
	alone := ringOf(t, 2).WithReference(old).Sealer("use")
	if text, err := alone.Open(fresh, bound); err != nil || string(text) != "text" {
		t.Fatalf("without the old key: %q, %v", text, err)
	}
	if _, err := alone.Open(before, bound); !errors.Is(err, ErrNoKey) || !strings.Contains(err.Error(), old.Active()) {
		t.Fatalf("the missing key is not named: %v", err)
	}
	if _, _, err := alone.Reseal(before, bound); !errors.Is(err, ErrNoKey) {
		t.Fatal(err)
	}
}

// Until the first rotation, servers without key rings can run together with servers of this release.
func TestRing_firstKeyIsCompatible(t *testing.T) {
	s := ringOf(t, 1)
	block, err := aes.NewCipher(s.Derive("use"))
	if err != nil {
		t.Fatal(err)
	}
	before, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := before.Open(nil, nil, s.Sealer("use").Seal([]byte("text"), nil), nil); err != nil || string(text) != "text" {
		t.Fatalf("%q, %v", text, err)
	}
	if text, err := s.Sealer("use").Open(before.Seal(nil, nil, []byte("text"), nil), nil); err != nil || string(text) != "text" {
		t.Fatalf("%q, %v", text, err)
	}
}

func TestRing_errorNamesTheKey(t *testing.T) {
	one := hex.EncodeToString(bytes.Repeat([]byte{1}, SecretBytes))
	for text, want := range map[string]string{
		one + "\nshort": "key 2 of the ring", one + " " + one: "key 2 of the ring occurs twice", strings.Repeat(one+"\n", MaxRing+1): "at most 8",
	} {
		if _, err := ParseSecret(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), one) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
