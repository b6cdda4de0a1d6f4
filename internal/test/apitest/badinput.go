package apitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Example is a valid request of an operation. Values of the body are JSON texts.
type Example struct {
	Path  map[string]string
	Query map[string]string
	Body  map[string]string
}

// Case is one bad request with the required answer.
type Case struct {
	Name      string
	Operation string
	Method    string
	URL       string // path and query, escaped as in the request
	Header    map[string]string
	Body      []byte
	Status    []int  // any of these
	Field     string // field that the answer must name; empty if the error concerns no field
	Code      string // code of the answer; empty: any code
}

// the statuses of a bad field.
var unprocessable = []int{http.StatusUnprocessableEntity}

// BadInput makes every case for every operation; example gives a good request
// of each, with ids that exist.
func (d *Document) BadInput(example func(operation string) Example) []Case {
	var all []Case
	taken := map[string][]string{} // methods by path
	for _, o := range d.Operations {
		taken[o.Path] = append(taken[o.Path], o.Method)
	}
	for _, o := range d.Operations {
		g := generator{o: o, good: example(o.ID), taken: taken[o.Path]}
		for _, f := range o.Fields {
			g.field(f)
		}
		g.methods()
		g.paths()
		if o.op.RequestBody != nil {
			g.bodies()
		}
		all = append(all, g.cases...)
	}
	return all
}

type generator struct {
	o     Operation
	good  Example
	taken []string // methods that the path has
	cases []Case
}

func (g *generator) add(c Case) {
	c.Name, c.Operation = g.o.ID+": "+c.Name, g.o.ID
	if c.Method == "" {
		c.Method = g.o.Method
	}
	if c.URL == "" {
		c.URL = g.url("", "")
	}
	if c.Body == nil && c.Method == g.o.Method && g.o.op.RequestBody != nil {
		c.Body = g.body("", "")
	}
	g.cases = append(g.cases, c)
}

