package mtn

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/makola/makola/internal/sim"
)

// A customer's consent is a token about the number. bc-authorize returns a request id. The consent's own token call
// exchanges the id for a bearer token. userinfo returns the details that the customer agreed to share. The simulated
// customer consents at once.
const (
	requestedPrefix = "consent-requested-"
	consentedPrefix = "consented-"
	maxScope        = 200 // characters
	grantCIBA       = "urn:openid:params:grant-type:ciba"
)

// authorize handles bc-authorize: login_hint=ID:{number}/MSISDN, a scope, and an access_type. MTN's own SDKs send the
// placeholder of its documents, ID:msisdn/msisdn, which stands for any customer.
func (m *mtn) authorize(c *call) {
	form, ok := c.form()
	number, hinted := strings.CutPrefix(form.Get("login_hint"), "ID:")
	number, kind, typed := strings.Cut(number, "/")
	if strings.EqualFold(strings.Trim(number, "{}"), "msisdn") {
		number = somebody
	}
	scope := form.Get("scope")
	if !ok || !hinted || !typed || !strings.EqualFold(kind, "MSISDN") || !digits(number) || scope == "" || len(scope) > maxScope ||
		!slices.Contains([]string{"online", "offline"}, form.Get("access_type")) {
		c.Write(http.StatusBadRequest, "application/json", nil)
		return
	}
	body, _ := json.Marshal(map[string]any{
		"auth_req_id": m.sealed(c.product, c.user, requestedPrefix+number+"-"+base64.RawURLEncoding.EncodeToString([]byte(scope))), "interval": 5, "expires_in": int(tokenLife.Seconds()),
	})
	c.Answer(http.StatusOK, "application/json", body)
}

// consent handles /{product}/oauth2/...: the token call of a consent, and userinfo.
func (m *mtn) consent(w http.ResponseWriter, r *http.Request, p *product, path string) {
	op := sim.OpToken
	switch {
	case path == "token" && r.Method == http.MethodPost:
	case path == "v1_0/userinfo" && r.Method == http.MethodGet:
		op = sim.OpWalletName
	default:
		notFound(w)
		return
	}
	c, ok := m.begin(w, r, op)
	switch {
	case !ok:
	case !p.subscribed(r):
		c.notSubscribed()
	case op == sim.OpToken:
		m.consentToken(c, p)
	default:
		m.userInfo(c, p)
	}
}

func (m *mtn) consentToken(c *call, p *product) {
	u, known := m.basic(p, c.Request)
	form, ok := c.form()
	by, about, opened := m.opened(p, form.Get("auth_req_id"))
	about, requested := strings.CutPrefix(about, requestedPrefix)
	number, encoded, _ := strings.Cut(about, "-")
	scope, _ := base64.RawURLEncoding.DecodeString(encoded)
	switch {
	case !known:
		c.Write(http.StatusUnauthorized, "application/json", []byte(`{"error":"login_failed"}`))
	case !ok || form.Get("grant_type") != grantCIBA || !opened || !requested || by.ID != u.ID:
		c.Write(http.StatusBadRequest, "application/json", []byte(`{"error":"invalid_grant"}`))
	default:
		body, _ := json.Marshal(map[string]any{
			"access_token": m.sealed(p, u, consentedPrefix+number), "token_type": "Bearer", "expires_in": int(tokenLife.Seconds()), "scope": string(scope),
		})
		c.Answer(http.StatusOK, "application/json", body)
	}
}

func (m *mtn) userInfo(c *call, p *product) {
	_, about, opened := m.opened(p, strings.TrimPrefix(c.Request.Header.Get("Authorization"), "Bearer "))
	number, consented := strings.CutPrefix(about, consentedPrefix)
	given, family, known := sim.Name(number)
	_, target := m.environments[c.Request.Header.Get("X-Target-Environment")]
	switch {
	case !opened || !consented:
		c.Write(http.StatusUnauthorized, "application/json", []byte(`{"error":"invalid_token"}`))
	case !target:
		c.fail(http.StatusInternalServerError, "NOT_ALLOWED_TARGET_ENVIRONMENT")
	case !known:
		c.fail(http.StatusNotFound, "RESOURCE_NOT_FOUND")
	default:
		body, _ := json.Marshal(map[string]any{
			"sub": "0", "name": given + " " + family, "given_name": given, "family_name": family, "birthdate": "1990-01-01", "locale": "en_GH",
			"gender": "UNKNOWN", "status": "ACTIVE", "phone_number": number, "phone_number_verified": true,
		})
		c.Answer(http.StatusOK, "application/json", body)
	}
}
