package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/makola/makola/internal/money"
)

// The writer writes valid JSON.
func TestWriter_writesValidJSON(t *testing.T) {
	var w Writer
	w.Object("")
	w.Text("message", "Sent \"ok\"\n\\\x00é\xff")
	w.Object("data")
	w.End()
	w.List("rows")
	w.Object("")
	w.Amount("amount", 1050)
	w.Cedis("charges", 1050)
	w.End()
	w.Object("")
	w.Integer("n", -3)
	w.Null("none")
	w.Optional("reason", "")
	w.Time("at", time.Date(2026, 1, 31, 23, 59, 59, 7e8, time.FixedZone("", 3600)))
	w.End()
	w.Text("", "x")
	w.End()
	w.End()
	want := `{"message":"Sent \"ok\"\n\\\u0000é\ufffd","data":{},"rows":[{"amount":"10.50","charges":10.5},{"n":-3,"none":null,"at":"2026-01-31T22:59:59+00:00"},"x"]}`
	if got := string(w.buf); got != want {
		t.Errorf("wrote %s\nwant  %s", got, want)
	}
	if !json.Valid(w.buf) {
		t.Error("this is no JSON")
	}
}

// Amounts are written without trailing zeros.
func TestWriter_amountsWithoutTrailingZeros(t *testing.T) {
	for amount, want := range map[money.Pesewas]string{0: "0", 1: "0.01", 10: "0.1", 50: "0.5", 100: "1", 1000: "10", 1050: "10.5", 1055: "10.55", 10000000: "100000", -150: "-1.5"} {
		var w Writer
		w.Cedis("", amount)
		if string(w.buf) != want {
			t.Errorf("%d is written %s, want %s", amount, w.buf, want)
		}
	}
}

// FuzzText checks that encoding/json reads every quoted text as it was.
func FuzzText(f *testing.F) {
	f.Add("a\"\\\n\x00\x7f\u2028é😀\xff")
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendText(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		want := strings.ToValidUTF8(s, "\ufffd")
		if utf8.ValidString(s) && got != s || !utf8.ValidString(s) && strings.ReplaceAll(got, "\ufffd", "") != strings.ReplaceAll(want, "\ufffd", "") {
			t.Fatalf("%q reads back as %q", s, got)
		}
	})
}
