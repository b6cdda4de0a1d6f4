package reconcile

import (
	"math/rand/v2"
	"testing"
)

// The forms that nearly every file has are read without a pattern, and as their patterns read them.
func TestUsualForms_asPatternsReadThem(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		text := []byte([]string{"2026-11-20", "2026-11-20 12:01:05", "2026-11-20T12:01:05", "2026-11-20 9:01", "1200.50", "-12", "FRI:233241234567/MSISDN", "12345678901234567"}[random.IntN(8)])
		for range random.IntN(3) {
			text[random.IntN(len(text))] = "0123456789-/:. T,"[random.IntN(17)]
		}
		form := string(text)
		if d, is := isoDate(form); is {
			m := numericDate.FindStringSubmatch(form)
			if m == nil || d != (date{number(m[3]), number(m[2]), number(m[1]), true, m[4]}) {
				t.Fatalf("%q is read as %+v, and its parts are %q", form, d, m)
			}
			if hour, minute, second, err := parseClock(d.rest); err == nil && len(d.rest) == 9 {
				if m := clockTime.FindStringSubmatch(d.rest); m == nil || number(m[1]) != hour || number(m[2]) != minute || number(m[3]) != second {
					t.Fatalf("%q is read as %d:%d:%d, and its parts are %q", d.rest, hour, minute, second, m)
				}
			}
		}
		if _, err := parseAmount(form, '.'); err == nil {
			if plain, _ := plainAmount(form); !pointed.MatchString(plain) {
				t.Fatalf("%q is read as an amount", form)
			}
		}
		if id, err := parseID(form); err == nil && (exponent.MatchString(id) || figure.MatchString(id)) {
			t.Fatalf("%q is read as an id", form)
		}
	}
	for text, want := range map[string]string{"": "", "12345678": "", "FRI:233241234567/MSISDN": "233241234567", "1234567890123456789": "123456789012345", "1234 123456789": "123456789", "12345678x123456789012": "123456789012"} {
		if got := longDigits(text); got != want {
			t.Errorf("the digits of %q are %q, want %q", text, got, want)
		}
	}
}
