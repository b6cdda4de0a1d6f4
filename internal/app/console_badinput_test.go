package app

import (
	"encoding/csv"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/matrix"
)

// This suite makes bad requests from the console's own table of routes, so it also tests routes that are added later. decent checks
// each answer.

// hostile is one text with markup, a formula, invisible characters and a reversed direction. Pages must show it as text.
const hostile = "=1+1|\"'><img src=x id=planted onerror=alert(1)></textarea></title></script><script id=planted>\u200b\u00ad\u0085\ufeff\u202e"

// unseen are the characters of hostile that a reader does not see.
const unseen = "\u200b\u00ad\u0085\ufeff\u202e"

// badValues are the bad values of a parameter. The value of a megabyte is only for forms, because the server reads no URL of
// that length.
func badValues(method string) map[string]string {
	values := map[string]string{
		"empty": "", "space": " ", "word": "x", "zero": "0", "negative": "-1", "huge number": "9223372036854775807", "too huge a number": "99999999999999999999999", "fraction": "1.5",
		"exponent": "1e9", "digits of another script": "٣", "NUL": "\x00", "NUL inside": "a\x00b", "invalid UTF-8": "a\xff\xfeb", "half a rune": "\xe2\x82", "line": "a\r\nSet-Cookie: x=y",
		"hostile": hostile, "script": "javascript:alert(1)", "other host": "//evil.example/x", "backslash": `/\evil.example`, "up": "../../etc/passwd", "quote": "' OR '1'='1", "like": "%_%",
		"no day": "2026-02-30", "day zero": "0000-00-00", "far day": "9999-12-31", "too far a day": "10000-01-01", "id of nothing": "00000000-0000-7000-8000-000000000000", "long": strings.Repeat("9", 20_000),
	}
	if method == http.MethodPost {
		values["megabyte"] = strings.Repeat("9", 1<<20)
	}
	return values
}

var wildcard = regexp.MustCompile(`\{([a-z]+)\}`)

// request is a request that a browser could send.
type request struct {
	method, path string // the path as it is sent
	query, form  url.Values
	headers      []string
}

func (r request) String() string {
	text := r.method + " " + r.path
	for _, v := range []url.Values{r.query, r.form} {
		if len(v) > 0 {
			text += " " + v.Encode()
		}
	}
	return text[:min(len(text), 200)]
}

// says reports whether the request contains a text.
func (r request) says(text string) bool {
	path, _ := url.PathUnescape(r.path)
	all := path
	for _, v := range []url.Values{r.query, r.form} {
		for values := range maps.Values(v) {
			all += " " + strings.Join(values, " ")
		}
	}
	return strings.Contains(all, text)
}

// send makes a request.
func (b *browsed) send(r request) page {
	b.t.Helper()
	path := r.path
	if len(r.query) > 0 {
		path += "?" + r.query.Encode()
	}
	return b.do(r.method, path, r.form, r.headers...)
}

// asked returns a valid request of a route, with a value for every parameter of its form.
func asked(route console.Route, ids map[string]string) request {
	path := strings.ReplaceAll(route.Path, "{$}", "")
	path = wildcard.ReplaceAllStringFunc(path, func(w string) string { return url.PathEscape(ids[w[1:len(w)-1]]) })
	return request{method: route.Method, path: path}
}

// with sets a parameter of the request.
func (r request) with(name string, values ...string) request {
	into := &r.query
	if r.method == http.MethodPost {
		into = &r.form
	}
	*into = maps.Clone(*into)
	if *into == nil {
		*into = url.Values{}
	}
	(*into)[name] = values
	return r
}

// exact has the attributes that repeat an input unchanged: values that a form sends again or a button copies.
var exact = regexp.MustCompile(`(?:value|data-copy)="[^"]*"`)

