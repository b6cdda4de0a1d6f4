package msisdn

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/nyaruka/phonenumbers"
	"pgregory.net/rapid"
)

// Numbers are accepted in every form in which people write, dial and copy them.
func TestParse_acceptsEveryWrittenForm(t *testing.T) {
	for _, in := range []string{
		"0241234567", "233241234567", "+233241234567", "241234567", " 024 123 4567 ", "024-123-4567", "+233 24-123-4567", "+ 233241234567",
		"00233241234567", "00 233 24 123 4567", "2330241234567", "+2330241234567", "+233 (0)24 123 4567", "00233(0)241234567",
		"(024) 123-4567", "(024)1234567", "[024] 1234567", "(+233) 24 123 4567", "024.123.4567", "024.123.45.67", "0241234567.", "0241.234567",
		"tel:+233241234567", "TEL: 0241234567", "tel:+233-24-123-4567", "024\u00a0123\u00a04567", "024\u2007123\u202f4567", "0241234567\u3000",
		"024\u2010123\u20114567", "024\u2012123\u20134567", "024\u2014123\u20154567", "024\u2212123\u20434567", "024\u00ad1234567",
		"\u202a+233241234567\u202c", "\u200e0241234567\u200f", "\u2068tel:0241234567\u2069", "\ufeff0241234567", "024\u200b1234567\u200d",
		"\u202a+233\u2011 24\u2011 123\u2011 4567\u202c",
	} {
		if m, err := Parse(in); err != nil || m != "233241234567" {
			t.Errorf("Parse(%q) = %q, %v", in, m, err)
		}
		if m, err := ParseCell(in); err != nil || m != "233241234567" {
			t.Errorf("ParseCell(%q) = %q, %v", in, m, err)
		}
	}
	// Nine digits that begin with 233, like the country code, are a number of the closed 023 range.
	if m, err := Parse("233123456"); err != nil || m != "233233123456" {
		t.Errorf("nine digits: %q, %v", m, err)
	}
}

// These are refused everywhere: letters, other countries, digits of other scripts, two numbers, and numbers of a
// wrong length.
func TestParse_refusesInvalid(t *testing.T) {
	for _, in := range []string{
		"", "0", "+", "()", "tel:", "024123456", "02412345678", "0302123456", "+0241234567", "+241234567", "+233123456", "+00233241234567",
		"+2341234567890", "002341234567890", "234241234567", "00241234567", "23300241234567", "233024123456", "+233 (0)24 123 456",
		"024123456a", "O241234567", "tel:tel:0241234567", "phone:0241234567", "0241234567 ext 2", "0241234567;ext=2", "0241234567x2",
		"٠٢٤١٢٣٤٥٦٧", "０２４１２３４５６７", "0241234567\n\x00", "024\t1234567", "024\n1234567", "+233+241234567", "++233241234567", "024+1234567",
		"0241234567/0551234567", "0241234567,0551234567", "0241234567 0551234567", "0241234567/", "024_1234567", "024\xff1234567",
		strings.Repeat(" ", 64) + "0241234567", "341234567", "0841234567", "024123456.5", "24123456.5", "0241234567.50", "-",
		"2.41234567E-8", "=0241234567", "0241234567E", "E11", "2.3.3E+11",
	} {
		if m, err := Parse(in); !errors.Is(err, ErrNumber) {
			t.Errorf("Parse(%q) = %q, %v", in, m, err)
		}
		if m, err := ParseCell(in); !errors.Is(err, ErrNumber) {
			t.Errorf("ParseCell(%q) = %q, %v", in, m, err)
		}
	}
}

// Forms that only a spreadsheet makes of a number are accepted only from files.
func TestParseCell_acceptsSpreadsheetForms(t *testing.T) {
	for _, in := range []string{
		"'0241234567", "\u2019233241234567", "\u20180241234567", `="0241234567"`, `="+233 24 123 4567"`, "233241234567.0", "233241234567.00", "241234567.0",
		"241234567,0", "2.33241234567E+11", "2.33241234567e11", "2,33241234567E+11", "+2.33241234567E+11", "2.41234567E+08", "2.41234567E8",
		"\t0241234567\r\n", " '0241234567 ",
	} {
		if m, err := ParseCell(in); err != nil || m != "233241234567" {
			t.Errorf("ParseCell(%q) = %q, %v", in, m, err)
		}
		trimmed := strings.TrimSpace(in)
		if m, err := Parse(trimmed); err == nil && strings.ContainsAny(trimmed, "'=E.,e\u2018\u2019") {
			t.Errorf("Parse(%q) = %q, want a refusal", trimmed, m)
		}
	}
}

