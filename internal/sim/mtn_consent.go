package sim

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A customer's consent is a token about the number: bc-authorize gives a request,
// the consent's own token call makes a bearer of it, and userinfo tells what the
// customer consented to be told. The simulated customer consents at once.
const (
	mtnRequested = "consent-requested-"
	mtnConsented = "consented-"
	mtnMaxScope  = 200 // characters
	mtnCIBA      = "urn:openid:params:grant-type:ciba"
)

// authorize answers bc-authorize: login_hint=ID:{number}/MSISDN, a scope, and an
// access_type. MTN's own SDKs send the hint of its documents as it stands there,
// ID:msisdn/msisdn: that is mtnSomebody.
func (m *mtn) authorize(c *mtnCall) {
	form, ok := c.form()
	number, hinted := strings.CutPrefix(form.Get("login_hint"), "ID:")
	number, kind, typed := strings.Cut(number, "/")
	if strings.EqualFold(strings.Trim(number, "{}"), "msisdn") {
		number = mtnSomebody
	}
	scope := form.Get("scope")
	if !ok || !hinted || !typed || !strings.EqualFold(kind, "MSISDN") || !digits(number) || scope == "" || len(scope) > mtnMaxScope ||
		!slices.Contains([]string{"online", "offline"}, form.Get("access_type")) {
		c.write(http.StatusBadRequest, "application/json", nil)
		return
	}
	body, _ := json.Marshal(map[string]any{
		"auth_req_id": m.sealed(c.product, c.user, mtnRequested+number+"-"+base64.RawURLEncoding.EncodeToString([]byte(scope))), "interval": 5, "expires_in": int(mtnTokenLife.Seconds()),
	})
	c.answer(http.StatusOK, "application/json", body)
}

// consent answers /{product}/oauth2/...: the token call of a consent and userinfo.
func (m *mtn) consent(w http.ResponseWriter, r *http.Request, p *mtnProduct, path string) {
	op := OpToken
	switch {
	case path == "token" && r.Method == http.MethodPost:
	case path == "v1_0/userinfo" && r.Method == http.MethodGet:
		op = OpWalletName
	default:
		mtnNotFound(w)
		return
	}
	c, ok := m.s.begin(w, r, MTN, op)
	switch {
	case !ok:
	case !p.subscribed(r):
		c.notSubscribed()
	case op == OpToken:
		m.consentToken(c, p)
	default:
		m.userInfo(c, p)
	}
}

func (m *mtn) consentToken(c *call, p *mtnProduct) {
	u, known := m.basic(p, c.r)
	form, ok := c.form()
	by, about, opened := m.opened(p, form.Get("auth_req_id"))
	about, requested := strings.CutPrefix(about, mtnRequested)
	number, encoded, _ := strings.Cut(about, "-")
	scope, _ := base64.RawURLEncoding.DecodeString(encoded)
	switch {
	case !known:
		c.write(http.StatusUnauthorized, "application/json", []byte(`{"error":"login_failed"}`))
	case !ok || form.Get("grant_type") != mtnCIBA || !opened || !requested || by.ID != u.ID:
		c.write(http.StatusBadRequest, "application/json", []byte(`{"error":"invalid_grant"}`))
	default:
		body, _ := json.Marshal(map[string]any{
			"access_token": m.sealed(p, u, mtnConsented+number), "token_type": "Bearer", "expires_in": int(mtnTokenLife.Seconds()), "scope": string(scope),
		})
		c.answer(http.StatusOK, "application/json", body)
	}
}

func (m *mtn) userInfo(c *call, p *mtnProduct) {
	_, about, opened := m.opened(p, strings.TrimPrefix(c.r.Header.Get("Authorization"), "Bearer "))
	number, consented := strings.CutPrefix(about, mtnConsented)
	given, family, known := Name(number)
	_, target := m.environments[c.r.Header.Get("X-Target-Environment")]
	switch {
	case !opened || !consented:
		c.write(http.StatusUnauthorized, "application/json", []byte(`{"error":"invalid_token"}`))
	case !target:
		c.fail(http.StatusInternalServerError, "NOT_ALLOWED_TARGET_ENVIRONMENT")
	case !known:
		c.fail(http.StatusNotFound, "RESOURCE_NOT_FOUND")
	default:
		body, _ := json.Marshal(map[string]any{
			"sub": "0", "name": given + " " + family, "given_name": given, "family_name": family, "birthdate": "1990-01-01", "locale": "en_GH",
			"gender": "UNKNOWN", "status": "ACTIVE", "phone_number": number, "phone_number_verified": true,
		})
		c.answer(http.StatusOK, "application/json", body)
	}
}

// form reads a body of form fields.
func (c *call) form() (url.Values, bool) {
	raw, err := io.ReadAll(io.LimitReader(c.r.Body, mtnMaxBody))
	form, broken := url.ParseQuery(string(raw))
	return form, err == nil && broken == nil
}
