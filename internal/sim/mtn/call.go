package mtn

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/makola/makola/internal/sim"
)

// call is one request. A guarded request has a token, which is valid for one product, one API user and the account of
// its target environment.
type call struct {
	*sim.Call
	product *product
	user    sim.User
	account account
}

func (m *mtn) begin(w http.ResponseWriter, r *http.Request, op string) (*call, bool) {
	c, ok := m.s.Begin(w, r, Name, op)
	return &call{Call: c}, ok
}

func (c *call) notSubscribed() {
	c.Write(http.StatusUnauthorized, "application/json", []byte(`{"statusCode":401,"message":"Access denied due to invalid subscription key. Make sure to provide a valid key for an active subscription."}`))
}

// fail answers with MTN's error object.
func (c *call) fail(status int, code string) {
	body, _ := json.Marshal(reason{code, sentence(code)})
	c.Write(status, "application/json", body)
}

// form reads a body with form fields.
func (c *call) form() (url.Values, bool) {
	raw, err := io.ReadAll(io.LimitReader(c.Request.Body, maxBody))
	form, broken := url.ParseQuery(string(raw))
	return form, err == nil && broken == nil
}

// noteFits reports whether MTN accepts a text: at most 160 characters without special ones.
func noteFits(s string) bool {
	return len([]rune(s)) <= 160 && !strings.ContainsAny(s, "'\"<>&\\\n\r\t")
}

// uuid4 reports whether s is a version 4 UUID with its hyphens.
func uuid4(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i] | 0x20
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		case 14:
			if c != '4'|0x20 {
				return false
			}
		case 19:
			if !strings.ContainsRune("89ab", rune(c)) {
				return false
			}
		default:
			if !('0' <= c && c <= '9') && !('a' <= c && c <= 'f') {
				return false
			}
		}
	}
	return true
}