// If a spreadsheet rounded away the last digits of a number, zeros never replace them. A fraction never becomes a
// digit.
func TestParse_neverAddsDigits(t *testing.T) {
	for _, in := range []string{"2.33241E+11", "2.33E+11", "2E+11", "2.3324123456789E+11", "2.4123456E+08"} {
		if m, err := ParseCell(in); !errors.Is(err, ErrShortened) {
			t.Errorf("ParseCell(%q) = %q, %v", in, m, err)
		}
	}
	for _, in := range []string{"024123456.0", "24123456.0", "233024123456.0", "02412345.00", "23324123456.0"} {
		if m, err := Parse(in); err == nil {
			t.Errorf("Parse(%q) = %q", in, m)
		}
		if m, err := ParseCell(in); err == nil {
			t.Errorf("ParseCell(%q) = %q", in, m)
		}
	}
}

// TestParse_knowsTheNumberingPlan compares Parse with Google's library. Parse accepts every Ghanaian mobile number
// that the library knows, in the same form. Parse accepts more, because new ranges open before a release of the
// library knows them.
func TestParse_knowsTheNumberingPlan(t *testing.T) {
	shapes := []string{"0", "233", "+233", "", "00233", "2330", "+233 (0)", "tel:+233"}
	rapid.Check(t, func(t *rapid.T) {
		national := rapid.StringMatching(`[0-9]{9}`).Draw(t, "national")
		shape := rapid.SampledFrom(shapes).Draw(t, "shape")
		m, err := Parse(shape + national)
		switch {
		case isMobile("+233"+national) && err != nil:
			t.Fatalf("%s%s is a mobile number and was refused", shape, national)
		case err == nil && string(m) != "233"+national:
			t.Fatalf("%s%s became %s", shape, national, m)
		case err == nil && national[0] != '2' && national[0] != '5':
			t.Fatalf("%s%s is outside the mobile ranges and was taken", shape, national)
		}
	})
}

// For texts with ten digits or more, no letters, and the separators that people write, Parse returns the number that
// Google's library reads, or refuses the text.
func TestParse_agreesWithALibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		agree(t, strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 16).Draw(t, "text"), ""))
	})
}

var pieces = []string{
	"0", "00", "233", "24", "241234567", "551234567", "1", "4567", "123", "+", "(0)", "(", ")", "[", "]", ".", "-", " ", "\u00a0", "\u2011", "\u2013", "\u2212",
	"\u200e", "\u202a", "\u202c", "\u200b",
}

// FuzzParse compares Parse with Google's library, and checks the form of its results.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"0241234567", "+233 24 123 4567", "233", "abc", "+", "+233 (0)24.123.4567", "tel:0241234567", "\u202a00233241234567\u202c", "2330241234567",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		agree(t, s)
		m, err := Parse(s)
		if err != nil {
			return
		}
		if cell, err := ParseCell(s); err != nil || cell != m {
			t.Fatalf("%q is %q, and %q, %v in a cell", s, m, cell, err)
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

// FuzzParseCell checks that the number of a cell has no digit that the cell lacks.
func FuzzParseCell(f *testing.F) {
	for _, s := range []string{"'0241234567", `="0241234567"`, "233241234567.0", "2.33241234567E+11", "2.33241E+11", "0241234567"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseCell(s)
		if err != nil {
			return
		}
		digits := strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return -1
			}
			return r
		}, s)
		if !strings.Contains(digits, m.Local()[1:]) {
			t.Fatalf("%q became %q", s, m)
		}
	})
}

type failer interface {
	Fatalf(format string, args ...any)
}

// agree compares Parse with Google's library if the text has no letters and ten digits or more. The library cannot
// read format characters.
func agree(t failer, s string) {
	digits := 0
	visible := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			digits++
		}
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, s)
	if digits < 10 || strings.ContainsFunc(s, unicode.IsLetter) {
		return
	}
	m, err := Parse(s)
	if err == nil {
		if theirs, err := phonenumbers.Parse(visible, "GH"); err != nil || phonenumbers.Format(theirs, phonenumbers.E164) != "+"+string(m) {
			t.Fatalf("%q is %q here and %v, %v there", s, m, theirs, err)
		}
		return
	}
	if onlyDialled(visible) && isMobile(visible) {
		t.Fatalf("%q is a mobile number and was refused", s)
	}
}

// onlyDialled reports whether a text has only digits, after at most one plus. Two zeros after the country code are
// excluded: the library accepts them, but nobody dials them.
func onlyDialled(s string) bool {
	s = strings.TrimPrefix(s, "+")
	return len(s) <= maxLength && strings.Trim(s, "0123456789") == "" && !strings.Contains(s, "23300")
}

// isMobile reports whether Google's library accepts a text as a Ghanaian mobile number.
func isMobile(s string) bool {
	number, err := phonenumbers.Parse(s, "GH")
	return err == nil && phonenumbers.IsValidNumberForRegion(number, "GH") && phonenumbers.GetNumberType(number) == phonenumbers.MOBILE
}
