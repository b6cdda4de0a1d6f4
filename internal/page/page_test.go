package page

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/makola/makola/internal/money"
)

func TestAmount_grouped(t *testing.T) {
	for amount, want := range map[money.Pesewas]string{0: "GHS 0.00", 5: "GHS 0.05", 125_000: "GHS 1,250.00", 123_456_789: "GHS 1,234,567.89", -75_40: "\u2212GHS 75.40"} {
		if got := Cedis(amount); got != want {
			t.Errorf("%d is %q, not %q", amount, got, want)
		}
	}
}

func TestMask_keepsTheEnds(t *testing.T) {
	for number, want := range map[string]string{"233240000123": "233 •••• 123", "0240000123": "024 •••• 123", "123456": "••••••", "": ""} {
		if got := Masked(number); got != want {
			t.Errorf("%q is %q, not %q", number, got, want)
		}
	}
}

func TestText_bidiOverridesAreVisible(t *testing.T) {
	for _, r := range "\u202a\u202e\u2066\u2069\u200e\u200f\u061c\x00\x1b\u009b" {
		if got := Visible("a" + string(r) + "b"); got != "a\ufffdb" {
			t.Errorf("%U is %q", r, got)
		}
	}
	if got := Visible("Akwaaba 你好\n"); got != "Akwaaba 你好\n" {
		t.Errorf("ordinary text is %q", got)
	}
}

func TestAssets_namedByContentHash(t *testing.T) {
	total := 0
	for name := range assets() {
		r, w := httptest.NewRequestWithContext(t.Context(), http.MethodGet, AssetURL(name), nil), httptest.NewRecorder()
		r.Header.Set("Accept-Encoding", "gzip")
		AssetServer().ServeHTTP(w, r)
		total += w.Body.Len()
		if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
	if total > 60<<10 {
		t.Errorf("the assets weigh %d bytes compressed", total)
	}
	r, w := httptest.NewRequestWithContext(t.Context(), http.MethodGet, Assets+"htmx.LICENSE", nil), httptest.NewRecorder()
	AssetServer().ServeHTTP(w, r)
	if w.Code != http.StatusNotFound {
		t.Errorf("another file: %d", w.Code)
	}
}
