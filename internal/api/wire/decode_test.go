package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/makola/makola/internal/problem"
)

// The decoder accepts every kind of value.
func TestDecode_everyKindOfValue(t *testing.T) {
	var faults problem.Fields
	o, err := Decode([]byte("\xef\xbb\xbf {\"a\" : \"x\\u00e9\\ud83d\\ude00\\n\" , \"b\":-1.50e+3,\"c\":null,\"d\":[1,{\"a\":[]}],\"\":true}\n"), &faults)
	if err != nil || faults.Err() != nil {
		t.Fatal(err, faults.Err())
	}
	for name, want := range map[string]string{"b": "-1.50e+3", "c": "null", "d": `[1,{"a":[]}]`, "": "true"} {
		if got := string(o.Find(name)); got != want {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
	}
	if got := Unquote(o.Find("a")); got != "xé😀\n" {
		t.Errorf("a is %q", got)
	}
	if o.Find("e") != nil {
		t.Error("a member appeared")
	}
}

// The decoder refuses input that is not JSON. If a field is ambiguous, the error names it.
func TestDecode_refusesAmbiguousInput(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"x":[`, n) + strings.Repeat("]}", n) }
	for _, c := range []struct {
		name, body, field string // field empty: 400
	}{
		{"empty", "", ""},
		{"space", " \n", ""},
		{"array", `[1]`, ""},
		{"string", `"x"`, ""},
		{"cut", `{"a":1`, ""},
		{"cut string", `{"a":"x`, ""},
		{"cut escape", `{"a":"\`, ""},
		{"cut unicode", `{"a":"\u12"}`, ""},
		{"bad escape", `{"a":"\x41"}`, ""},
		{"single quotes", `{'a':1}`, ""},
		{"bare name", `{a:1}`, ""},
		{"trailing comma", `{"a":1,}`, ""},
		{"trailing comma in a list", `{"a":[1,]}`, ""},
		{"two objects", `{}{}`, ""},
		{"leading zero", `{"a":01}`, ""},
		{"leading plus", `{"a":+1}`, ""},
		{"bare point", `{"a":.5}`, ""},
		{"point at the end", `{"a":5.}`, ""},
		{"NaN", `{"a":NaN}`, ""},
		{"comment", `{"a":1}//`, ""},
		{"form body", `amount=1&x=2`, ""},
		{"bare value", `{"a":}`, ""},
		{"twice", `{"amount":1,"amount":2}`, "amount"},
		{"twice in disguise", `{"amount":1,"\u0061mount":2}`, "amount"},
		{"twice inside", `{"who":{"a":1,"a":1}}`, "who"},
		{"twice inside a list", `{"who":[{"a":1},{"a":1,"a":1}]}`, "who"},
		{"twice among many", `{` + many(300) + `"m7":1}`, "m7"},
		{"bad UTF-8", "{\"a\":\"\xff\"}", "a"},
		{"overlong", "{\"a\":\"\xc0\x80\"}", "a"},
		{"surrogate in UTF-8", "{\"a\":\"\xed\xa0\x80\"}", "a"},
		{"lone surrogate", `{"a":"\ud800"}`, "a"},
		{"reversed surrogates", `{"a":"\udc00\ud800"}`, "a"},
		{"bad UTF-8 in a name", "{\"\xff\":1}", "body"},
		{"bad UTF-8 inside", "{\"a\":[[\"\xff\"]]}", "a"},
		{"deep", `{"a":` + deep(20000) + `}`, "a"},
		{"deep lists", `{"a":` + strings.Repeat("[", 60000), "a"},
		{"deep at the top", deep(9), "x"},
	} {
		var faults problem.Fields
		_, err := Decode([]byte(c.body), &faults)
		if c.field == "" {
			if !problem.Is(err, problem.Malformed) {
				t.Errorf("%s: %v, want malformed", c.name, err)
			}
			continue
		}
		if faults.Err() == nil || !faults.Has(c.field) || problem.Is(err, problem.Malformed) {
			t.Errorf("%s: %v, faults %v, want a fault of %s", c.name, err, faults.Err(), c.field)
		}
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`"m` + string(json.Number(itoa(i))) + `":1,`)
	}
	return b.String()
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// The errors of the decoder are bounded in number and length.
func TestDecode_boundsItsErrors(t *testing.T) {
	var faults problem.Fields
	body := "{" + strings.TrimSuffix(many(400)+many(400), ",") + "}"
	if _, err := Decode([]byte(body), &faults); err != nil {
		t.Fatal(err)
	}
	if n := len(problem.From(faults.Err()).Fields); n == 0 || n > maxFaults {
		t.Errorf("%d fields in the answer", n)
	}
}

// A scan stops at an array with too many items.
func TestScan_endsAtTooLongArray(t *testing.T) {
	for items, want := range map[int]bool{maxItems: true, maxItems + 1: false} {
		var faults problem.Fields
		body := `{"contacts":[` + strings.Repeat("{},", items-1) + `{}` + map[bool]string{true: "]}", false: " and what is no JSON"}[want]
		if _, err := Decode([]byte(body), &faults); (err == nil) != want {
			t.Errorf("%d items: %v", items, err)
		}
		if faults.Has("contacts") == want {
			t.Errorf("%d items: %v", items, faults.Err())
		}
	}
}

// Items reads one item more than most, so that the caller can refuse a longer list.
func TestItems_stopsAtMost(t *testing.T) {
	for most, want := range map[int]int{2: 3, 3: 3, 5: 3} {
		if got := len(Items([]byte(`[1,"2",{}]`), most)); got != want {
			t.Errorf("of 3 items %d are read where %d are the most", got, most)
		}
	}
}

// FuzzDecode compares the decoder with encoding/json. Both accept the same texts with the same values. The only
// exception is bare control characters in strings, which the forms refuse later.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"a":"b","c":[1,-2.5e3,true,null,{"x":"\u00e9\ud83d\ude00"}]}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}",
		`{"a":1,"a":2}`, `{`, `[]`, "\xef\xbb\xbf{}", `{"a":01}`, "{\"a\":\"\x01\"}", strings.Repeat(`{"a":[`, 20)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var faults problem.Fields
		o, err := Decode(body, &faults)
		plain := bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
		valid := json.Valid(plain) && bytes.HasPrefix(bytes.TrimLeft(plain, " \t\r\n"), []byte("{"))
		switch {
		case faults.Err() != nil:
			return // it is ambiguous or too deep; further errors do not matter
		case valid && err != nil:
			t.Fatalf("refused: %v", err)
		case !valid && err == nil && !bytes.ContainsFunc(plain, func(r rune) bool { return r < 0x20 }):
			t.Fatalf("taken, but it is no JSON object")
		case err != nil && !problem.Is(err, problem.Malformed):
			t.Fatalf("an error of another kind: %v", err)
		case err != nil || !valid:
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(plain, &want); err != nil {
			t.Fatal(err)
		}
		if len(want) != len(o.members) {
			t.Fatalf("%d members, want %d", len(o.members), len(want))
		}
		for name, raw := range want {
			got := o.Find(name)
			if !bytes.Equal(bytes.TrimSpace(raw), got) {
				t.Fatalf("%q is %s, want %s", name, got, raw)
			}
			if got[0] != '"' {
				continue
			}
			var text string
			if err := json.Unmarshal(raw, &text); err != nil {
				t.Fatal(err)
			}
			if Unquote(got) != text {
				t.Fatalf("%q reads %q, want %q", name, Unquote(got), text)
			}
		}
	})
}
