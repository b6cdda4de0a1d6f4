package money

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse_twoDecimalsNoExponent(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Pesewas
		err  error
	}{
		{"1", 100, nil}, {"1.5", 150, nil}, {"1.50", 150, nil}, {"0.01", 1, nil}, {"0", 0, nil}, {"007.10", 710, nil},
		{"10000000000000.00", Most, nil}, {"10000000000000.01", 0, ErrRange}, {"92233720368547758.07", 0, ErrRange},
		{"92233720368547758.08", 0, ErrRange}, {"92233720368547759", 0, ErrRange},
		{"1.505", 0, ErrDecimals}, {"1.500", 0, ErrDecimals},
		{"", 0, ErrFormat}, {" 1", 0, ErrFormat}, {"1 ", 0, ErrFormat}, {"+1", 0, ErrFormat}, {"-1", 0, ErrFormat},
		{"1e3", 0, ErrFormat}, {"1E3", 0, ErrFormat}, {".5", 0, ErrFormat}, {"5.", 0, ErrFormat}, {".", 0, ErrFormat},
		{"1,000", 0, ErrFormat}, {"1.2.3", 0, ErrFormat}, {"0x10", 0, ErrFormat}, {"1_000", 0, ErrFormat}, {"١", 0, ErrFormat},
		{"NaN", 0, ErrFormat}, {"Infinity", 0, ErrFormat}, {"1." + strings.Repeat("0", 99), 0, ErrFormat},
	} {
		got, err := Parse(c.in)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("Parse(%q) = %d, %v; want %d, %v", c.in, got, err, c.want, c.err)
		}
	}
}

func TestLenient_roundsBinaryNoise(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Pesewas
		err  error
	}{
		{"9.700000000000001", 970, nil}, {"9.699999999999999", 970, nil}, {"1.0890000000000002", 0, ErrDecimals},
		{"1.089", 0, ErrDecimals}, {"4.75", 475, nil}, {"1.500", 150, nil}, {"1.50000", 150, nil},
		{"1.00000099", 100, nil}, {"1.000001", 0, ErrDecimals}, {"1.009999", 0, ErrDecimals},
		{"1.00999901", 101, nil}, {"1.00999900", 0, ErrDecimals}, {"1.9999999", 200, nil}, {"0.9999995", 100, nil},
		{"1.0000", 100, nil}, {"1.00001", 0, ErrDecimals}, {"-0.0", 0, ErrFormat}, {"1e2", 0, ErrFormat},
		{"10000000000000.009999999", 0, ErrRange}, {"10000000000000.000000001", Most, nil}, {"92233720368547758.079999999", 0, ErrRange},
	} {
		got, err := ParseLenient(c.in)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("ParseLenient(%q) = %d, %v; want %d, %v", c.in, got, err, c.want, c.err)
		}
	}
}

// A JSON number is the same amount with and without an exponent. A large exponent costs nothing.
func TestParseNumber_readsExponents(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Pesewas
		err  error
	}{
		{"10", 1000, nil}, {"1E+1", 1000, nil}, {"1e1", 1000, nil}, {"1.5e1", 1500, nil}, {"150E-1", 1500, nil}, {"1e0", 100, nil}, {"1e-2", 1, nil},
		{"12345678.9", 1234567890, nil}, {"1.23456789E7", 1234567890, nil}, {"1e0000001", 1000, nil}, {"0.0001e4", 100, nil}, {"0e9", 0, nil},
		{"9.700000000000001e0", 970, nil}, {"9.699999999999999E0", 970, nil}, {"970.0000000000001e-2", 970, nil},
		{"1000000000000000e-2", Most, nil}, {"1000000000000001e-2", 0, ErrRange}, {"9223372036854775808e-2", 0, ErrRange}, {"1e17", 0, ErrRange}, {"1e60", 0, ErrRange},
		{"1e400", 0, ErrRange}, {"1e999999999999999999999", 0, ErrRange}, {"1e-400", 0, ErrDecimals}, {"1e-999999999999999999999", 0, ErrDecimals},
		{"1e-3", 0, ErrDecimals}, {"1005e-3", 0, ErrDecimals}, {"1.005e0", 0, ErrDecimals},
		{"-1e1", 0, ErrFormat}, {"1e", 0, ErrFormat}, {"1e+-1", 0, ErrFormat}, {"1e1.5", 0, ErrFormat}, {"1e1e1", 0, ErrFormat}, {".5e1", 0, ErrFormat},
		{"5.e1", 0, ErrFormat}, {"e1", 0, ErrFormat}, {"+1e1", 0, ErrFormat}, {"1e--1", 0, ErrFormat}, {strings.Repeat("9", 99) + "e1", 0, ErrFormat},
	} {
		got, err := ParseNumber(c.in)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("ParseNumber(%q) = %d, %v; want %d, %v", c.in, got, err, c.want, c.err)
		}
	}
}

