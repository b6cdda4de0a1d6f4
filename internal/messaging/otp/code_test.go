package otp

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

var morning = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// codesOn returns the codes of a node on a database.
func codesOn(t *testing.T, d *db.DB) *Codes {
	t.Helper()
	secret, err := config.NewSecret([]byte("a master key of thirty-two octets"))
	if err != nil {
		t.Fatal(err)
	}
	c := clock.NewManual(morning)
	return New(Deps{DB: d, Answers: idempotency.NewAnswers(d, c), Clock: c, Log: slog.New(slog.DiscardHandler), Secret: secret})
}

// All digits occur equally often, and the code depends on the key.
func TestCode_isSpread(t *testing.T) {
	k := key{code: []byte("a key")}
	seen := map[string]int{}
	for i := range 20_000 {
		code := k.of(fmt.Sprint(i), 4)
		if len(code) != 4 {
			t.Fatalf("code %q", code)
		}
		seen[code[:1]]++
		seen[code[3:]]++
	}
	for digit, n := range seen {
		if n < 3_600 || n > 4_400 { // 4000 are expected, with a standard deviation of 60
			t.Errorf("digit %s comes %d times in 40000", digit, n)
		}
	}
	if k.of("x", 4) == (key{code: []byte("another key")}).of("x", 4) && k.of("y", 4) == (key{code: []byte("another key")}).of("y", 4) {
		t.Error("the code does not depend on the key")
	}
}

// After a rotation, a node with the new keys still accepts a code from before. New codes use the new key.
func TestCode_outlivesARotation(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := codesOn(t, d)
		code, err := c.Make(Code{Tenant: "shop", ID: "019f0000-0000-7000-8000-000000000000", Number: "233241234567", Created: morning, Expires: morning.Add(time.Hour)}, 6)
		if err != nil {
			t.Fatal(err)
		}
		digits, _ := c.Text(Placeholder, code)
		batch := c.Batch([]*Code{code})
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			batch.DeferAll(t.Context(), tx, []*Code{code})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		verify := func(digits string) error {
			_, err := c.Verify(t.Context(), idempotency.Caller{Tenant: "shop"}, code.ID, code.Number, digits)
			return err
		}
		added, first := key{code: []byte("another code"), hash: []byte("another hash")}, c.keys[0]
		c.keys = keys{added, first}
		if text, known := c.Text(Placeholder, code); !known || text != digits {
			t.Errorf("another code is sent than the one that is stored: %q", text)
		}
		if err := verify("0" + digits); !problem.Is(err, problem.Invalid) {
			t.Errorf("a wrong code: %v", err)
		}
		if err := verify(digits); err != nil {
			t.Errorf("the code: %v", err)
		}
		again, err := c.Make(*code, 6)
		if err != nil || again.hash != added.hashed(code.ID, added.of(code.ID, 6)) {
			t.Errorf("a new code is not made under the new key: %v", err)
		}
		c.keys = keys{added}
		if text, known := c.Text(Placeholder, code); known || text != "" {
			t.Errorf("without its key: %q", text)
		}
		if err := verify(digits); !problem.Is(err, problem.Unauthenticated) {
			t.Errorf("a code that was used: %v", err)
		}
	})
}