// decent fails the test unless a person can use the answer. The answer is never a 500 and has no injected markup. It is a page
// with text, a file, a redirect on this server, or empty for a part of a page.
func (b *browsed) decent(r request, p page) {
	b.t.Helper()
	bad := func(format string, args ...any) {
		b.t.Helper()
		b.t.Errorf("%v answers %d: %s: %s", r, p.StatusCode, fmt.Sprintf(format, args...), p.text[:min(len(p.text), 600)])
	}
	kind, to := p.Header.Get("Content-Type"), p.Header.Get("Location")
	if !strings.HasPrefix(kind, "text/csv") && (strings.Contains(p.text, "<img src=x") || strings.Contains(p.text, "<script id")) {
		bad("it contains planted markup as it is")
	}
	// The compressed bytes of an XLSX file may look like any character.
	zipped := kind == sheet.XLSX.MediaType()
	if shown := exact.ReplaceAllString(strings.TrimPrefix(p.text, "\ufeff"), ""); !zipped && strings.ContainsAny(shown, unseen) { // a CSV file begins with a byte order mark
		bad("it contains characters that hide or turn text around: %+q", shown[strings.IndexAny(shown, unseen):][:8])
	}
	for name := range p.Header {
		if strings.HasPrefix(name, "Set-Cookie") && strings.Contains(strings.Join(p.Header.Values(name), ""), "x=y") {
			bad("a header was planted")
		}
	}
	switch {
	case p.StatusCode >= 500:
		bad("the server failed")
	case p.StatusCode >= 300 && p.StatusCode < 400:
		if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.Contains(to, `\`) {
			bad("it leads to %q", to)
		}
	case p.StatusCode == http.StatusNoContent, r.query.Has("live"), r.query.Has("newer"), r.method == http.MethodHead:
	case strings.HasPrefix(kind, "text/csv"):
		b.safeFile(r, p)
	case strings.HasSuffix(kind, "spreadsheetml.sheet"):
		p.workbook(b.t)
	case strings.HasPrefix(kind, "text/plain") && strings.HasPrefix(r.path, "/sim/hooks/") && p.StatusCode < 300: // the caller was a program
	case !strings.HasPrefix(kind, "text/html"):
		bad("it is %q", kind)
	case !strings.Contains(p.text, "<h1>") || !strings.Contains(p.text, "</html>"):
		bad("it is no page")
	case p.Header.Get("X-Request-Id") == "" || !strings.Contains(p.Header.Get("Content-Security-Policy"), "default-src 'none'"):
		bad("its headers are %v", p.Header)
	}
}

// safeFile fails the test if a spreadsheet program would read a cell as a formula.
func (b *browsed) safeFile(r request, p page) {
	b.t.Helper()
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(p.text, "\ufeff"))).ReadAll()
	if err != nil {
		b.t.Errorf("%v: %v", r, err)
	}
	for _, cell := range slices.Concat(rows...) {
		if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r|%") {
			b.t.Errorf("%v: a formula %q", r, cell)
		}
	}
}

// crowd is a server with one tenant that has data of every kind, and one tenant without data.
func crowd(t *testing.T, engine db.Engine) *browsed {
	t.Helper()
	b := browse(t, func(c *config.Server) {
		if engine == db.Postgres {
			c.Database = dbtest.URL(t)
		}
	})
	b.furnish()
	b.another()
	return b
}

// eachCrowd runs a test on both engines.
func eachCrowd(t *testing.T, fn func(t *testing.T, b *browsed)) {
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			fn(t, crowd(t, e))
		})
	}
}

// keep signs in again and repeats the request if another request has ended the session.
func (b *browsed) keep(route console.Route, r request, again func()) page {
	b.t.Helper()
	p := b.send(r)
	if p.StatusCode == http.StatusUnauthorized && route.Site != 0 {
		again()
		p = b.send(r)
	}
	return p
}

// good returns one set of ids for the parameters of paths: a payment with a webhook.
func (b *browsed) good() map[string]string {
	b.t.Helper()
	id := b.the("handset-0000000001")
	_, rest, _ := strings.Cut(b.get("/ops/payments/"+id).text, "/webhooks/")
	event, _, found := strings.Cut(rest, "/")
	if !found {
		b.t.Fatal("the payment has no webhook")
	}
	keys, err := b.access.Keys(b.t.Context(), demoTenant)
	people, peopleErr := b.identity.Members(b.t.Context(), demoTenant, "", 1)
	if err != nil || peopleErr != nil || len(keys) == 0 || len(people) == 0 {
		b.t.Fatal(keys, people, err, peopleErr)
	}
	return map[string]string{"tenant": demoTenant, "id": id, "event": event, "line": "1", "msisdn": "0240000040", "name": demoTenant, "key": keys[0].ID, "person": people[0].ID}
}

// Every route is called with every bad parameter of its path and form: absent, repeated, huge, of the wrong type, or not UTF-8.
// In the gate each parameter has only some of these values.
func TestConsole_badInput(t *testing.T) {
	t.Parallel()
	eachCrowd(t, func(t *testing.T, b *browsed) {
		again := func() { b.forget(); b.signIn(b.nextLink()) }
		ids := b.good()
		const each = 3 // values of a parameter in the gate: with 170 parameters every value is used many times
		values := map[string]*matrix.Turns[string, string]{}
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			values[method] = matrix.TurnsOf(badValues(method))
		}
		for _, route := range consoleRoutes() {
			try := func(r request) { b.decent(r, b.keep(route, r, again)) }
			base := asked(route, ids)
			try(base)
			for _, w := range wildcard.FindAllStringSubmatch(route.Path, -1) {
				for _, value := range values[route.Method].Some(each) {
					if len(value) > 20_000 || value == "" { // such an address is invalid or belongs to another route
						continue
					}
					spoiled := maps.Clone(ids)
					spoiled[w[1]] = value
					try(asked(route, spoiled))
				}
			}
			for _, in := range route.Inputs {
				for _, value := range values[route.Method].Some(each) {
					try(base.with(in.Name, value))
					try(base.with(in.Name, value, value))
				}
			}
		}
	})
}

// A method that a route does not have gets no page. Neither does a body that is not a form.
func TestConsole_wrongMethodsAndForms(t *testing.T) {
	t.Parallel()
	eachCrowd(t, func(t *testing.T, b *browsed) {
		ids := b.good()
		has := map[string]bool{}
		for _, route := range consoleRoutes() {
			has[route.Method+route.Path] = true
		}
		for _, route := range consoleRoutes() {
			for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "PROPFIND"} {
				if has[method+route.Path] || method == http.MethodHead && has[http.MethodGet+route.Path] {
					continue
				}
				r := asked(route, ids)
				r.method = method
				p := b.send(r)
				if b.decent(r, p); p.StatusCode != http.StatusNotFound {
					t.Errorf("%v: %d", r, p.StatusCode)
				}
			}
			if route.Method != http.MethodPost || route.Machine {
				continue
			}
			r := asked(route, ids)
			for _, kind := range []string{"", "application/json", "multipart/form-data; boundary=x", "text/plain", ";;"} {
				r.headers = []string{"Content-Type", kind}
				b.decent(r, b.keep(route, r, func() { b.forget(); b.signIn(b.nextLink()) }))
			}
			for _, text := range []string{"%zz", "a=%", "=&=&;", strings.Repeat("a=b&", 10_000), "\x00\xff"} {
				p := b.body(route.Method, r.path, text)
				b.decent(r, p)
			}
		}
	})
}

// body posts a body unchanged.
func (b *browsed) body(method, path, text string) page {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, strings.NewReader(text))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.read(r)
}

// The same form is sent from two tabs at once, and then again after Back. Each request is answered with a page.
func TestConsole_formSentTwice(t *testing.T) {
	eachCrowd(t, func(t *testing.T, b *browsed) {
		ids := b.good()
		for _, route := range consoleRoutes() {
			if route.Method != http.MethodPost || route.Machine || route.Path == "/sign-out" {
				continue
			}
			r := asked(route, ids)
			for _, in := range route.Inputs {
				r = r.with(in.Name, "1")
			}
			var tabs sync.WaitGroup
			for range 2 {
				tabs.Go(func() { b.decent(r, b.send(r)) })
			}
			tabs.Wait()
			b.decent(r, b.send(r))
		}
	})
}

// A browser without a session, with an expired session, or with a session of another server sees no page that requires a
// session.
func TestConsole_needsASession(t *testing.T) {
	t.Parallel()
	eachCrowd(t, func(t *testing.T, b *browsed) {
		ids := b.good()
		other := browse(t)
		other.signIn(other.nextLink())
		name := b.http.Jar.Cookies(mustParse(t, b.base))[0].Name
		elsewhere := other.http.Jar.Cookies(mustParse(t, other.base))[0].Value
		token := func(email string) string {
			b.become(email, identity.Membership{Tenant: roles.Installation, Role: roles.Owner})
			return b.http.Jar.Cookies(mustParse(t, b.base))[0].Value
		}
		signedOut, disabled, ended := token("out@example.com"), "", ""
		b.send(request{method: http.MethodPost, path: "/sign-out"})
		disabled = token("disabled@example.com")
		err := b.db.Write(t.Context(), func(tx *db.Tx) error {
			_, err := b.identity.Disable(tx, "disabled@example.com")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		idle := token("idle@example.com")
		ended = token("ended@example.com")
		v, err := b.identity.Visit(t.Context(), ended, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.identity.End(t.Context(), v, v.Session.ID); err != nil {
			t.Fatal(err)
		}
		b.clock.Advance(identity.IdleOperator + time.Second)
		for what, cookie := range map[string]string{"none": "", "rubbish": "rubbish", "of another server": elsewhere, "signed out": signedOut, "of a disabled person": disabled,
			"ended": ended, "idle": idle, "hostile": "<img>", "long": strings.Repeat("a", 4000), "cut": idle[:len(idle)-1]} {
			b.forget()
			if cookie != "" {
				b.http.Jar.SetCookies(mustParse(t, b.base), []*http.Cookie{{Name: name, Value: cookie}})
			}
			for _, route := range consoleRoutes() {
				if !route.Guarded() && !strings.HasPrefix(route.Path, "/account") {
					continue
				}
				r := asked(route, ids)
				p := b.send(r)
				if b.decent(r, p); p.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s: %v: %d", what, r, p.StatusCode)
				}
				b.silent(r, p, nil)
			}
		}
	})
}

// secrets are texts of the demo tenant, in addition to its ids.
var secrets = []string{"Adom Stores", "handset-000", "payout-of-november", "Nana Ama Serwaa", "Akwaaba", "0240000040", "233240000040", "4,900.00"}

// silent fails the test if an answer contains data of the demo tenant that the request did not contain.
func (b *browsed) silent(r request, p page, ids []string) {
	b.t.Helper()
	for _, secret := range slices.Concat(secrets, ids) {
		if strings.Contains(p.text, secret) && !r.says(secret) {
			b.t.Errorf("%v answers %d with %q of another", r, p.StatusCode, secret)
		}
	}
}

var (
	idText    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	linked    = regexp.MustCompile(`(?:href|hx-get)="(/[^"]*)"`)
	withoutID = regexp.MustCompile(`[0-9a-f-]{36}`)
)

