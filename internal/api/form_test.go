package api

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/makola/makola/internal/api/wire"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// read returns a form whose member x has the given JSON value.
func read(t testing.TB, value string) *form {
	t.Helper()
	f := &form{}
	var err error
	if f.object, err = wire.Decode([]byte(`{"x":`+value+`}`), &f.fields); err != nil {
		t.Fatal(err)
	}
	return f
}

// Amounts are accepted as numbers or strings with at most two decimals.
func TestAmount_forms(t *testing.T) {
	for value, want := range map[string]money.Pesewas{
		`10`: 1000, `10.5`: 1050, `"10.5"`: 1050, `"4.75"`: 475, `" 2 "`: 200, `9.700000000000001`: 970, `1.0890000000`: 0,
		`0.50`: 50, `0.5`: 50, `0.49`: 0, `100.00`: 10000, `100.01`: 0, `99.99999999999999`: 10000, `1.089`: 0,
		`-1`: 0, `"-1"`: 0, `0`: 0, `1e1`: 1000, `1E+1`: 1000, `1.5e1`: 1500, `150E-1`: 1500, `"1e1"`: 0, `"1E+1"`: 0, `"150E-1"`: 0, `1E400`: 0, `1e-400`: 0, `5e-1`: 50, `5001e-4`: 0,
		"1e" + strings.Repeat("9", 50000): 0, "1e-" + strings.Repeat("9", 50000): 0, "1" + strings.Repeat("0", 50000) + "e-50000": 0, `true`: 0, `null`: 0, `""`: 0, `"ten"`: 0, `[1]`: 0, `{"x":1}`: 0,
		`"1,000"`: 0, `"0x10"`: 0, `"١٢"`: 0, `"Infinity"`: 0, `"NaN"`: 0, `99999999999999999999999999`: 0, `"1.5.5"`: 0, `"+5"`: 0,
		"\"5\x00\"": 0, `"5\u0000"`: 0,
	} {
		f := read(t, value)
		got := f.amount("x", 50, 10000)
		if got != want || (f.err() == nil) != (want != 0) {
			t.Errorf("%s reads %d (%v), want %d", value, got, f.err(), want)
		}
		if want == 0 && !f.fields.Has("x") {
			t.Errorf("%s: the field is not named: %v", value, f.err())
		}
	}
}

// Dates of any year are accepted.
func TestDate_anyYear(t *testing.T) {
	for text, want := range map[string]string{
		"2026-01-31": "2026-01-31", "1957-03-06": "1957-03-06", "9999-12-31": "9999-12-31",
		"0001-01-01": "0001-01-02", "0000-01-01": "0001-01-02", // never the zero time, which means that there is no date
		"2026-02-30": "", "26-01-31": "", "10000-01-01": "", "-001-01-01": "", "soon": "",
	} {
		f := &form{query: url.Values{"x": {text}}}
		day := f.day("x")
		if (f.err() == nil) != (want != "") || want != "" && day.Format("2006-01-02") != want || day.IsZero() != (want == "") {
			t.Errorf("%s reads %v, %v", text, day, f.err())
		}
	}
}

// A UUID in capital letters is the same id.
func TestID_capitalsAreTheSame(t *testing.T) {
	for text, want := range map[string]string{
		"0198C0DE-0000-7000-8000-00000000ABCD": "0198c0de-0000-7000-8000-00000000abcd",
		"MTN-1":                                "MTN-1",
		"0198C0DE000070008000_00000000ABCD-XY": "0198C0DE000070008000_00000000ABCD-XY",
		"0198C0DE00007000800000000000ABCD":     "0198C0DE00007000800000000000ABCD",
	} {
		if got := canonical(text); got != want {
			t.Errorf("%s reads %s, want %s", text, got, want)
		}
	}
}

// An optional reference is kept if it is valid, and ignored otherwise.
func TestReference_optionalIsKeptIfValid(t *testing.T) {
	for value, want := range map[string]string{
		`"order-20260001"`: "order-20260001", `" order-20260001 "`: "order-20260001", `""`: "", `null`: "", `"17"`: "", `17`: "", `true`: "", `["x"]`: "",
		`"1234567890 12"`: "", `"1234567890\u000012"`: "", `"` + strings.Repeat("x", 37) + `"`: "",
	} {
		f := read(t, value)
		if got := f.wanted("x"); got != want || f.err() != nil {
			t.Errorf("%s reads %q, %v", value, got, f.err())
		}
	}
	if f := read(t, "\"order-\xff0260001\""); f.wanted("x") != "" || f.err() == nil {
		t.Error("a text that is no UTF-8 is taken")
	}
}