// An amount can be read back from any formatting with an exponent.
func TestParseNumber_readsFormattedExponents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.Int64Range(0, int64(Most)).Draw(t, "pesewas")
		format := rapid.SampledFrom([]byte("eEgGf")).Draw(t, "format")
		sent := strconv.FormatFloat(float64(p)/100, format, -1, 64)
		if got, err := ParseNumber(sent); err != nil || got != Pesewas(p) {
			t.Fatalf("ParseNumber(%q) = %d, %v; want %d", sent, got, err, p)
		}
	})
}

func TestLenient_readsDoublesOfPesewas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Int64Range(0, 10_000_000).Draw(t, "a")
		b := rapid.Int64Range(0, a).Draw(t, "b")
		sent := strconv.FormatFloat(float64(a)/100-float64(b)/100, 'f', -1, 64)
		if sent == "-0" {
			sent = "0"
		}
		got, err := ParseLenient(sent)
		if err != nil || got != Pesewas(a-b) {
			t.Fatalf("ParseLenient(%q) = %d, %v; want %d", sent, got, err, a-b)
		}
	})
}

func TestString_roundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Pesewas(rapid.Int64Range(0, int64(Most)).Draw(t, "p"))
		got, err := Parse(p.String())
		if err != nil || got != p {
			t.Fatalf("Parse(%q) = %d, %v", p.String(), got, err)
		}
	})
	if got := Pesewas(-150).String(); got != "-1.50" {
		t.Errorf("a negative amount prints %q", got)
	}
	if got := Pesewas(math.MinInt64).String(); got != "-92233720368547758.08" {
		t.Errorf("the least amount prints %q", got)
	}
}

func TestPercent_matchesBigNumbers(t *testing.T) {
	for _, c := range []struct{ amount, points, want int64 }{
		{10000, 100, 100}, {150, 100, 2}, {149, 100, 1}, {50, 100, 1}, {49, 100, 0}, {0, 100, 0}, {100, 0, 0},
		{math.MaxInt64, 20000, math.MaxInt64}, {math.MaxInt64, math.MaxInt64, math.MaxInt64}, {math.MaxInt64, 10000, math.MaxInt64},
	} {
		if got := Percent(Pesewas(c.amount), c.points); int64(got) != c.want {
			t.Errorf("Percent(%d, %d) = %d, want %d", c.amount, c.points, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Int64Range(0, math.MaxInt64).Draw(t, "amount")
		p := rapid.Int64Range(0, 10000).Draw(t, "points")
		want := new(big.Int).Mul(big.NewInt(a), big.NewInt(p))
		want.Add(want, big.NewInt(5000)).Div(want, big.NewInt(10000))
		if got := Percent(Pesewas(a), p); int64(got) != want.Int64() {
			t.Fatalf("Percent(%d, %d) = %d, want %s", a, p, got, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"1", "1.5", "9.700000000000001", "-1", "1e3", "92233720368547758.07", "0.009999999", "150E-1", "1e400", "1e-400"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		exact, errExact := Parse(s)
		lenient, errLenient := ParseLenient(s)
		if errExact == nil && (errLenient != nil || exact != lenient) {
			t.Fatalf("%q: Parse %d, ParseLenient %d %v", s, exact, lenient, errLenient)
		}
		number, errNumber := ParseNumber(s)
		if errLenient == nil && (errNumber != nil || number != lenient) {
			t.Fatalf("%q: ParseLenient %d, ParseNumber %d %v", s, lenient, number, errNumber)
		}
		if errNumber != nil {
			return
		}
		value, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatalf("%q was accepted and is no number", s)
		}
		rest := value.Sub(value, big.NewRat(int64(number), 100))
		if rest.Abs(rest).Cmp(big.NewRat(1, 1_000_000)) >= 0 {
			t.Fatalf("%q became %s: the rest is not noise", s, number)
		}
	})
}

func TestGrouped_separatesThousands(t *testing.T) {
	for number, want := range map[string]string{"0": "0", "999": "999", "1000": "1,000", "-123.00": "-123.00", "5000.00": "5,000.00", "-1234567.89": "-1,234,567.89"} {
		if got := Grouped(number); got != want {
			t.Errorf("%s is written %s, want %s", number, got, want)
		}
	}
}