// crawl reads every page that links lead to, and every route whose only parameters are ids. It returns the pages by path.
func (b *browsed) crawl(ids map[string]string, from ...string) map[string]page {
	b.t.Helper()
	for _, route := range consoleRoutes() {
		if route.Method == http.MethodGet {
			from = append(from, asked(route, ids).path)
		}
	}
	read, alike := map[string]page{}, map[string]int{}
	for len(from) > 0 {
		path := from[0]
		from = from[1:]
		shape := withoutID.ReplaceAllString(path, "ID")
		if _, known := read[path]; known || alike[shape] > 20 || strings.HasPrefix(path, "/docs") || strings.HasPrefix(path, "/assets/") {
			continue
		}
		alike[shape]++
		address, query, _ := strings.Cut(path, "?")
		values, _ := url.ParseQuery(query)
		r := request{method: http.MethodGet, path: address, query: values}
		p := b.send(r)
		b.decent(r, p)
		read[path] = p
		for _, found := range linked.FindAllStringSubmatch(p.text, -1) {
			from = append(from, html.UnescapeString(found[1]))
		}
	}
	return read
}

// The owner of a tenant uses every id that the owner of another tenant sees, in every URL. In the gate a parameter of a form or
// query has only some of the ids.
func TestConsole_otherTenantsAreHidden(t *testing.T) {
	t.Parallel()
	eachCrowd(t, func(t *testing.T, b *browsed) {
		other := "11111111-1111-7111-8111-111111111111"
		b.become("owner@adom.example", identity.Membership{Tenant: demoTenant, Role: roles.Owner})
		victim := b.http
		found := map[string]string{}
		for path, p := range b.crawl(map[string]string{"tenant": demoTenant, "id": b.the("handset-0000000001")}) {
			for _, id := range idText.FindAllString(path+p.text, -1) {
				found[id] = id
			}
			delete(found, p.Header.Get("X-Request-Id"))
		}
		b.become("owner@another.example", identity.Membership{Tenant: other, Role: roles.Owner})
		for path, p := range b.crawl(map[string]string{"tenant": other, "id": other}) {
			b.silent(request{path: path}, p, nil)
			for _, id := range idText.FindAllString(path+p.text, -1) {
				delete(found, id)
			}
		}
		ids := slices.Sorted(maps.Keys(found))
		if len(ids) < 8 {
			t.Fatalf("the owner sees the ids %v alone", ids)
		}
		values := matrix.TurnsOf(found)
		const each = 2 // ids for a parameter in the gate
		for _, route := range consoleRoutes() {
			if route.Site == 0 || route.Path == "/sign-out" {
				continue
			}
			given := map[string][]string{} // the parameters that accept an id
			for _, in := range route.Inputs {
				for _, id := range values.Some(each) {
					given[id] = append(given[id], in.Name)
				}
			}
			for _, id := range ids {
				foreign := map[string]string{"tenant": other, "id": id, "event": id, "line": "1", "msisdn": "0240000040", "name": id, "key": id, "person": id}
				tries := []request{asked(route, foreign)}
				for _, name := range given[id] {
					tries = append(tries, asked(route, foreign).with(name, id))
				}
				if strings.Contains(route.Path, "{tenant}") {
					foreign["tenant"] = demoTenant
					tries = append(tries, asked(route, foreign))
				}
				for _, r := range tries {
					p := b.send(r)
					b.decent(r, p)
					b.silent(r, p, ids)
					if names := strings.Contains(r.path, id) || strings.Contains(r.path, demoTenant); route.Guarded() && names && len(r.query)+len(r.form) == 0 && p.StatusCode != http.StatusNotFound && p.StatusCode != http.StatusForbidden {
						t.Errorf("%v: %d", r, p.StatusCode)
					}
				}
			}
		}
		b.http = victim
		b.want(http.StatusOK, "/app/"+demoTenant, "Adom Stores") // no other request ended the session
	})
}

