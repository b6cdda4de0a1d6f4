// Package money holds amounts in pesewas, each a hundredth of a Ghana cedi. They are whole numbers of their own type,
// so a count such as SMS credits is never taken for money. No amount is a float anywhere between the decoder and the
// renderer. Parsing is written by hand because the decimal libraries that we tried accept exponents or round
// silently.
package money

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Pesewas is an amount of money in hundredths of a Ghana cedi.
type Pesewas int64

const (
	// Cedi is one Ghana cedi.
	Cedi Pesewas = 100
	// Most is the largest amount that is accepted. A sum of thousands of such amounts does not overflow, and a JSON
	// number represents it exactly in every client.
	Most = 10_000_000_000_000 * Cedi
)

// Errors of parsing an amount. Their texts follow a field's name.
var (
	ErrFormat   = errors.New("must be an amount such as 12.50")
	ErrDecimals = errors.New("must have at most two decimals")
	ErrRange    = errors.New("must be at most " + Most.String())
)

// maxDigits is the maximum number of digits that the parser reads. A double has at most 17 significant digits,
// and some languages print all of them after zeros.
const maxDigits = 64

// String renders cedis with two decimals, such as "12.34".
func (p Pesewas) String() string {
	sign, n := "", uint64(p)
	if p < 0 {
		sign, n = "-", -n
	}
	cents := n % 100
	return sign + strconv.FormatUint(n/100, 10) + "." + string([]byte{'0' + byte(cents/10), '0' + byte(cents%10)})
}

// Grouped puts a comma after each three digits of a number before its point. The number may have a minus sign.
func Grouped(number string) string {
	digits, rest, point := strings.Cut(number, ".")
	unsigned := strings.TrimPrefix(digits, "-")
	sign := digits[:len(digits)-len(unsigned)]
	for at := len(unsigned) - 3; at > 0; at -= 3 {
		unsigned = unsigned[:at] + "," + unsigned[at:]
	}
	if point {
		rest = "." + rest
	}
	return sign + unsigned + rest
}

// Float gives cedis for a JSON number. It is for rendering only: the nearest
// double prints as the same two decimals up to 2^53 pesewas.
func (p Pesewas) Float() float64 { return float64(p) / 100 }

// Parse reads cedis as people and settings write them: digits, and at most two decimals after a point. It
// refuses signs, exponents, blanks, a point without digits, and amounts that are too large.
func Parse(s string) (Pesewas, error) {
	whole, fraction, err := split(s)
	if err != nil {
		return 0, err
	}
	amount, extra, err := join(whole, fraction)
	if err == nil && extra != "" {
		return 0, ErrDecimals
	}
	return amount, err
}

// ParseLenient reads an amount that a client sends as a numeric string. Client programs compute amounts in binary floating point and send
// its errors (9.700000000000001). A remainder below 0.000001 is rounded away. For a real third decimal it returns ErrDecimals and never
// rounds.
func ParseLenient(s string) (Pesewas, error) {
	whole, fraction, err := split(s)
	if err != nil {
		return 0, err
	}
	return round(whole, fraction)
}

// round joins whole cedis and the digits after the point, and removes floating-point errors.
func round(whole, fraction string) (Pesewas, error) {
	amount, extra, err := join(whole, fraction)
	if err != nil || extra == "" {
		return amount, err
	}
	// The first extra digit is worth 0.001 and the fourth 0.000001. The remainder is small enough if it begins with
	// four zeros, or if it is equally near to the next pesewa.
	lead := extra
	for len(lead) < 4 {
		lead += "0"
	}
	head, tail := lead[:4], strings.TrimRight(lead[4:], "0")
	switch {
	case head == "0000":
		return amount, nil
	case head == "9999" && tail != "":
		if amount == Most {
			return 0, ErrRange
		}
		return amount + 1, nil
	}
	return 0, ErrDecimals
}

// ParseNumber reads a JSON number, which some languages write with an exponent
// (1E+1, 150E-1). It is read as the same number without one by ParseLenient.
func ParseNumber(s string) (Pesewas, error) {
	at := strings.IndexAny(s, "eE")
	if at < 0 {
		return ParseLenient(s)
	}
	whole, fraction, pointed := strings.Cut(s[:at], ".")
	exponent, negative := strings.CutPrefix(s[at+1:], "-")
	if !negative {
		exponent = strings.TrimPrefix(exponent, "+")
	}
	if len(s) > maxDigits || !digits(whole) || pointed && !digits(fraction) || !digits(exponent) {
		return 0, ErrFormat
	}
	places, err := strconv.Atoi(exponent)
	switch out := err != nil || places > maxDigits; {
	case out && negative:
		return 0, ErrDecimals
	case out:
		return 0, ErrRange
	case negative:
		whole = strings.Repeat("0", places) + whole
		point := len(whole) - places
		return round(whole[:point], whole[point:]+fraction)
	}
	fraction += strings.Repeat("0", places)
	return round(whole+fraction[:places], fraction[places:])
}

// split cuts digits[.digits] at the point.
func split(s string) (whole, fraction string, err error) {
	whole, fraction, pointed := strings.Cut(s, ".")
	if !digits(whole) || pointed && !digits(fraction) || len(s) > maxDigits {
		return "", "", ErrFormat
	}
	return whole, fraction, nil
}

// join returns the amount cut to whole pesewas, and the digits that follow the
// second decimal.
func join(whole, fraction string) (amount Pesewas, extra string, err error) {
	if len(fraction) > 2 {
		fraction, extra = fraction[:2], fraction[2:]
	}
	n, err := strconv.ParseInt(whole+(fraction + "00")[:2], 10, 64)
	if err != nil || Pesewas(n) > Most {
		return 0, "", ErrRange
	}
	return Pesewas(n), extra, nil
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// Percent gives basisPoints hundredths of a percent of amount, rounded half up to the pesewa. Neither may be
// negative. If the result is too large, it returns the largest amount, which every limit refuses.
func Percent(amount Pesewas, basisPoints int64) Pesewas {
	if amount < 0 || basisPoints < 0 {
		panic("money: percent of a negative amount")
	}
	high, low := bits.Mul64(uint64(amount), uint64(basisPoints))
	low, carry := bits.Add64(low, 5000, 0)
	high += carry
	if high >= 10000 {
		return math.MaxInt64
	}
	result, _ := bits.Div64(high, low, 10000)
	if result > math.MaxInt64 {
		return math.MaxInt64
	}
	return Pesewas(result)
}
