package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/provider"
)

// The language of the scenarios. A file holds several, each under a line that begins with "== ". Lines
// that begin with # are remarks. The steps:
//
//	covers balance/200 keys/member      promises of docs/interface.md
//	tenant fund=5.00 collections=off    settings of the tenant that differ from the usual ones; once, first
//	set blocked=on                      changes a setting later, as an operator does
//	key ama scopes=read member=Ama      creates a key, $key.ama; daily=5.00 sets its daily limit
//	POST /payment-api/momopay           a request; headers (which may repeat) and a JSON body may follow
//	GET /account-api/balance x60        the same request sixty times; the last answer counts
//	=> 200                              its status; headers and JSON may follow
//	settle | advance 3s | align 1h      completes due work; advances the clock; advances to the next full hour
//	webhook {...}                       the next webhook, which must be signed
//	no webhook                          no unexpected webhook has arrived
//	wallet 89.90                        balance that the endpoint returns
//	provider $ext payout success        entry in the provider's own book under a reference
//	fault {...} | clear faults          POST and DELETE /sim/v1/faults
//	sim POST /transactions/$ext {...}   any other request to the simulator's own interface
//	prompt 0240000040 approve           answers the newest prompt on a handset
//	resolve $ext failed                 an operator sets the outcome: success or failed
//	pause hubtel | unpause hubtel       an operator pauses a provider and resumes it
//	transfer 10.00                      an operator moves money to another tenant's wallet
//	callback mtn {...}                  a callback from anybody who knows the address
//	refuse webhooks 2                   the receiver answers 500 to the next two webhooks
//	let total = $a                      names a text; let total = $a in capitals
//	sender, credits, handset, ...       about messages: scenario_sms_test.go
//
// In requests and expectations $name stands for a text that was set or stored. In an expectation "*" is any text
// that is not empty, "$name" stores a text under a new name, "~..." is a regular expression, and a
// member or item "..." means that more may follow. Numbers are compared as they are written.

type scenario struct {
	title  string
	line   int
	covers []string
	tenant map[string]string
	steps  []step
}

type step struct {
	line int
	do   func(*actor)
}

// reader reads the lines of a file.
type reader struct {
	lines []string
	at    int
}

// peek returns the next line that says something, without space around it.
func (r *reader) peek() (string, bool) {
	for ; r.at < len(r.lines); r.at++ {
		if line := strings.TrimSpace(r.lines[r.at]); line != "" && !strings.HasPrefix(line, "#") {
			return line, true
		}
	}
	return "", false
}

