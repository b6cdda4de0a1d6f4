package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/sealed"
	"github.com/makola/makola/internal/test/dbtest"
)

// ring returns master keys for the test. The first one is active.
func ring(t *testing.T, fills string) config.Secret {
	t.Helper()
	var words []string
	for _, fill := range fills {
		words = append(words, strings.Repeat(fmt.Sprintf("%02x", fill), config.SecretBytes))
	}
	s, err := config.ParseSecret(strings.Join(words, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A rotation that is interrupted after each of its transactions still completes, with every secret unchanged.
func TestReseal_interrupted(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		old := newRig(t, d, "a", Options{Secret: ring(t, "m")})
		const tenants = 2*sealed.AtOnce + 1
		want := map[string]Secret{}
		for n := range tenants {
			name := fmt.Sprintf("tenant-%04d", n)
			s, err := old.Secret(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if n%50 == 0 { // a former secret that still signs
				if _, err := old.Rotate(t.Context(), name); err != nil {
					t.Fatal(err)
				}
				if s, err = old.Secret(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
			want[name] = s
		}
		both := newRig(t, d, "b", Options{Secret: ring(t, "nm")})
		first, second := ring(t, "m").Active(), ring(t, "n").Active()
		moved, runs := int64(0), 0
		for done := false; !done; runs++ {
			ctx, cut := context.WithCancel(t.Context())
			err := both.Sealed().Reseal(ctx, func(n int64) {
				if moved += n; n > 0 {
					cut()
				}
			})
			done = err == nil
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			cut()
			counts, err := both.Sealed().Under(t.Context())
			if err != nil || counts[second] != moved || counts[first]+counts[second] != tenants+5 {
				t.Fatalf("after %d: %v, %v", moved, counts, err)
			}
		}
		if runs < 3 || moved != tenants+5 {
			t.Fatalf("%d runs moved %d", runs, moved)
		}
		alone := newRig(t, d, "c", Options{Secret: ring(t, "n").WithReference(ring(t, "m"))})
		for name, s := range want {
			if got, err := alone.Secret(t.Context(), name); err != nil || got != s {
				t.Fatalf("%s: %+v, %v", name, got, err)
			}
		}
	})
}

// If a tenant replaces its secret during a rotation, the new secret stays.
func TestReseal_secretReplacedMeanwhile(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		old := newRig(t, d, "a", Options{Secret: ring(t, "m")})
		if _, err := old.Secret(t.Context(), "tenant"); err != nil {
			t.Fatal(err)
		}
		both := newRig(t, d, "b", Options{Secret: ring(t, "nm")})
		table, text := both.Sealed(), ""
		scan := table.Scan
		table.Scan = func(r *db.Row) (sealed.Row, error) {
			row, err := scan(r)
			if err == nil {
				text, err = old.Rotate(t.Context(), "tenant")
			}
			return row, err
		}
		if err := table.Reseal(t.Context(), func(n int64) {
			if n != 0 {
				t.Errorf("%d secrets that are not there any more were moved", n)
			}
		}); err != nil || text == "" {
			t.Fatal(text, err)
		}
		if s, err := both.Secret(t.Context(), "tenant"); err != nil || s.Current != text || s.Former == "" {
			t.Fatalf("%+v, %v", s, err)
		}
		both.c.Advance(Overlap)
		if err := both.Sealed().Reseal(t.Context(), func(int64) {}); err != nil {
			t.Fatal(err)
		}
		counts, err := both.Sealed().Under(t.Context())
		if err != nil || len(counts) != 1 || counts[ring(t, "n").Active()] != 1 {
			t.Fatalf("a former secret that signs no more is left: %v, %v", counts, err)
		}
	})
}
