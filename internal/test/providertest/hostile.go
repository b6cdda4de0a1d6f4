package providertest

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/provider"
)

// hostileSubmissions answers submissions by responses that prove nothing. None may be final or a clear refusal, or let the
// payment go to another rail.
func (m mover) hostileSubmissions(t *testing.T) {
	submits := func() (reference string, o provider.Outcome) {
		reference = uuid.NewString()
		return reference, m.submit(context.Background(), m.b.Rail, reference, amount(), "000")
	}
	submits()
	kind := m.b.Tamper.Last()
	defer m.b.Tamper.Set("", nil)
	for _, h := range hostiles() {
		m.b.Tamper.Set(kind, h.change)
		reference, o := submits()
		m.b.Tamper.Set("", nil)
		_, entries := m.moved(reference)
		switch {
		case entries != 1:
			t.Errorf("%s: the book has %d entries", h.name, entries)
		case o.Final(), o.Clear, o.Unposted, o.NotFound, o.Unpaid, o.Class == provider.NotSent, o.Class == provider.Barred:
			t.Errorf("%s: %+v", h.name, o)
		}
	}
	m.b.Advance(time.Hour)
}

// hostileStatuses answers status queries of successful, failed and open payments by responses that prove nothing, and by true
// responses in which one fact is missing or another payment's. No response makes a payment final by mistake.
func (m mover) hostileStatuses(t *testing.T) {
	for _, code := range []string{"000", "020", "026", "003"} {
		if m.failures[code] == "" && code != "000" && code != "003" {
			continue
		}
		reference, a := uuid.NewString(), amount()
		m.accepted(t, reference, a, code)
		m.b.Advance(10 * time.Minute)
		asks := func() provider.Outcome { return m.status(context.Background(), reference, a, code) }
		want := m.expect(reference, a, code)
		truth := asks()
		kind := m.b.Tamper.Last()
		var body []byte
		m.b.Tamper.Set(kind, func(r response) response { body = r.body; return r })
		asks()
		with := func(name string, change func(response) response, refuted func(provider.Outcome) bool) {
			t.Helper()
			m.b.Tamper.Set(kind, change)
			o := asks()
			m.b.Tamper.Set("", nil)
			m.checkStatus(t, o)
			if refuted(o) {
				t.Errorf("%s %s: %+v", code, name, o)
			}
		}
		for _, h := range hostiles() {
			with(h.name, h.change, func(o provider.Outcome) bool {
				if h.whole && o.State == truth.State {
					return o.NotFound && !truth.NotFound
				}
				return o.Final() || o.NotFound && !truth.NotFound || o.Unpaid
			})
		}
		for _, fact := range []string{"amount", "currency", "reference", "party"} {
			with("of another "+fact, ofAnother(fact, reference, a, m.party(code)), func(o provider.Outcome) bool {
				same := o.Final() && !provider.Mismatch(o, want)
				return same && tells(body, fact, reference, a, m.party(code))
			})
		}
		for _, path := range paths(body) {
			for name, change := range map[string]func(member) (any, bool){
				"without":               func(v member) (any, bool) { return v.value, v.path == path },
				"with null for":         only(path, nil),
				"with a list for":       only(path, []any{}),
				"with a false word for": only(path, "no such word"),
			} {
				with(name+" "+path, changed(change), func(o provider.Outcome) bool {
					return o.Final() && (o.State != truth.State || !truth.Final()) || o.Unpaid && !truth.Unpaid || o.NotFound && !truth.NotFound
				})
			}
		}
	}
}

// only changes one leaf.
func only(path string, value any) func(member) (any, bool) {
	return func(v member) (any, bool) {
		if v.path == path {
			return value, false
		}
		return v.value, false
	}
}

// tells reports whether a response has a fact of the payment at all.
func tells(body []byte, fact, reference string, a money.Pesewas, party string) bool {
	other := ofAnother(fact, reference, a, party)(response{body: bytes.Clone(body)})
	same := changed(func(m member) (any, bool) { return m.value, false })(response{body: bytes.Clone(body)})
	return !bytes.Equal(other.body, same.body)
}