var (
	headerLine  = regexp.MustCompile(`^([A-Za-z][A-Za-z-]*):(?: (.*))?$`)
	requestLine = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE|HEAD) (/\S*)(?: x(\d+))?$`)
	variable    = regexp.MustCompile(`\$[a-z][a-z0-9_.]*[a-z0-9_]|\$[a-z]`)
)

func parseScenarios(text string) (all []scenario, err error) {
	r := &reader{lines: strings.Split(text, "\n")}
	for {
		line, ok := r.peek()
		if !ok {
			return all, nil
		}
		title, begins := strings.CutPrefix(line, "== ")
		r.at++
		if begins {
			all = append(all, scenario{title: title, line: r.at})
			continue
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("line %d: a scenario begins with ==", r.at)
		}
		if err := all[len(all)-1].parse(r, line); err != nil {
			return nil, fmt.Errorf("line %d: %w", r.at, err)
		}
	}
}

// parse reads one step that begins with line.
func (s *scenario) parse(r *reader, line string) error {
	word, rest, _ := strings.Cut(line, " ")
	number := r.at
	add := func(do func(*actor)) { s.steps = append(s.steps, step{number, do}) }
	if m := requestLine.FindStringSubmatch(line); m != nil {
		header, body := r.headers(), r.json("")
		times := 1
		if m[3] != "" {
			times, _ = strconv.Atoi(m[3])
		}
		add(func(a *actor) {
			for range times {
				a.ask(m[1], a.fill(m[2]), a.fill(body), a.fillAll(header))
			}
		})
		return nil
	}
	switch word {
	case "covers":
		s.covers = append(s.covers, strings.Fields(rest)...)
	case "tenant":
		s.tenant = settings(rest)
	case "=>":
		status, err := strconv.Atoi(rest)
		if err != nil {
			return err
		}
		header, body := r.headers(), r.json("")
		add(func(a *actor) { a.answered(status, header, body) })
	case "webhook":
		body := r.json(rest)
		add(func(a *actor) { a.webhook(body) })
	case "fault":
		body := r.json(rest)
		add(func(a *actor) { a.control("POST", "/faults", a.fill(body)) })
	case "sim":
		method, target, _ := strings.Cut(rest, " ")
		path, first, _ := strings.Cut(target, " ")
		body := r.json(first)
		add(func(a *actor) {
			a.control(method, a.fill(path), a.fill(body))
			a.stage.settle(a.t)
		})
	case "callback":
		rail, first, _ := strings.Cut(rest, " ")
		body := r.json(first)
		add(func(a *actor) { a.callback(rail, a.fill(body)) })
	default:
		do, err := simple(word, rest)
		if err != nil {
			return err
		}
		add(do)
	}
	return nil
}

// simple returns the steps of one line.
func simple(word, rest string) (func(*actor), error) {
	fields := strings.Fields(rest)
	switch {
	case word == "set":
		return func(a *actor) { a.set(settings(rest)) }, nil
	case word == "fund":
		return func(a *actor) { a.fund(rest) }, nil
	case word == "key" && len(fields) > 0:
		return func(a *actor) { a.newKey(fields[0], settings(strings.Join(fields[1:], " "))) }, nil
	case word == "settle":
		return func(a *actor) { a.stage.settle(a.t) }, nil
	case word == "advance" || word == "align":
		d, err := time.ParseDuration(rest)
		return func(a *actor) {
			if word == "align" {
				now := a.stage.clock.Now()
				a.stage.advance(a.t, now.Truncate(d).Add(d).Sub(now))
				return
			}
			a.stage.advance(a.t, d)
		}, err
	case word == "no" && rest == "webhook":
		return func(a *actor) {
			a.stage.settle(a.t)
			if n := len(a.stage.inbox.of(a.hook)); n != a.told {
				a.t.Errorf("line %d: %d webhooks came, %d were expected", a.line, n, a.told)
			}
		}, nil
	case word == "wallet":
		return func(a *actor) {
			a.ask("GET", "/account-api/balance", "", nil)
			a.answered(200, nil, `{"message":"*","data":{"wallet_balance":`+rest+`,"...":0}}`)
		}, nil
	case word == "provider" && len(fields) == 3:
		return func(a *actor) { a.provider(a.fill(fields[0]), fields[1], fields[2]) }, nil
	case word == "clear" && rest == "faults":
		return func(a *actor) { a.control("DELETE", "/faults", "") }, nil
	case word == "prompt" && len(fields) == 2:
		return func(a *actor) { a.prompt(fields[0], fields[1]) }, nil
	case word == "refuse" && len(fields) == 2:
		n, err := strconv.Atoi(fields[1])
		return func(a *actor) {
			a.stage.inbox.mu.Lock()
			defer a.stage.inbox.mu.Unlock()
			a.stage.inbox.refuse[a.hook] = n
		}, err
	case word == "resolve" && len(fields) == 2:
		return func(a *actor) { a.resolve(a.fill(fields[0]), fields[1] == "success") }, nil
	case (word == "pause" || word == "unpause") && len(fields) == 1:
		return func(a *actor) { a.pauses(rest, word == "pause") }, nil
	case word == "transfer" && len(fields) == 1:
		return func(a *actor) { a.transfer(rest) }, nil
	case word == "let" && len(fields) == 5 && strings.HasSuffix(rest, " in capitals"):
		return func(a *actor) { a.vars[fields[0]] = strings.ToUpper(a.fill(fields[2])) }, nil
	case word == "let" && len(fields) == 3:
		return func(a *actor) { a.vars[fields[0]] = a.fill(fields[2]) }, nil
	}
	if do, err := smsStep(word, rest); do != nil || err != nil {
		return do, err
	}
	return nil, fmt.Errorf("%q is no step", word+" "+rest)
}

func settings(text string) map[string]string {
	all := map[string]string{}
	for _, field := range strings.Fields(text) {
		name, value, _ := strings.Cut(field, "=")
		all[name] = value
	}
	return all
}

// headers reads the following lines of the form "Name: value".
func (r *reader) headers() (all []string) {
	for {
		line, ok := r.peek()
		m := headerLine.FindStringSubmatch(line)
		if !ok || m == nil {
			return all
		}
		all = append(all, m[1], m[2])
		r.at++
	}
}

// json reads an object that begins in first or on the next line. It may have several lines.
func (r *reader) json(first string) string {
	text := first
	if text == "" {
		line, ok := r.peek()
		if !ok || !strings.HasPrefix(line, "{") && !strings.HasPrefix(line, "[") {
			return ""
		}
		text = line
		r.at++
	}
	for !json.Valid([]byte(text)) && r.at < len(r.lines) && !strings.HasPrefix(r.lines[r.at], "== ") {
		text += "\n" + r.lines[r.at]
		r.at++
	}
	return text
}

// fill replaces names by their known values.
func (a *actor) fill(text string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		value, ok := a.vars[name[1:]]
		if !ok {
			a.t.Fatalf("line %d: nothing is known of %s", a.line, name)
		}
		return value
	})
}

func (a *actor) fillAll(texts []string) []string {
	all := slices.Clone(texts)
	for i := range all {
		all[i] = a.fill(all[i])
	}
	return all
}

// match compares a value with the expected value at a place.
func (a *actor) match(where string, want, got any) error {
	switch w := want.(type) {
	case string:
		g, ok := got.(string)
		if !ok {
			return fmt.Errorf("%s is %v, want the text %q", where, got, w)
		}
		return a.matchText(where, w, g)
	case []any:
		g, ok := got.([]any)
		more := len(w) > 0 && w[len(w)-1] == "..."
		if more {
			w = w[:len(w)-1]
		}
		if !ok || len(g) < len(w) || len(g) > len(w) && !more {
			return fmt.Errorf("%s has not the %d items expected", where, len(w))
		}
		for i := range w {
			if err := a.match(fmt.Sprintf("%s[%d]", where, i), w[i], g[i]); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is %v, want an object", where, got)
		}
		return a.matchObject(where, w, g)
	}
	if want != got {
		return fmt.Errorf("%s is %v, want %v", where, got, want)
	}
	return nil
}

func (a *actor) matchObject(where string, want, got map[string]any) error {
	_, more := want["..."]
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if name == "..." {
			continue
		}
		g, ok := got[name]
		if !ok {
			return fmt.Errorf("%s.%s is missing", where, name)
		}
		if err := a.match(where+"."+name, want[name], g); err != nil {
			return err
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok && !more {
			return fmt.Errorf("%s.%s was not expected", where, name)
		}
	}
	return nil
}

func (a *actor) matchText(where, want, got string) error {
	switch {
	case want == "*":
		if got == "" {
			return fmt.Errorf("%s is empty", where)
		}
		return nil
	case strings.HasPrefix(want, "~"):
		if !regexp.MustCompile(a.fill(want[1:])).MatchString(got) {
			return fmt.Errorf("%s is %q, want %s", where, got, want)
		}
		return nil
	case variable.FindString(want) == want && want != "":
		if _, known := a.vars[want[1:]]; !known && got != "" {
			a.vars[want[1:]] = got
			return nil
		}
	}
	if filled := a.fill(want); filled != got {
		return fmt.Errorf("%s is %q, want %q", where, got, filled)
	}
	return nil
}

// control sends a request to the simulator's own interface.
func (a *actor) control(method, path, body string) json.RawMessage {
	a.t.Helper()
	answer := controlCall(a.stage.sim.Handler(), method, path, body)
	if answer.Code >= 300 {
		a.t.Fatalf("line %d: the simulator answers %d: %s", a.line, answer.Code, answer.Body)
	}
	var envelope struct {
		Data json.RawMessage `json:"data"`
	}
	a.must(json.Unmarshal(answer.Body.Bytes(), &envelope))
	return envelope.Data
}

// provider checks that the providers' books have one entry of a kind and status under a reference. The status "nothing" means
// no entry.
func (a *actor) provider(reference, kind, status string) {
	a.t.Helper()
	a.stage.settle(a.t)
	entries := a.stage.sim.Entries(reference)
	if status == "nothing" {
		if len(entries) != 0 {
			a.t.Errorf("line %d: the provider has %+v", a.line, entries)
		}
		return
	}
	if len(entries) != 1 || string(entries[0].Kind) != kind || string(entries[0].Status) != status {
		a.t.Errorf("line %d: the provider has %+v, want one %s that is %s", a.line, entries, kind, status)
	}
}

func (a *actor) prompt(number, action string) {
	a.t.Helper()
	a.stage.settle(a.t)
	prompts := a.stage.sim.Prompts("233" + strings.TrimPrefix(number, "0"))
	if len(prompts) == 0 {
		a.t.Fatalf("line %d: no prompt is on %s", a.line, number)
	}
	if _, err := a.stage.sim.Answer("233"+strings.TrimPrefix(number, "0"), prompts[len(prompts)-1].ID, action); err != nil {
		a.t.Fatalf("line %d: %v", a.line, err)
	}
	a.stage.settle(a.t)
}

// callback sends a callback as anybody can who knows the address of a rail.
func (a *actor) callback(name, body string) {
	a.t.Helper()
	for _, rail := range a.stage.app.rails {
		if rail.Name != name || rail.Mode != "test" {
			continue
		}
		answer := plainCall(a.stage.app, "POST", provider.CallbackPath(a.stage.app.cfg.Secret, rail), body)
		if answer.Code >= 500 {
			a.t.Errorf("line %d: the callback is answered %d: %s", a.line, answer.Code, answer.Body)
		}
		a.stage.settle(a.t)
		return
	}
	a.t.Fatalf("line %d: no rail is called %s", a.line, name)
}

func TestScenarioLanguage_parses(t *testing.T) {
	all, err := parseScenarios(strings.Join([]string{
		"# remark", "== One", "covers 4.8/404 3/x", "tenant fund=1.00", "POST /a/$b x2", "Accept: x", "{", ` "a": 1`, "}", "=> 200", `{"x":"*"}`,
		"== Two", "advance 3s", `webhook {"a":`, `1}`, "no webhook",
	}, "\n"))
	if err != nil || len(all) != 2 || len(all[0].steps) != 2 || len(all[1].steps) != 3 || len(all[0].covers) != 2 || all[0].tenant["fund"] != "1.00" {
		t.Fatalf("read %+v, %v", all, err)
	}
	for _, bad := range []string{"GET /x", "== x\nnonsense", "== x\n=> ok", "== x\nadvance soon"} {
		if _, err := parseScenarios(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	a := &actor{t: t, vars: map[string]string{"ref": "r1"}}
	for _, c := range []struct {
		want, got string
		ok        bool
	}{
		{`{"a":"$ref","b":1.50}`, `{"a":"r1","b":1.50}`, true}, {`{"a":"$ref"}`, `{"a":"r2"}`, false}, {`{"b":1.5}`, `{"b":1.50}`, false},
		{`{"a":"*"}`, `{"a":""}`, false}, {`{"a":"*"}`, `{"a":"x","b":1}`, false}, {`{"a":"*","...":0}`, `{"a":"x","b":1}`, true},
		{`{"a":"$new","b":"$new"}`, `{"a":"x","b":"x"}`, true}, {`{"a":"$other","b":"$other"}`, `{"a":"x","b":"y"}`, false},
		{`[1,2]`, `[1]`, false}, {`[1]`, `[1,2]`, false}, {`[1,"..."]`, `[1,2]`, true}, {`{"a":null}`, `{"a":null}`, true}, {`{"a":null}`, `{}`, false}, {`{"a":"~^[0-9]+$"}`, `{"a":"12"}`, true},
		{`{"a":"~^[0-9]+$"}`, `{"a":"1x"}`, false}, {`{"a":true}`, `{"a":"true"}`, false},
	} {
		want, _ := decodeJSON([]byte(c.want))
		got, _ := decodeJSON([]byte(c.got))
		if err := a.match("", want, got); (err == nil) != c.ok {
			t.Errorf("%s against %s: %v", c.got, c.want, err)
		}
	}
}

// controlCall sends a request directly to a handler.
func controlCall(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(method, simControl+path, strings.NewReader(body)))
	return answer
}

// plainCall sends a request to this server without a key.
func plainCall(n *App, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr, r.Host = "127.0.0.1:4000", "localhost"
	answer := httptest.NewRecorder()
	n.handler().ServeHTTP(answer, r)
	return answer
}