// typedID is the hint of a field that takes an id.
var typedID = regexp.MustCompile(`class="hint">[^<]*\bThe id of [^<]*<`)

// People choose accounts, transfers and other things with ids from lists: no form of any page asks for an id.
func TestConsole_idsAreChosen(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.furnish()
	for path, p := range b.crawl(b.good(), "/app/"+demoTenant) {
		for _, hint := range typedID.FindAllString(p.text, -1) {
			if !strings.Contains(hint, "provider&#39;s reference") { // a statement has this reference, so a person can type it
				t.Errorf("%s asks for an id: %s", path, hint)
			}
		}
	}
}

// For a tenant without data, each page explains what it will show.
func TestConsole_emptyAccountPages(t *testing.T) {
	eachCrowd(t, func(t *testing.T, b *browsed) {
		other := "11111111-1111-7111-8111-111111111111"
		b.become("owner@another.example", identity.Membership{Tenant: other, Role: roles.Owner})
		for _, route := range consoleRoutes() {
			if !strings.HasPrefix(route.Path, "/app/{tenant}") || route.Method != http.MethodGet || strings.Contains(strings.TrimPrefix(route.Path, "/app/{tenant}"), "{") {
				continue
			}
			r := asked(route, map[string]string{"tenant": other})
			p := b.send(r)
			if b.decent(r, p); p.StatusCode != http.StatusOK {
				t.Errorf("%v: %d", r, p.StatusCode)
			}
			if !route.File && strings.Contains(p.text, "<tbody></tbody>") {
				t.Errorf("%v: an empty table says nothing", r)
			}
		}
	})
}