// Lists in a query string are accepted with and without brackets.
func TestQuery_lists(t *testing.T) {
	for query, want := range map[string]string{
		"x=a&x=b": "a b", "x[]=a&x[]=b": "a b", "x=a,b": "a b", "x[1]=b&x[0]=a&x[10]=c&x[9]=d": "a b d c", "x%5B1%5D=b&x%5B0%5D=a": "a b",
		"x[0]=a&x[]=b&x=c": "c b a", "x[0]=a&x[0]=b": "a b", "x[00]=a&x[-1]=b&x[a]=c&x[0=d&x0]=e&xx[0]=f&x[0][1]=g": "", "x[0]=": "", "": "",
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		f := &form{query: values}
		if got := strings.Join(f.list("x", 100), " "); got != want || f.err() != nil {
			t.Errorf("%s reads %q, want %q: %v", query, got, want, f.err())
		}
	}
}

// One answer names every bad field.
func TestForm_reportsEveryBadField(t *testing.T) {
	f := &form{}
	var err error
	f.object, err = wire.Decode([]byte(`{"amount":"x","phone":"12","network":"GLO","reference":"short","url":"http://x","type":"cash","twice":1,"twice":2}`), &f.fields)
	if err != nil {
		t.Fatal(err)
	}
	f.amount("amount", 50, noLimit)
	f.phone("phone")
	f.network("network", true)
	f.reference("reference", true)
	f.url("url", func(string, bool) error { return problem.Field("callback_url", "must begin with https://") })
	f.choice("type", true, "momo")
	f.line("missing", true, 10)
	e := problem.From(f.err())
	want := []string{"amount", "missing", "network", "phone", "reference", "twice", "type", "url"}
	if got := e.FieldNames(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("bad fields are %v, want %v", got, want)
	}
	for _, name := range want {
		if !strings.Contains(e.Message, name) {
			t.Errorf("the message %q does not name %s", e.Message, name)
		}
	}
	if e.Fields["url"][0] != "must begin with https://" {
		t.Errorf("url says %q", e.Fields["url"])
	}
}

// Texts are trimmed, and cut at their maximum length. Control characters are refused.
func TestText_trimmedAndCut(t *testing.T) {
	long := strings.Repeat("é", labelMax+1)
	for _, c := range []struct {
		value, want string
		bad         bool
	}{
		{`"Kwame"`, "Kwame", false},
		{`" Ama \u00e9 "`, "Ama é", false},
		{`""`, "", false},
		{`"  "`, "", false},
		{`null`, "", false},
		{`"a\u0000b"`, "", true},
		{"\"a\x00b\"", "", true},
		{`"a\nb"`, "", true},
		{"\"a\nb\"", "", true},
		{`"a\u007fb"`, "", true},
		{`"a\u0085b"`, "", true},
		{`"\ufffd"`, "\ufffd", false},
		{`12`, "", true},
		{`true`, "", true},
		{`["a"]`, "", true},
		{`"` + long + `"`, strings.Repeat("é", labelMax), false},
	} {
		f := read(t, c.value)
		if got := f.label("x"); got != c.want || (f.err() != nil) != c.bad {
			t.Errorf("label %.20s reads %.20q, %v", c.value, got, f.err())
		}
	}
	f := read(t, `"`+long+`"`)
	if f.line("x", true, labelMax); f.err() == nil {
		t.Error("a line that is too long was taken")
	}
	f = read(t, `"\n"`)
	if f.line("x", true, 5); f.err() == nil {
		t.Error("a line of nothing was taken")
	}
}

// References need 12 to 36 characters from the allowed set.
func TestReference_lengthAndCharacters(t *testing.T) {
	for value, ok := range map[string]bool{
		`"123456789012"`: true, `"12345678901"`: false, `"a.b_c-D123456"`: true, `"` + strings.Repeat("x", 36) + `"`: true,
		`"` + strings.Repeat("x", 37) + `"`: false, `"1234567890 12"`: false, `"1234567890é2"`: false, `1234567890123`: false,
		`"123456789012\u0000"`: false, `"123456789012/"`: false, `"123456789012'--"`: false,
	} {
		f := read(t, value)
		got := f.reference("x", true)
		if (f.err() == nil) != ok || (got != "") != ok {
			t.Errorf("%s reads %q, %v", value, got, f.err())
		}
	}
	f := read(t, `""`)
	if got := f.reference("x", false); got != "" || f.err() != nil {
		t.Error("an optional reference must not be empty")
	}
}