// url is the address of a good request with one parameter replaced by a text
// that is escaped already.
func (g *generator) url(name, escaped string) string {
	path := g.o.Path
	for p, v := range g.good.Path {
		v = url.PathEscape(v)
		if p == name {
			v = escaped
		}
		path = strings.ReplaceAll(path, "{"+p+"}", v)
	}
	var query []string
	for _, p := range slices.Sorted(maps.Keys(g.good.Query)) {
		if p != name {
			query = append(query, p+"="+url.QueryEscape(g.good.Query[p]))
		}
	}
	if name != "" && !strings.Contains(g.o.Path, "{"+name+"}") && escaped != absent {
		query = append(query, name+"="+escaped)
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + strings.Join(query, "&")
}

// absent leaves a field out.
const absent = "\x00absent"

// body is a good body with one member's JSON text replaced.
func (g *generator) body(name, value string) []byte {
	var members []string
	for _, n := range slices.Sorted(maps.Keys(g.good.Body)) {
		if n != name {
			members = append(members, quote(n)+":"+g.good.Body[n])
		}
	}
	if name != "" && value != absent {
		members = append(members, quote(name)+":"+value)
	}
	return []byte("{" + strings.Join(members, ",") + "}")
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (g *generator) field(f Field) {
	switch f.In {
	case "body":
		g.bodyField(f)
	case "query":
		g.queryField(f)
	case "path":
		g.pathField(f)
	case "header":
		g.headerField(f)
	}
}

// bodyField adds a case for each invalid value of a member of the body.
func (g *generator) bodyField(f Field) {
	bad := func(what, value string) {
		g.add(Case{Name: f.Name + " " + what, Body: g.body(f.Name, value), Status: unprocessable, Field: f.Name})
	}
	if f.Kind == "wanted" { // unusable values are ignored, but unreadable values are errors
		bad("with bad UTF-8", "\"24000\xff0000\"")
		bad("nested deeply", strings.Repeat("[", 500)+strings.Repeat("]", 500))
		bad("twice", `"order-20260001",`+quote(f.Name)+`:"order-20260001"`)
		return
	}
	if f.Required {
		bad("missing", absent)
		bad("null", "null")
		bad("empty", `""`)
		bad("blank", `"   "`)
	}
	bad("a boolean", "true")
	bad("an object", `{"a":1}`)
	if f.Kind != "ids" {
		bad("a list", `["x"]`)
	}
	if f.Kind != "ids" && f.Kind != "numbers" {
		bad("an empty list", `[]`)
	}
	if f.Kind != "amount" {
		bad("a number", "1234567890123")
	}
	bad("with an escaped NUL", `"240000\u0000000"`)
	bad("with a bare NUL", "\"240000\x00000\"")
	bad("with a control character", `"240000\u0007000"`)
	bad("with a bare control character", "\"240000\x01000\"")
	if f.Kind != "message" {
		bad("with a new line", `"24000\n0000"`)
	}
	bad("with DEL", `"24000\u007f0000"`)
	bad("with bad UTF-8", "\"24000\xff0000\"")
	bad("with overlong UTF-8", "\"24000\xc0\xaf0000\"")
	bad("with half a surrogate pair", `"24000\ud8000000"`)
	bad("nested deeply", strings.Repeat("[", 500)+strings.Repeat("]", 500))
	bad("nested without end", strings.Repeat(`{"a":`, 500)+"1"+strings.Repeat("}", 500))
	if value, ok := g.good.Body[f.Name]; ok {
		bad("twice", value+","+quote(f.Name)+":"+value)
		bad("twice, once null", "null,"+quote(f.Name)+":"+value)
		bad("twice in disguise", value+`,"\u00`+fmt.Sprintf("%02x", f.Name[0])+f.Name[1:]+`":`+value)
	}
	for what, value := range texts(f) {
		body := Case{Name: f.Name + " " + what, Body: g.body(f.Name, value), Status: unprocessable, Field: f.Name}
		if f.Kind == "lookup" { // unknown ids are not found in any field
			body.Status = []int{http.StatusNotFound, http.StatusUnprocessableEntity}
			body.Field = ""
		}
		if f.Kind == "payees" { // the name of the field contains the row and its member
			body.Field = ""
		}
		if f.Kind == "request" { // a request that is not open always gets this code
			body.Status = []int{http.StatusUnauthorized, http.StatusUnprocessableEntity}
			body.Field = ""
		}
		g.add(body)
	}
}

// texts gives bad values of a kind of field as JSON texts.
func texts(f Field) map[string]string {
	q := map[string]string{}
	strs := func(values ...string) {
		for _, v := range values {
			q["such as "+shorten(v)] = quote(v)
		}
	}
	raws := func(values ...string) {
		for _, v := range values {
			q["the number "+shorten(v)] = v
		}
	}
	lists := func(pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			q["that lists "+pairs[i]] = pairs[i+1]
		}
	}
	switch f.Kind {
	case "amount":
		raws("0", "0.00", "-1", "-0.5", "-1e1", "1e6", "1E400", "1e-400", "1e-2", "1.005e0", "10005e-3", "0.001", "1.005", "10.999", "99999999999999999999", "1000000000000", strings.Repeat("9", 400))
		strs("0", "-1", "+5", "1e1", "1E+1", "150E-1", "1.005", "ten", "1,000", "1.2.3", ".5", "5.", "0x10", "NaN", "Infinity", "١٢", "10 GHS", "GHS 10", "--", strings.Repeat("9", 400))
		if f.Maximum != "" {
			raws(above(f.Maximum))
			strs(above(f.Maximum))
		}
		if f.Minimum != "" {
			raws(below(f.Minimum))
			strs(below(f.Minimum))
		}
	case "phone":
		strs("12345", "024", "02400000000", "0240 00000a", "+14155550100", "0300000000", "233300000000", "abcdefghij", "😀", "0240000000;", "0x24000000", "+233+240000000", "0240000000.0", "'0240000000", "2.3324E+11", "024/0000000", strings.Repeat("0", 200))
	case "network":
		strs("GLO", "MTNN", "BANK", "WALLET", "M T N", "1", "мтн", strings.Repeat("MTN", 2000))
	case "reference":
		strs("12345678901", strings.Repeat("x", 37), "1234567890 12", "1234567890/12", "1234567890é12", "1234567890'--", "1234567890%0012", strings.Repeat("x", 5000))
	case "url":
		strs("http://shop.example/hook", "ftp://shop.example/hook", "javascript:alert(1)", "shop.example/hook", "//shop.example/hook", "https://", "https:///hook",
			"https://user:pass@shop.example/hook", "https://user@shop.example/hook", "https://10.0.0.1/hook", "https://192.168.1.1/hook", "https://172.16.5.5/hook",
			"https://169.254.169.254/latest", "https://[fd00::1]/hook", "https://[fe80::1]/hook", "https://0.0.0.0/hook", "https://100.64.0.1/hook", "https://[::ffff:10.0.0.1]/hook",
			"https://shop .example/hook", "https://shop.example/a b", "https://bü_cher.example/", "https://１０.0.0.1/hook", "https://shop.example/\u0085x", "https://shop.example:0/hook", "https://shop.example:99999/hook", "https://"+strings.Repeat("x", 5000)+".example/")
		if f.MaxLen > 0 {
			const start = "https://shop.example/"
			strs(start + strings.Repeat("x", int(f.MaxLen)+1-len(start)))
		}
	case "email":
		strs(strings.Repeat("x", int(f.MaxLen)+1))
	case "choice":
		strs("other", strings.Repeat("x", 5000))
	case "account":
		strs("123456", "12345678901234567", "1234567;", "12345é7890", "../../etc", strings.Repeat("1", 5000))
	case "number":
		raws("0", "-1", "1.5", "15e-1", "99999999999999999999", "1000000000000")
		strs("0", "-1", "1.5", "1e1", "abc", "+1", "0x1", "²", "ten")
	case "message":
		strs(strings.Repeat("x", 50_001), strings.Repeat("x", 255*153+1), strings.Repeat("₵", 255*67+1))
	case "otp":
		strs("Your code", "Your code is <otp_code>", "Your code is <%OTP_CODE%>")
	case "sender":
		strs("Twelve chars", "123456", "Adom_Stores", "Adom's", "Adom😀", "MTN", "mtn", "M7N", "MoMo Pay", "TELECEL", "Voda-fone", "Makola", strings.Repeat("x", 5000))
	case "code":
		strs("12345678901", "123456 78901", "- -", "abcd", "12_34", "12.4", "１２３４", strings.Repeat("1", 5000))
	case "numbers":
		lists("a number", "[240000001]", "null", "[null]", "an object", "[{}]", "a list", `[["0240000001"]]`, "NUL", `["0240000001","02400\u0000002"]`,
			"bad UTF-8", "[\"0240000001\",\"\xff\"]", "a new line", `["0240000001","024\n0000"]`, "no number at all", `["12345","abc","+14155550100"]`)
		strs("0240000001", "0240000001,0240000002")
	case "ids":
		lists("a number", "[7]", "null", "[null]", "an object", "[{}]", "a list", `[["x"]]`, "NUL", `["x\u0000"]`, "bad UTF-8", "[\"\xff\"]")
		strs("unknown")
	case "objects":
		lists("a number", "[7]", "null", "[null]", "a string", `["0240000001"]`, "a list", "[[]]", "no number", `[{"first_name":"Ama"}]`, "a bad number", `[{"phone_number":"12345"}]`,
			"a number as a number", `[{"phone_number":240000001}]`, "NUL", `[{"phone_number":"0240000001","first_name":"A\u0000"}]`,
			"a member twice", `[{"phone_number":"0240000001","phone_number":"0240000002"}]`, "bad UTF-8", "[{\"phone_number\":\"0240000001\",\"email\":\"\xff\"}]")
	case "payees":
		payee := func(member, value string) string {
			members := map[string]string{"account_number": `"0240000001"`, "channel": `"MTN"`, "amount": `"5.00"`}
			members[member] = value
			return `[{"account_number":` + members["account_number"] + `,"channel":` + members["channel"] + `,"amount":` + members["amount"] + `}]`
		}
		lists("a number", "[7]", "null", "[null]", "a string", `["0240000001"]`, "a list", "[[]]", "an empty object", "[{}]", "a bad number", payee("account_number", `"12345"`),
			"a number as a number", payee("account_number", "240000001"), "a number of a spreadsheet", payee("account_number", `"0240000001.0"`), "no network", payee("channel", "null"),
			"an unknown network", payee("channel", `"GLO"`), "no amount", payee("amount", "null"), "an exponent in a text", payee("amount", `"1e1"`), "half a pesewa", payee("amount", "1.005"),
			"an amount with a comma", payee("amount", `"1,200.00"`), "too little", payee("amount", "0.49"), "less than nothing", payee("amount", "-1"), "NUL", payee("channel", `"MTN","note":"A\u0000"`),
			"a short reference", payee("amount", `5,"client_reference":"short"`), "a reference with a space", payee("amount", `5,"client_reference":"salary 2026 11"`),
			"a member twice", payee("amount", `5,"amount":6`))
	case "cursor":
		strs("unknown", ":", "x:", ":x", "-1:x", "yesterday:x", strings.Repeat("1", 5000))
	case "id", "lookup", "request":
		strs("unknown", "00000000-0000-4000-8000-000000000001", "'; DROP TABLE payments; --", "../..", "é", strings.Repeat("x", 5000))
	}
	return q
}

func shorten(s string) string {
	if len(s) > 40 {
		return fmt.Sprintf("%.20s... (%d bytes)", s, len(s))
	}
	return s
}

// above and below give an amount just outside a limit with two decimals.
func above(limit string) string { return nudge(limit, 1) }
func below(limit string) string { return nudge(limit, -1) }

func nudge(limit string, by int64) string {
	var whole, cents int64
	if _, err := fmt.Sscanf(limit, "%d.%d", &whole, &cents); err != nil {
		panic(err)
	}
	n := whole*100 + cents + by
	return fmt.Sprintf("%d.%02d", n/100, n%100)
}

// maxAddress is the maximum length of a text in a query string. The server refuses a longer address before it
// reaches the interface.
const maxAddress = 16 << 10

// queryField makes the cases for a parameter of the query string.
func (g *generator) queryField(f Field) {
	bad := func(what, escaped string) {
		g.add(Case{Name: f.Name + " " + what, URL: g.url(f.Name, escaped), Status: unprocessable, Field: f.Name})
	}
	if f.Required {
		bad("missing", absent)
		bad("empty", "")
		bad("blank", "%20")
	}
	good := "x"
	if v, ok := g.good.Query[f.Name]; ok {
		good = url.QueryEscape(v)
	}
	if f.Kind != "numbers" && f.Kind != "ids" {
		bad("twice", good+"&"+f.Name+"="+good)
	}
	bad("with NUL", "2%000")
	bad("with a control character", "2%070")
	if f.Kind != "message" {
		bad("with a new line", "2%0a0")
	}
	bad("with bad UTF-8", "2%ff0")
	if f.Kind == "numbers" {
		bad("such as no number", "12345")
		bad("such as no numbers", "abc,12345")
	}
	if f.Kind == "numbers" || f.Kind == "ids" { // lists in a body have no cases here
		return
	}
	for what, value := range texts(f) {
		var text string
		if err := json.Unmarshal([]byte(value), &text); err != nil {
			text = value // a bare number
		}
		if f.Kind == "lookup" { // a filter that finds nothing
			continue
		}
		if escaped := url.QueryEscape(text); len(escaped) <= maxAddress {
			bad(what, escaped)
		}
	}
	switch f.Kind {
	case "number":
		if f.Maximum != "" {
			bad("above its maximum", f.Maximum+"1")
		}
	case "day":
		for _, v := range []string{"2026-02-30", "2026-13-01", "2026-1-1", "20260101", "yesterday", "2026-01-01T00:00:00Z", "0000-00-00", "99999-01-01", "01-01-2026"} {
			bad("such as "+v, v)
		}
	}
}

// pathField makes the cases for a parameter of the path.
func (g *generator) pathField(f Field) {
	bad := func(what, escaped string) {
		g.add(Case{Name: f.Name + " " + what, URL: g.url(f.Name, escaped), Status: []int{http.StatusNotFound, http.StatusUnprocessableEntity}})
	}
	for _, v := range []string{"%00", "a%00b", "%ff", "%0a", "%20", "%2e%2e", "..%2f..", "a%2fb", "%F0%9F%98%80", "'%20OR%201=1", strings.Repeat("x", 3000), "unknown-unknown", "%25", "%7b%7d"} {
		bad("such as "+shorten(v), v)
	}
	status := []int{http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusMethodNotAllowed} // the path without its last part may be another endpoint
	g.add(Case{Name: f.Name + " empty", URL: g.url(f.Name, ""), Status: status})
	if f.Kind == "phone" {
		for _, v := range []string{"12345", "02400000000", "abcdefghij", "+14155550100"} {
			g.add(Case{Name: f.Name + " such as " + v, URL: g.url(f.Name, v), Status: unprocessable, Field: f.Name})
		}
	}
}

// headerField makes the cases for a header.
func (g *generator) headerField(f Field) {
	for what, value := range map[string]string{"too long": strings.Repeat("k", int(f.MaxLen)+1), "with a space": "a b", "with Latin-1": "caf\xe9"} {
		g.add(Case{Name: f.Name + " " + what, Header: map[string]string{f.Name: value}, Status: unprocessable, Field: f.Name})
	}
}

// methods makes every method that the path does not take.
func (g *generator) methods() {
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "TRACE", "BREW"} {
		if slices.Contains(g.taken, m) {
			continue
		}
		g.add(Case{Name: "method " + m, Method: m, Body: []byte("{}"), Status: []int{http.StatusMethodNotAllowed}, Code: "method_not_allowed"})
	}
}

