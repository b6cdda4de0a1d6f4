package trace

import (
	"context"
	"strings"
	"testing"
)

const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// The cases are those of the specification, https://www.w3.org/TR/trace-context/.
func TestParent_takesValidOnesOnly(t *testing.T) {
	for given, want := range map[string]string{
		good:                            good,
		good[:53] + "00":                good[:53] + "00",
		good[:53] + "ff":                good[:53] + "03", // flags of a later level
		"cc" + good[2:]:                 good,             // a later version
		"cc" + good[2:] + "-what-comes": good,
		"cc" + good[2:] + ".what-comes": "",
		good + "-more":                  "",
		"ff" + good[2:]:                 "",
		"":                              "",
		good[:54]:                       "",
		strings.ToUpper(good):           "",
		strings.Replace(good, "0af7651916cd43dd8448eb211c80319c", strings.Repeat("0", 32), 1): "",
		strings.Replace(good, "b7ad6b7169203331", strings.Repeat("0", 16), 1):                 "",
		strings.Replace(good, "-", "_", 1):                                                    "",
		strings.Replace(good, "b7ad", "b7a\n", 1):                                             "",
		" " + good: "",
	} {
		if got := Parent([]string{given}); got != want {
			t.Errorf("%q gives %q, want %q", given, got, want)
		}
	}
	if got := Parent(nil) + Parent([]string{good, good}); got != "" {
		t.Errorf("none and two of them give %q", got)
	}
}

func FuzzParent(f *testing.F) {
	f.Add(good)
	f.Add("cc" + good[2:] + "-x")
	f.Fuzz(func(t *testing.T, given string) {
		got := Parent([]string{given})
		if got != "" && (len(got) != parentLength || Parent([]string{got}) != got) {
			t.Errorf("%q gives %q, which is not valid", given, got)
		}
	})
}

func TestWith_emptyChangesNothing(t *testing.T) {
	ctx := With(context.Background(), good)
	if From(With(ctx, "")) != good || From(context.Background()) != "" {
		t.Error("an empty traceparent replaced another")
	}
}
