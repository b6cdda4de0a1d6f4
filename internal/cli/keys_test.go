package cli

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/installation"
)

// The complete procedure of an operator: a new key before the old one, a rotation, and the removal of the old key, which stays as
// the reference key. If a step is left out, the next one is refused.
func TestKeysRotate_replacesTheMasterKey(t *testing.T) {
	old, fresh := strings.Repeat("ab", config.SecretBytes), strings.Repeat("cd", config.SecretBytes)
	eachAlone(t, func(t *testing.T, w where) {
		t.Setenv(config.EnvMasterKey, old)
		t.Setenv(config.EnvReferenceKey, "")
		first, err := config.ParseSecret(old)
		if err != nil {
			t.Fatal(err)
		}
		if err := installation.New(w.db, clock.Real()).Check(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		id := w.tenant()
		before := w.object("webhooks", "secret", id)["secret"]
		sealed := func(want ...float64) {
			t.Helper()
			list := w.list("keys", "status")
			var got []float64
			for _, k := range list {
				got = append(got, k["sealed"].(float64))
			}
			if len(got) != len(want) {
				t.Fatalf("%v, want %v", list, want)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%v, want %v", list, want)
				}
			}
		}
		sealed(1)

		t.Setenv(config.EnvMasterKey, fresh)
		_, errs := w.run(exitUsage, "keys", "status")
		if !strings.Contains(errs, "not the one this database was made with") {
			t.Fatal(errs)
		}
		t.Setenv(config.EnvReferenceKey, old)
		_, errs = w.run(exitUsage, "keys", "rotate")
		if !strings.Contains(errs, "lacks key "+first.Active()) || !strings.Contains(errs, "1 webhook secrets") {
			t.Fatal(errs)
		}
		t.Setenv(config.EnvReferenceKey, "")
		t.Setenv(config.EnvMasterKey, fresh+"\n"+old)
		sealed(0, 1)
		if got := w.object("webhooks", "secret", id)["secret"]; got != before {
			t.Fatal("the secret is another one before the rotation")
		}
		if _, errs := w.run(exitOK, "keys", "rotate"); !strings.Contains(errs, "1 of 1") {
			t.Fatal(errs)
		}
		sealed(1, 0)
		w.run(exitOK, "keys", "rotate") // a repetition does no harm

		t.Setenv(config.EnvMasterKey, fresh)
		t.Setenv(config.EnvReferenceKey, old)
		sealed(1, 0)
		if got := w.object("webhooks", "secret", id)["secret"]; got != before {
			t.Fatal("the secret is another one after the rotation")
		}
	})
}

// The doctor reports a missing key of a ring before a server refuses to start, and an unfinished rotation.
func TestDoctor_ringWithoutAKey(t *testing.T) {
	old, fresh := strings.Repeat("ab", config.SecretBytes), strings.Repeat("cd", config.SecretBytes)
	eachAlone(t, func(t *testing.T, w where) {
		t.Setenv(config.EnvMasterKey, old)
		id := w.tenant()
		w.object("webhooks", "secret", id)
		first, err := config.ParseSecret(old)
		if err != nil {
			t.Fatal(err)
		}
		ring, err := config.ParseSecret(fresh)
		if err != nil {
			t.Fatal(err)
		}
		d := &doctor{clock: clock.Real(), secret: ring.WithReference(first)}
		o := frame.Assemble(w.db, clock.Real())
		d.ring(t.Context(), o)
		d.says(t, "ring of keys", stateFail, "lacks key "+first.Active())
		d.secret, err = config.ParseSecret(fresh + " " + old)
		if err != nil {
			t.Fatal(err)
		}
		d.ring(t.Context(), o)
		d.says(t, "ring of keys", stateWarn, "1 are sealed under key "+first.Active())
	})
}
