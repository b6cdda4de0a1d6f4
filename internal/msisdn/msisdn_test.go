package msisdn

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"
	"pgregory.net/rapid"
)

func TestNumbersAreReadInAllTheirForms(t *testing.T) {
	for _, in := range []string{
		"0241234567", "233241234567", "+233241234567", "241234567", " 024 123 4567 ", "024-123-4567", "+233 24-123-4567", "+ 233241234567",
	} {
		m, err := Parse(in)
		if err != nil || m != "233241234567" {
			t.Errorf("Parse(%q) = %q, %v", in, m, err)
		}
	}
	for _, in := range []string{
		"", "0", "+", "024123456", "02412345678", "0302123456", "+0241234567", "+241234567", "00233241234567", "2330241234567",
		"+2341234567890", "234241234567", "024123456a", "024.123.4567", "(024)1234567", "٠٢٤١٢٣٤٥٦٧", "0241234567\n\x00", "+233+241234567",
		strings.Repeat(" ", 40) + "0241234567", "341234567", "0841234567",
	} {
		if m, err := Parse(in); err == nil {
			t.Errorf("Parse(%q) = %q, want a refusal", in, m)
		}
	}
	// Nine digits that begin like the country code are the closed 023 range.
	if m, err := Parse("233123456"); err != nil || m != "233233123456" {
		t.Errorf("nine digits: %q, %v", m, err)
	}
}

func TestNumbersAreWrittenLocalInternationalAndMasked(t *testing.T) {
	m := MSISDN("233241234567")
	if m.Local() != "0241234567" || m.International() != "233241234567" || m.Masked() != "233****4567" {
		t.Errorf("%s %s %s", m.Local(), m.International(), m.Masked())
	}
	if MSISDN("12").Masked() != "****" || MSISDN("").Local() != "" {
		t.Error("a broken number is not kept safe")
	}
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "phone", m)
	if strings.Contains(out.String(), "241234567") || !strings.Contains(out.String(), "233****4567") {
		t.Errorf("the log line is %q", out.String())
	}
}

func TestNetworksAreKnownByTheirAliases(t *testing.T) {
	for alias, want := range map[string]Network{
		"mtn": MTN, "MTN": MTN, "Telecel": Telecel, "vdf": Telecel, "VOD": Telecel, "Vodafone": Telecel,
		"AirtelTigo": AirtelTigo, "ATL": AirtelTigo, "at": AirtelTigo, "AIRTEL": AirtelTigo, "tigo": AirtelTigo, " MTN ": MTN,
	} {
		if got, ok := ParseNetwork(alias); !ok || got != want {
			t.Errorf("ParseNetwork(%q) = %q, %v", alias, got, ok)
		}
	}
	for _, alias := range []string{"", "GLO", "BANK", "MTN Ghana", "MT"} {
		if got, ok := ParseNetwork(alias); ok {
			t.Errorf("ParseNetwork(%q) = %q", alias, got)
		}
	}
	for _, n := range Networks() {
		if got, ok := ParseNetwork(string(n)); !ok || got != n {
			t.Errorf("%q is not its own alias", n)
		}
	}
	if n, ok := MSISDN("233200000000").LikelyNetwork(); !ok || n != Telecel {
		t.Errorf("020 is %q", n)
	}
	if n, ok := MSISDN("233230000000").LikelyNetwork(); ok {
		t.Errorf("023 is %q", n)
	}
}

// TestParseAgainstALibrary holds Parse to the numbering plan that Google's
// library knows: every Ghanaian mobile number of it must be ours, in the same
// form. We accept more, because new ranges open before a release knows them.
func TestParseAgainstALibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		national := rapid.StringMatching(`[0-9]{9}`).Draw(t, "national")
		shape := rapid.SampledFrom([]string{"0", "233", "+233", ""}).Draw(t, "shape")
		number, err := phonenumbers.Parse("+233"+national, "GH")
		mobile := err == nil && phonenumbers.IsValidNumberForRegion(number, "GH") &&
			phonenumbers.GetNumberType(number) == phonenumbers.MOBILE
		m, err := Parse(shape + national)
		switch {
		case mobile && err != nil:
			t.Fatalf("%s%s is a mobile number and was refused", shape, national)
		case err == nil && string(m) != "233"+national:
			t.Fatalf("%s%s became %s", shape, national, m)
		case err == nil && national[0] != '2' && national[0] != '5':
			t.Fatalf("%s%s is outside the mobile ranges and was taken", shape, national)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0241234567", "+233 24 123 4567", "233", "abc", "+"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := Parse(s)
		if err != nil {
			return
		}
		for _, form := range []string{m.Local(), m.International(), "+" + m.International(), m.Local()[1:]} {
			if again, err := Parse(form); err != nil || again != m {
				t.Fatalf("%q became %q, whose form %q became %q, %v", s, m, form, again, err)
			}
		}
		if strings.Contains(m.Masked(), string(m[3:8])) {
			t.Fatalf("the mask shows %q", m.Masked())
		}
	})
}