// Spaces and hyphens are removed from account numbers.
func TestAccountNumber_dropsSpaces(t *testing.T) {
	for value, want := range map[string]string{
		`"0011223"`: "0011223", `"00 11-22 33"`: "00112233", `"ABcd1234"`: "ABcd1234", `"123456"`: "", `"12345678901234567"`: "",
		`"1234567é"`: "", `1234567`: "", `"1234567;"`: "",
	} {
		f := read(t, value)
		if got := f.account("x"); got != want || (f.err() == nil) != (want != "") {
			t.Errorf("%s reads %q, %v", value, got, f.err())
		}
	}
}

// An invalid id is answered with not found.
func TestID_invalidIsNotFound(t *testing.T) {
	unknown := problem.New(problem.NotFound, "payment_not_found", "Payment not found")
	for value, kind := range map[string]problem.Kind{
		`"0190-abc"`: "", `"` + strings.Repeat("x", 65) + `"`: problem.NotFound, `"a b"`: problem.NotFound, `"'"`: problem.NotFound,
		`"a\u0000"`: problem.Invalid, `""`: problem.Invalid, `7`: problem.Invalid,
	} {
		f := read(t, value)
		_, err := f.id("x", unknown)
		if err == nil {
			err = f.err()
		}
		if kind == "" && err != nil || kind != "" && !problem.Is(err, kind) {
			t.Errorf("%s: %v, want %s", value, err, kind)
		}
	}
}

// A whole number may be written with a point or an exponent, as some languages do.
func TestNumber_forms(t *testing.T) {
	for value, want := range map[string]int{`5`: 5, `5.0`: 5, `5e0`: 5, `0.5E1`: 5, `50e-1`: 5, `"5"`: 5, `null`: 4, `5.5`: 0, `1e400`: 0, `-5.0`: 0, `1e1`: 0, `"5.0"`: 0, `"5e0"`: 0, `true`: 0} {
		var faults problem.Fields
		object, err := wire.Decode([]byte(`{"length":`+value+`}`), &faults)
		if err != nil {
			t.Fatal(err)
		}
		f := &form{object: object}
		if got := f.number("length", 4, 4, 9); want > 0 && (got != want || f.err() != nil) || want == 0 && f.err() == nil {
			t.Errorf("%s is %d (%v)", value, got, f.err())
		}
	}
}

// Query parameters have defaults and bounds.
func TestQuery_defaultsAndBounds(t *testing.T) {
	q, _ := url.ParseQuery("page=2&page_size=101&from=2026-02-30&to=2026-02-28&status=Success&twice=a&twice=b&bad=%ff&zero=0&plus=%2B1&empty=")
	f := &form{query: q}
	if got := f.number("page", 1, 1, 1000000); got != 2 {
		t.Errorf("page is %d", got)
	}
	if got := f.number("none", 15, 1, 100); got != 15 {
		t.Errorf("the default is %d", got)
	}
	if got := f.number("empty", 15, 1, 100); got != 15 {
		t.Errorf("the default is %d", got)
	}
	if got := f.choice("status", false, "success", "failed"); got != "success" {
		t.Errorf("status is %q", got)
	}
	if got := f.day("to"); got.Format("2006-01-02T15:04:05") != "2026-02-28T00:00:00" {
		t.Errorf("to is %v", got)
	}
	if f.err() != nil {
		t.Fatal(f.err())
	}
	f.number("page_size", 15, 1, 100)
	f.number("zero", 1, 1, 100)
	f.number("plus", 1, 1, 100)
	f.number("status", 1, 1, 100)
	f.day("from")
	f.line("twice", false, 10)
	f.line("bad", false, 10)
	if got := fmt.Sprint(problem.From(f.err()).FieldNames()); got != "[bad from page_size plus status twice zero]" {
		t.Errorf("bad fields are %s", got)
	}
}

