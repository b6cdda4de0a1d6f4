package msisdn

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrNumber is returned for a text that is not a Ghanaian mobile number. Its text follows the name of a field.
var ErrNumber = errors.New("must be a Ghanaian mobile number such as " + Example)

// Example is the example of a number in the text of ErrNumber.
const Example = "0241234567"

// ErrShortened is returned by ParseCell for a number whose last digits a spreadsheet dropped. Its text follows the
// name of a field.
var ErrShortened = errors.New("lost digits in a spreadsheet: format the column as text, enter the number again and save the file")

// maxLength is the maximum length of a text in bytes. An invisible character takes up to four.
const maxLength = 64

// Parse parses a number as people write it: 0XXXXXXXXX, 233XXXXXXXXX or nine digits. The country code may follow +,
// 00 or tel:, and a zero may follow it, also in brackets. Spaces, dashes, dots, brackets and invisible format
// characters of Unicode are ignored. The nine digits must begin with 2 or 5, as mobile numbers in Ghana do.
func Parse(s string) (MSISDN, error) {
	digits, plus, ok := dial(s)
	if !ok {
		return "", ErrNumber
	}
	abroad, international := strings.CutPrefix(digits, country)
	if !plus && !international {
		abroad, international = strings.CutPrefix(digits, "00"+country)
	}
	trunk := digits
	if international && (plus || len(digits) > nationalLen) {
		trunk = abroad
	} else if plus {
		return "", ErrNumber
	}
	if len(trunk) == 1+nationalLen && trunk[0] == '0' {
		trunk = trunk[1:]
	}
	if len(trunk) != nationalLen || trunk[0] != '2' && trunk[0] != '5' {
		return "", ErrNumber
	}
	return MSISDN(country + trunk), nil
}

// dial returns the digits of a number and whether a plus precedes them. ok is false if s contains a character that
// does not occur in numbers.
func dial(s string) (digits string, plus, ok bool) {
	if len(s) > maxLength || !utf8.ValidString(s) {
		return "", false, false
	}
	s = strings.TrimLeftFunc(s, func(r rune) bool { return unicode.In(r, unicode.Cf, unicode.Zs) })
	if len(s) >= len("tel:") && strings.EqualFold(s[:len("tel:")], "tel:") {
		s = s[len("tel:"):]
	}
	d := make([]byte, 0, len(s))
	for _, r := range s {
		switch {
		case r >= '0' && r <= '9':
			d = append(d, byte(r))
		case r == '+' && !plus && len(d) == 0:
			plus = true
		case !separates(r):
			return "", false, false
		}
	}
	return string(d), plus, !isDecimal(s)
}

// separates reports whether r may occur between the digits of a number.
func separates(r rune) bool {
	switch r {
	case '.', '(', ')', '[', ']', '\u2212', '\u2043': // minus sign, hyphen bullet
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.Zs, unicode.Pd)
}

// isDecimal reports whether the only dot of s is followed by one or two digits. It is then a decimal point. Otherwise
// 024123456.0 would become a number with a tenth digit.
func isDecimal(s string) bool {
	_, behind, _ := strings.Cut(s, ".")
	if strings.Contains(behind, ".") {
		return false
	}
	n := 0
	for i := range len(behind) {
		if behind[i] >= '0' && behind[i] <= '9' {
			n++
		}
	}
	return n == 1 || n == 2
}

// ParseCell parses a number in a cell of a file. It accepts every form that Parse accepts, and the forms that
// spreadsheets make of them. Those are a leading apostrophe, ="0241234567", 233241234567.0, and 2.33241234567E+11 if
// it has all digits. It returns ErrShortened if an exponent hides digits.
func ParseCell(s string) (MSISDN, error) {
	if len(s) > maxLength {
		return "", ErrNumber
	}
	s = strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
	if inner, is := strings.CutPrefix(s, `="`); is && strings.HasSuffix(inner, `"`) {
		s = strings.TrimSuffix(inner, `"`)
	}
	for _, quote := range []string{"'", "\u2018", "\u2019"} {
		s = strings.TrimPrefix(s, quote)
	}
	s, err := plain(s)
	if err != nil {
		return "", err
	}
	return Parse(s)
}

// plain returns a number without the fraction or exponent that a spreadsheet added. It returns any other text
// unchanged.
func plain(s string) (string, error) {
	mantissa, exponent, scaled := strings.Cut(strings.ToUpper(s), "E")
	whole, fraction, point := strings.Cut(strings.Replace(mantissa, ",", ".", 1), ".")
	if !onlyDigits(strings.TrimPrefix(whole, "+")) {
		return s, nil
	}
	switch {
	case !scaled && point && fraction != "" && len(fraction) <= 2 && strings.Trim(fraction, "0") == "":
		return whole, nil
	case !scaled || point && !onlyDigits(fraction):
		return s, nil
	}
	places, err := strconv.ParseUint(strings.TrimPrefix(exponent, "+"), 10, 8)
	if err != nil {
		return s, nil
	}
	if places != uint64(len(fraction)) {
		return "", ErrShortened
	}
	return whole + fraction, nil
}

func onlyDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