// planted are columns whose texts come from others: a customer, a payer, a provider, a receiver, a browser or a colleague. The text
// of each column contains its name, and must appear on some page or in some file.
var planted = map[string][]string{
	"payments":         {"account_name", "label", "callback_url", "reason", "upstream_id"},
	"provider_pauses":  {"reason", "actor"},
	"webhook_events":   {"url", "body"},
	"webhook_attempts": {"error"},
	"campaigns":        {"sender", "message"},
	"messages":         {"error"},
	"people":           {"name"},
	"tenants":          {"name"},
}

// Markup, a formula and a reversed direction are planted in every field that others can fill. Every page and file shows them as
// text.
func TestConsole_plantedTextIsEscaped(t *testing.T) {
	t.Parallel()
	eachCrowd(t, func(t *testing.T, b *browsed) {
		if err := b.Quiet(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.routes.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		payment := b.the("handset-0000000001")
		b.plant(payment)
		b.routes.Record(provider.Exchange{At: b.clock.Now(), Provider: "mtn", Mode: "test", Operation: "transfer", Payment: payment,
			Request: hostile + "planted-request", Answer: hostile + "planted-answer"})
		if err := b.routes.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.do(http.MethodPost, "/sim/hooks/"+demoTenant, url.Values{hostile: {"planted-hook"}}, "webhook-id", hostile[:40], "webhook-signature", hostile[:40])
		b.forget()
		b.signIn(b.nextLink()) // the browser sends a user agent
		b.agent = "planted-agent " + hostile[:len(hostile)-len("\u202e")]
		b.forget()
		b.signIn(b.nextLink())
		b.agent = ""
		b.clock.Advance(time.Minute) // cached values are read again
		var all strings.Builder
		for _, p := range b.crawl(b.good()) {
			all.WriteString(html.UnescapeString(p.text))
		}
		for table, columns := range planted {
			for _, column := range columns {
				if marker := "planted-" + table + "-" + column; !strings.Contains(all.String(), marker) {
					t.Errorf("%s is on no page: the test does not see it", marker)
				}
			}
		}
		for _, marker := range []string{"planted-hook", "planted-agent", "planted-actor", "planted-reason", "planted-action", "planted-details", "planted-request", "planted-answer"} {
			if !strings.Contains(all.String(), marker) {
				t.Errorf("%s is on no page", marker)
			}
		}
	})
}

// plant writes hostile texts into the columns, and into an entry of the audit log about a payment.
func (b *browsed) plant(payment string) {
	b.t.Helper()
	err := b.db.Write(b.t.Context(), func(tx *db.Tx) error {
		for _, insert := range []string{`INSERT INTO provider_pauses (mode, provider, operation, reason, actor, paused_at) VALUES ('test', 'mtn', 'collect', 'x', 'x', 1)`,
			`INSERT INTO webhook_attempts (tenant, event, id, number, at, status, took, error, answer) SELECT tenant, id, 'x', 1, 1, 500, 1, 'x', 'x' FROM webhook_events`} {
			if _, err := tx.Exec(insert); err != nil {
				return err
			}
		}
		done := audit.Entry{Actor: hostile + "planted-actor", Action: hostile + "planted-action", Tenant: demoTenant, Subject: payment, Reason: hostile + "planted-reason", Details: hostile + "planted-details"}
		if err := b.audit.Write(tx, done); err != nil {
			return err
		}
		for table, columns := range planted {
			for _, column := range columns {
				if _, err := tx.Exec(`UPDATE `+table+` SET `+column+` = $1`, hostile[:len(hostile)-len("\u202e")]+"planted-"+table+"-"+column+"\u202e"); err != nil {
					return fmt.Errorf("%s of %s: %w", column, table, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}
