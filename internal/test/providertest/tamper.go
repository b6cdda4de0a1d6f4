package providertest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// A response is a provider's response to one request, as it is sent or as a Tamper changes it.
type response struct {
	status int
	header http.Header
	body   []byte
}

// A Tamper stands between an adapter and its provider. It changes the responses to one kind of request.
type Tamper struct {
	mu     sync.Mutex
	last   string // kind of the last request
	kind   string // kind of the requests whose responses are changed; empty: none
	change func(response) response
}

// references matches our references in the paths of requests, with and without hyphens.
var references = regexp.MustCompile(`[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}`)

// kindOf is a request's method and path without references.
func kindOf(r *http.Request) string {
	return r.Method + " " + references.ReplaceAllString(r.URL.Path, "*")
}

// Last returns the kind of the last request.
func (p *Tamper) Last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// Set changes the responses to a kind of request from now on; nil changes none.
func (p *Tamper) Set(kind string, change func(response) response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kind, p.change = kind, change
}

// Wrap returns the provider's handler behind the Tamper.
func (p *Tamper) Wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.last = kindOf(r)
		change := p.change
		if p.last != p.kind {
			change = nil
		}
		p.mu.Unlock()
		if change == nil {
			h.ServeHTTP(w, r)
			return
		}
		taken := httptest.NewRecorder()
		h.ServeHTTP(taken, r)
		a := change(response{taken.Code, taken.Header().Clone(), taken.Body.Bytes()})
		for name, values := range a.header {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body)
	})
}

// A hostile changes a response so that it proves nothing. whole is set if the response may still be read as it was.
type hostile struct {
	name   string
	change func(response) response
	whole  bool
}

// under sends the same response under another status.
func under(status int) hostile {
	return hostile{name: "under " + strconv.Itoa(status), change: func(r response) response {
		if r.status = status; status/100 == 3 {
			r.header.Set("Location", "/")
		}
		return r
	}}
}

// instead sends another body under a status.
func instead(status int, name, contentType, body string) hostile {
	return hostile{name: name + " under " + strconv.Itoa(status), change: func(r response) response {
		r.header.Set("Content-Type", contentType)
		return response{status, r.header, []byte(body)}
	}}
}

// written sends the body in another form.
func written(name string, whole bool, form func([]byte) []byte) hostile {
	return hostile{name, func(r response) response { r.body = form(bytes.Clone(r.body)); return r }, whole}
}

const page = "<!DOCTYPE html><html><head><title>success</title></head><body>SUCCESSFUL 200 OK</body></html>"

// tooLong is longer than the longest response that a client reads.
const tooLong = 1 << 20

// hostiles are responses of gateways, broken providers and broken lines.
func hostiles() (list []hostile) {
	for _, status := range []int{200, 201, 202, 400, 404, 409, 500} {
		list = append(list, instead(status, "html", "text/html", page), instead(status, "nothing", "application/json", ""))
		for name, body := range map[string]string{"null": "null", "list": "[]", "object": "{}", "true": "true", "text": `"success"`, "number": "0",
			"nested": strings.Repeat(`{"data":`, 5_000), "lists": strings.Repeat("[", 20_000)} {
			list = append(list, instead(status, name, "application/json", body))
		}
	}
	for _, status := range []int{302, 307, 400, 404, 409, 418, 422, 500, 502, 503} {
		list = append(list, under(status))
	}
	list = append(list,
		hostile{"without its body, under 204", func(r response) response { return response{204, r.header, nil} }, false},
		written("cut in the middle", false, func(b []byte) []byte { return b[:len(b)/2] }),
		written("cut before the end", false, func(b []byte) []byte { return b[:max(0, len(b)-1)] }),
		written("twice", false, func(b []byte) []byte { return append(b, b...) }),
		written("page behind it", false, func(b []byte) []byte { return append(b, page...) }),
		written("page before it", false, func(b []byte) []byte { return append([]byte(page), b...) }),
		written("in a list", false, func(b []byte) []byte { return []byte("[" + string(b) + "]") }),
		written("in a text", false, func(b []byte) []byte { t, _ := json.Marshal(string(b)); return t }),
		written("too long", false, func(b []byte) []byte { return append(b, strings.Repeat(" ", tooLong)...) }),
		written("UTF-16", false, func(b []byte) []byte {
			wide := []byte{0xff, 0xfe}
			for _, u := range utf16.Encode([]rune(string(b))) {
				wide = append(wide, byte(u), byte(u>>8))
			}
			return wide
		}),
		written("bytes of Latin-1", true, func(b []byte) []byte { return bytes.Replace(b, []byte(`":"`), []byte("\":\"\xe9"), 1) }),
		written("marked as UTF-8", true, func(b []byte) []byte { return append([]byte{0xef, 0xbb, 0xbf}, b...) }),
		hostile{"in another charset by name", func(r response) response {
			r.header.Set("Content-Type", "text/plain; charset=utf-16")
			return r
		}, true})
	return list
}

// member is one leaf of a JSON response.
type member struct {
	path  string
	value any
}

// leaves calls each for every leaf of a JSON value. each returns the value in its place; drop removes the member.
func leaves(v any, path string, each func(member) (value any, drop bool)) any {
	switch of := v.(type) {
	case map[string]any:
		for name, inner := range of {
			if _, list := inner.([]any); !list {
				if _, object := inner.(map[string]any); !object {
					value, drop := each(member{path + "." + name, inner})
					if of[name] = value; drop {
						delete(of, name)
					}
					continue
				}
			}
			of[name] = leaves(inner, path+"."+name, each)
		}
	case []any:
		for i := range of {
			of[i] = leaves(of[i], path+"[]", each)
		}
	}
	return v
}

// decode reads a JSON response with its numbers as they are written.
func decode(body []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

// changed returns a change of a response's leaves.
func changed(each func(member) (any, bool)) func(response) response {
	return func(r response) response {
		if v, ok := decode(r.body); ok {
			r.body, _ = json.Marshal(leaves(v, "", each))
		}
		return r
	}
}

// paths lists the leaves of a response.
func paths(body []byte) (list []string) {
	if v, ok := decode(body); ok {
		leaves(v, "", func(m member) (any, bool) { list = append(list, m.path); return m.value, false })
	}
	return list
}

// text returns a text or number as it is written.
func text(v any) string {
	switch of := v.(type) {
	case string:
		return of
	case json.Number:
		return of.String()
	}
	return ""
}

// like returns other in the type of a value.
func like(v any, other string) any {
	if _, number := v.(json.Number); number {
		return json.Number(other)
	}
	return other
}

// ofAnother changes one fact of a payment, wherever the response has it: its amount, currency, reference or party.
func ofAnother(fact string, reference string, amount money.Pesewas, party string) func(response) response {
	return changed(func(m member) (any, bool) {
		t := text(m.value)
		switch fact {
		case "amount":
			if t == strconv.FormatInt(int64(amount), 10) {
				return like(m.value, strconv.FormatInt(int64(amount)+1, 10)), false
			}
			if a, err := money.Parse(t); err == nil && a == amount {
				return like(m.value, (amount + 1).String()), false
			}
		case "currency":
			if strings.EqualFold(t, "GHS") {
				return "NGN", false
			}
		case "reference":
			if provider.SameReference(t, reference) {
				return "00000000-0000-4000-8000-000000000000", false
			}
		case "party":
			if t != "" && len(t) >= 9 && strings.HasSuffix(party, strings.TrimLeft(t, "+0")) {
				return like(m.value, t[:len(t)-1]+string('0'+(t[len(t)-1]-'0'+1)%10)), false
			}
		}
		return m.value, false
	})
}