// paths makes addresses that are almost right. One slash at the end is right.
func (g *generator) paths() {
	good := strings.SplitN(g.url("", ""), "?", 2)[0]
	unknown := []int{http.StatusNotFound}
	for what, path := range map[string]string{
		"two slashes at the end": good + "//", "a slash doubled": strings.Replace(good, "/v1/", "/v1//", 1),
		"a dot segment": strings.Replace(good, "/v1/", "/v1/./", 1), "two dots": strings.Replace(good, "/v1/", "/v1/x/../", 1),
		"upper case": strings.Replace(good, "-api", "-API", 1), "another version": strings.Replace(good, "/v1/", "/v2/", 1),
		"one segment more": good + "/x/y",
	} {
		g.add(Case{Name: "path with " + what, URL: path, Status: unknown, Code: "endpoint_not_found"})
	}
}

// bodies makes bodies that are no JSON object, or too large.
func (g *generator) bodies() {
	broken := []int{http.StatusBadRequest}
	good := string(g.body("", ""))
	for what, body := range map[string]string{
		"cut": good[:len(good)-1], "cut in the middle": good[:len(good)/2], "twice": good + good, "with a comma too many": good[:len(good)-1] + ",}",
		"a list": "[" + good + "]", "a string": quote(good), "null": "null", "a number": "7", "a form": "amount=1&network=MTN", "of XML": "<amount>1</amount>",
		"in single quotes": strings.ReplaceAll(good, `"`, "'"), "of one brace": "{", "of NULs": "\x00\x00\x00", "of bad UTF-8": "\xff\xfe{\x00}\x00",
		"with a comment": good + "// x", "with NaN": good[:len(good)-1] + `,"x":NaN}`, "with a leading zero": good[:len(good)-1] + `,"x":01}`,
		"that is empty": " ", "with a trailing word": good + " true",
	} {
		if body == good { // a body without members is unchanged
			continue
		}
		g.add(Case{Name: "body " + what, Body: []byte(body), Status: broken, Code: "malformed_json"})
	}
	limit := 64 << 10
	if n, ok := g.o.op.Extensions["x-body-limit"].(float64); ok {
		limit = int(n)
	}
	large := good[:len(good)-1] + `,"padding":"` + strings.Repeat("x", limit) + `"}`
	g.add(Case{Name: "body over the limit", Body: []byte(large), Status: []int{http.StatusRequestEntityTooLarge}, Code: "body_too_large"})
}

