package mtn

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/sim"
)

// provision handles /v1_0/apiuser: creating a user, reading it, and creating its key. It accepts the subscription key
// of any product, and the user is valid for all products.
func (m *mtn) provision(w http.ResponseWriter, r *http.Request, path []string) {
	making := len(path) == 0 && r.Method == http.MethodPost
	showing := len(path) == 1 && r.Method == http.MethodGet
	keying := len(path) == 2 && path[1] == "apikey" && r.Method == http.MethodPost
	if !making && !showing && !keying {
		notFound(w)
		return
	}
	c, ok := m.begin(w, r, sim.OpToken)
	if !ok {
		return
	}
	subscribed := false
	for _, p := range m.products {
		subscribed = subscribed || p.subscribed(r)
	}
	switch {
	case !subscribed:
		c.notSubscribed()
	case making:
		m.makeUser(c)
	case showing:
		u, known := m.s.User(path[0])
		if !known {
			c.fail(http.StatusNotFound, "RESOURCE_NOT_FOUND")
			return
		}
		body, _ := json.Marshal(map[string]string{"providerCallbackHost": u.Host, "targetEnvironment": sandbox})
		c.Answer(http.StatusOK, "application/json", body)
	default:
		m.makeKey(c, path[0])
	}
}

func (m *mtn) makeUser(c *call) {
	id := c.Request.Header.Get("X-Reference-Id")
	raw, err := io.ReadAll(io.LimitReader(c.Request.Body, maxBody))
	var b struct {
		Host string `json:"providerCallbackHost"`
	}
	if err != nil || !uuid4(id) || json.Unmarshal(raw, &b) != nil || b.Host == "" {
		c.Write(http.StatusBadRequest, "application/json", nil)
		return
	}
	for _, p := range m.products {
		if strings.EqualFold(id, p.user) {
			c.fail(http.StatusConflict, "RESOURCE_ALREADY_EXIST")
			return
		}
	}
	switch made, err := m.s.AddUser(sim.User{ID: id, Host: b.Host}); {
	case err != nil:
		m.s.Log().Error("simulator failed to store API user", "error", err)
		c.fail(http.StatusInternalServerError, "INTERNAL_PROCESSING_ERROR")
	case !made:
		c.fail(http.StatusConflict, "RESOURCE_ALREADY_EXIST")
	default:
		c.Answer(http.StatusCreated, "application/json", nil)
	}
}

// makeKey creates a new key for a user. The old key and its tokens become invalid.
func (m *mtn) makeKey(c *call, id string) {
	key := make([]byte, 16)
	rand.Read(key)
	text := hex.EncodeToString(key)
	switch known, err := m.s.SetKey(id, text); {
	case err != nil:
		m.s.Log().Error("simulator failed to store API key", "error", err)
		c.fail(http.StatusInternalServerError, "INTERNAL_PROCESSING_ERROR")
	case !known:
		c.fail(http.StatusNotFound, "RESOURCE_NOT_FOUND")
	default:
		c.Answer(http.StatusCreated, "application/json", []byte(`{"apiKey":"`+text+`"}`))
	}
}

// user returns a product's own user, or a created one, which is valid for all products.
func (m *mtn) user(p *product, id string) (sim.User, bool) {
	if id == p.user {
		return sim.User{ID: id, Key: p.key}, true
	}
	u, known := m.s.User(id)
	return u, known && u.Key != ""
}

// basic returns the user whose id and key are in a token call.
func (m *mtn) basic(p *product, r *http.Request) (sim.User, bool) {
	id, key, has := r.BasicAuth()
	u, known := m.user(p, id)
	return u, has && known && subtle.ConstantTimeCompare([]byte(key), []byte(u.Key)) == 1
}

// token handles the token call. It ignores the body, because clients send none, an empty object or a grant type.
// Tokens contain their own expiry, so that they stay valid after a restart, like real ones.
func (m *mtn) token(w http.ResponseWriter, r *http.Request, p *product) {
	c, ok := m.begin(w, r, sim.OpToken)
	if !ok {
		return
	}
	u, known := m.basic(p, r)
	switch {
	case !p.subscribed(r):
		c.notSubscribed()
	case !known:
		c.Write(http.StatusUnauthorized, "application/json", []byte(`{"error":"login_failed"}`))
	default:
		body, _ := json.Marshal(map[string]any{
			"access_token": m.sealed(p, u, ""), "token_type": "access_token", "expires_in": int(tokenLife.Seconds()),
		})
		c.Answer(http.StatusOK, "application/json", body)
	}
}

// sealed returns a token of a product and user that expires after tokenLife. about is a further subject, which must
// not contain a dot.
func (m *mtn) sealed(p *product, u sim.User, about string) string {
	end := strconv.FormatInt(m.s.Clock().Now().Add(tokenLife).Unix(), 10)
	text := strings.Join([]string{p.name, u.ID, about, end}, ".")
	return text + "." + seal(u, text)
}

// seal returns the signature of a user's token.
func seal(u sim.User, text string) string {
	h := hmac.New(sha256.New, []byte(u.Key))
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// opened parses a token of sealed that has not expired.
func (m *mtn) opened(p *product, token string) (u sim.User, about string, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 5 || parts[0] != p.name {
		return sim.User{}, "", false
	}
	u, known := m.user(p, parts[1])
	seal := seal(u, strings.Join(parts[:4], "."))
	end, err := strconv.ParseInt(parts[3], 10, 64)
	ok = known && err == nil && subtle.ConstantTimeCompare([]byte(parts[4]), []byte(seal)) == 1 && m.s.Clock().Now().Before(time.Unix(end, 0))
	return u, parts[2], ok
}

func (m *mtn) bearer(p *product, header string) (sim.User, bool) {
	u, about, ok := m.opened(p, strings.TrimPrefix(header, "Bearer "))
	return u, ok && about == ""
}

// mayCall reports whether callbacks of a user may be sent to an address. Only the user's host is allowed, with any
// scheme and port. The user's host may itself be a URL.
func mayCall(u sim.User, address *url.URL) bool {
	host := u.Host
	if !strings.Contains(host, "://") {
		host = "//" + host
	}
	own, err := url.Parse(host)
	return u.Host == "" || err == nil && strings.EqualFold(own.Hostname(), address.Hostname())
}