// FuzzAmount compares the amount of any JSON value with exact arithmetic.
func FuzzAmount(f *testing.F) {
	for _, seed := range []string{`1`, `"1.5"`, `9.700000000000001`, `0.0000001`, `1e3`, `"1e3"`, `150E-1`, `1e-400`, `-0`, `99999999999999999999`, `1.0049999999`, `""`} {
		f.Add(seed)
	}
	noise := big.NewRat(1, 1_000_000)
	f.Fuzz(func(t *testing.T, value string) {
		var faults problem.Fields
		o, err := wire.Decode([]byte(`{"x":`+value+`}`), &faults)
		if err != nil || faults.Err() != nil || !json.Valid([]byte(value)) {
			return
		}
		form := &form{object: o}
		got := form.amount("x", 1, noLimit)
		if form.err() != nil {
			if got != 0 {
				t.Fatalf("%s: refused, but it answers %d", value, got)
			}
			return
		}
		text := strings.Trim(strings.TrimSpace(string(o.Find("x"))), `"`)
		if strings.ContainsRune(text, '\\') {
			return // the text was written with escapes
		}
		if o.Find("x")[0] == '"' && strings.ContainsAny(text, "eE") {
			t.Fatalf("%s: a text with an exponent is taken as %d", value, got)
		}
		exact, ok := new(big.Rat).SetString(strings.TrimSpace(text))
		if !ok {
			t.Fatalf("%s: taken as %d", value, got)
		}
		rest := new(big.Rat).Sub(exact, big.NewRat(int64(got), 100))
		if rest.Abs(rest).Cmp(noise) >= 0 {
			t.Fatalf("%s: taken as %d", value, got)
		}
	})
}

// FuzzTexts checks that every text field accepts only valid UTF-8, without control characters, up to its maximum
// length.
func FuzzTexts(f *testing.F) {
	f.Add(`"Kwame"`)
	f.Add(`"a\u0000\ud83d\ude00"`)
	f.Add("\"\xff\x00\"")
	f.Fuzz(func(t *testing.T, value string) {
		for i, field := range []func(*form) string{
			func(f *form) string { return f.label("x") },
			func(f *form) string { return f.line("x", true, labelMax) },
			func(f *form) string { return f.reference("x", true) },
			func(f *form) string { return f.account("x") },
			func(f *form) string { return string(f.phone("x")) },
			func(f *form) string { return string(f.network("x", true)) },
		} {
			form := &form{}
			var err error
			if form.object, err = wire.Decode([]byte(`{"x":`+value+`}`), &form.fields); err != nil {
				return
			}
			got := field(form)
			if form.err() != nil && got != "" {
				t.Fatalf("field %d: refused, but it answers %q", i, got)
			}
			if !utf8.ValidString(got) || wire.HasControl(got, false) || utf8.RuneCountInString(got) > labelMax {
				t.Fatalf("field %d answers %q", i, got)
			}
		}
	})
}

func BenchmarkDecodePayout(b *testing.B) {
	body := []byte(`{"amount":"10.00","account_number":"0240000000","account_name":"Kwame Mensah","channel":"MTN","client_reference":"payout-20260001","callback_url":"https://shop.example/hook?x=1"}`)
	b.ReportAllocs()
	for b.Loop() {
		f := form{}
		var err error
		if f.object, err = wire.Decode(body, &f.fields); err != nil {
			b.Fatal(err)
		}
		f.amount("amount", 50, noLimit)
		f.phone("account_number")
		f.label("account_name")
		f.network("channel", true)
		f.reference("client_reference", true)
		if f.err() != nil {
			b.Fatal(f.err())
		}
	}
}

// The errors of the form and of the domain are counted together.
func TestPayees_countsAllFaults(t *testing.T) {
	f := read(t, `1`)
	var err error
	rows := strings.Repeat(`{"account_number":"0551234987","amount":true},`, 60) + `{"account_number":"0551234987","amount":1}`
	if f.object, err = wire.Decode([]byte(`{"rows":[`+rows+`]}`), &f.fields); err != nil {
		t.Fatal(err)
	}
	_, bad := f.payees(200)
	var domain problem.Fields
	for i := range 60 {
		domain.Add(fmt.Sprintf("rows.%d.amount", 61+i), "is wrong")
	}
	bad.add(domain.Err())
	bad.total()
	if err := f.err(); err == nil || !strings.Contains(fmt.Sprint(problem.From(err).Fields["rows"]), "have 120 faults, of which 100 are shown") {
		t.Errorf("got %v", problem.From(err).Fields["rows"])
	}
}