// trapped are terms that a client reads as "no such service" and then reports success. Messages must not contain
// them.
var trapped = []string{"route", "auth", "could not be found"}

// Refusal is the body of every error.
type Refusal struct {
	Message   string              `json:"message"`
	Code      string              `json:"code"`
	Data      json.RawMessage     `json:"data"`
	Errors    map[string][]string `json:"errors"`
	RequestID string              `json:"request_id"`
	DocURL    string              `json:"doc_url"`
}

// CheckRefusal returns the differences between the answer to a case and the required one.
func (c Case) CheckRefusal(status int, header http.Header, body []byte) error {
	var r Refusal
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("the answer is no error body: %w: %.200s", err, body)
	}
	switch {
	case !slices.Contains(c.Status, status):
		return fmt.Errorf("the status is %d, want one of %v: %.300s", status, c.Status, body)
	case r.Message == "" || r.Code == "" || r.RequestID == "" || r.RequestID != header.Get("X-Request-Id"):
		return fmt.Errorf("message, code or request_id is missing: %.300s", body)
	case header.Get("Content-Type") != "application/json" || header.Get("Cache-Control") != "no-store":
		return fmt.Errorf("the headers are %v", header)
	case string(r.Data) == "null":
		return fmt.Errorf("data is null, where there is none it is left out: %.300s", body)
	case c.Code != "" && r.Code != c.Code:
		return fmt.Errorf("the code is %q, want %q", r.Code, c.Code)
	case status == http.StatusUnprocessableEntity && c.Field != "" && (len(r.Errors[c.Field]) == 0 || !strings.Contains(r.Message, c.Field)):
		return fmt.Errorf("%s is not named: %.300s", c.Field, body)
	case status == http.StatusMethodNotAllowed && header.Get("Allow") == "":
		return fmt.Errorf("the header Allow is missing")
	}
	for _, word := range trapped {
		if strings.Contains(strings.ToLower(r.Message), word) {
			return fmt.Errorf("the message holds the word %q: %s", word, r.Message)
		}
	}
	return nil
}
