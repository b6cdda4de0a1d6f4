package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/identitytest"
)

// held is a cookie jar that keeps cookies for TLS, because a proxy ends TLS before this server.
type held map[string]*http.Cookie

func (h held) SetCookies(_ *url.URL, cookies []*http.Cookie) {
	for _, c := range cookies {
		h[c.Name] = c
	}
}

func (h held) Cookies(*url.URL) (list []*http.Cookie) {
	for _, c := range h {
		if c.MaxAge >= 0 {
			list = append(list, &http.Cookie{Name: c.Name, Value: c.Value})
		}
	}
	return list
}

// produce starts a production server behind a proxy on this machine, without any people.
func produce(t *testing.T, change ...func(*config.Server)) *browsed {
	t.Helper()
	key := make([]byte, config.SecretBytes)
	rand.Read(key)
	secret, err := config.NewSecret(key)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Server{Environment: "production", Listen: "127.0.0.1:0", MetricsListen: "off", Connections: 8, DrainFor: time.Minute, Storage: freshStorage(t, db.SQLite),
		Secret: secret, PublicURL: "https://makola.example", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Sim: "http://127.0.0.1:1"}
	for _, c := range change {
		c(&cfg)
	}
	a, err := Start(context.Background(), cfg, Options{Clock: clock.NewManual(time.Now()), HashMemory: identitytest.HashMemory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b := &browsed{App: a, t: t, base: "http://" + a.doors.api.net.Addr().String()}
	b.forget()
	b.http.Jar = held{}
	return b
}

// invited invites a person and returns the token and the code of the link.
func (b *browsed) invited(email string, m identity.Membership) (token, code string) {
	b.t.Helper()
	by := identity.NewInvitation()
	err := b.db.Write(b.t.Context(), func(tx *db.Tx) error {
		_, _, err := b.identity.Invite(tx, by, email, "Ama Owusu", m)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return by.Token, by.Code
}

// post sends a form and expects a status.
func (b *browsed) post(status int, path string, pairs ...string) page {
	b.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	p := b.do(http.MethodPost, path, form, "X-Forwarded-For", "198.51.100.4")
	if p.StatusCode != status {
		b.t.Fatalf("POST %s: %d, not %d, to %q: %s", path, p.StatusCode, status, p.Header.Get("Location"), p.text)
	}
	return p
}

// leads fails the test unless the page redirected to the given path.
func (p page) leads(t *testing.T, to string) {
	t.Helper()
	if p.StatusCode != http.StatusSeeOther || p.Header.Get("Location") != to {
		t.Fatalf("%d leads to %q, not %q: %s", p.StatusCode, p.Header.Get("Location"), to, p.text)
	}
}

// codeNow returns the code that an authenticator app shows for a key.
func (b *browsed) codeNow(key string) string {
	b.t.Helper()
	return identitytest.Code(b.t, key, b.clock.Now())
}

var (
	shownKey   = regexp.MustCompile(`<code id="key">([A-Z2-7 ]+)</code>`)
	shownCodes = regexp.MustCompile(`<li><code>([a-z2-7-]{19})</code></li>`)
)

const ownPassword = "correct horse battery"

func TestSetup_withoutPeople(t *testing.T) {
	t.Parallel()
	b := produce(t)
	for _, path := range []string{"/", "/ops", "/app/" + demoTenant, "/first?t=x", "/sign-in", "/account"} {
		if p := b.want(http.StatusServiceUnavailable, path, "makola people create"); strings.Contains(p.text, "<form method") {
			t.Error(path)
		}
	}
	b.invited("ama@example.com", identity.Membership{Tenant: roles.Installation, Role: roles.Owner})
	b.want(http.StatusUnauthorized, "/", `name="password"`)
	b.want(http.StatusNotFound, "/sim")
	b.post(http.StatusNotFound, "/first/again")
}

// The first owner of a production server uses the link, sets a password and an app, stores the recovery codes, signs out, and signs
// in again.
func TestSetup_firstOwner(t *testing.T) {
	t.Parallel()
	b := produce(t)
	token, code := b.invited("ama@example.com", identity.Membership{Tenant: roles.Installation, Role: roles.Owner})
	b.want(http.StatusOK, "/first?t="+token, "Welcome, Ama Owusu", "ama@example.com")
	if p := b.post(http.StatusUnprocessableEntity, "/first", "t", token, "code", code, "password", "short"); !strings.Contains(p.text, "12 to 128") {
		t.Fatal(p.text)
	}
	b.post(http.StatusUnauthorized, "/first", "t", token) // a link of development works without a password, this one does not
	b.post(http.StatusSeeOther, "/first", "t", token, "code", code, "password", ownPassword).leads(t, "/account")
	if c := b.http.Jar.(held)["__Host-makola"]; c == nil || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
		t.Fatalf("%+v", c)
	}
	if c := b.http.Jar.(held)["__Host-makola-device"]; c == nil || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge != int(identity.DeviceLasts.Seconds()) {
		t.Fatalf("%+v", c)
	}
	b.want(http.StatusUnauthorized, "/first?t="+token)

	// Before the factor is set up, only the pages of the own account work.
	for _, r := range consoleRoutes() {
		if path := filled(r.Path); r.Method == http.MethodGet && !r.Development && r.Site != 0 && !r.Unready {
			b.get(path).leads(t, "/account")
		}
	}
	b.want(http.StatusOK, "/account", "Set up a second factor first")
	b.want(http.StatusSeeOther, "/account/factor") // no factor awaits its code yet
	b.post(http.StatusSeeOther, "/account/factor").leads(t, "/account/factor")
	p := b.want(http.StatusOK, "/account/factor", "<svg class=\"qr\"")
	key := shownKey.FindStringSubmatch(p.text)[1]
	if again := b.get("/account/factor"); shownKey.FindStringSubmatch(again.text)[1] != key {
		t.Error("another look made another key")
	}
	b.post(http.StatusUnprocessableEntity, "/account/factor/confirm", "code", "000000")
	p = b.post(http.StatusOK, "/account/factor/confirm", "code", b.codeNow(key))
	recovery := shownCodes.FindAllStringSubmatch(p.text, -1)
	if len(recovery) != identity.RecoveryCodes {
		t.Fatal(p.text)
	}
	if p := b.get("/account/factor"); strings.Contains(p.text, key) {
		t.Error("the key is shown after it was confirmed")
	}
	b.clock.Advance(identity.Freshness)
	b.get("/").leads(t, "/ops")
	b.want(http.StatusOK, "/ops", "Your account")

	b.post(http.StatusSeeOther, "/sign-out")
	b.want(http.StatusUnauthorized, "/ops/float", `name="back" value="/ops/float"`)
	for _, wrong := range [][]string{{"password", ownPassword}, {"password", "x", "code", b.codeNow(key)}, {"password", ownPassword, "code", "123456"}} {
		if p := b.post(http.StatusUnprocessableEntity, "/sign-in", append(wrong, "email", "ama@example.com")...); !strings.Contains(p.text, "is not right") || strings.Contains(p.text, ownPassword) {
			t.Fatal(p.text)
		}
	}
	b.clock.Advance(time.Minute)
	b.post(http.StatusSeeOther, "/sign-in", "email", "ama@example.com", "password", ownPassword, "code", b.codeNow(key), "back", "//evil.example").leads(t, "/")
	b.post(http.StatusSeeOther, "/sign-out")
	b.post(http.StatusSeeOther, "/sign-in", "email", "AMA@example.com", "password", ownPassword, "code", recovery[0][1], "back", "/ops/float").leads(t, "/ops/float")
	b.want(http.StatusOK, "/account", "198.51.100.4", "This browser<")
}

// A page that requires a new code redirects to the form for the code, and back.
func TestStepUp_leadsBack(t *testing.T) {
	t.Parallel()
	b := produce(t)
	token, code := b.invited("ama@example.com", identity.Membership{Tenant: roles.Installation, Role: roles.Owner})
	b.post(http.StatusSeeOther, "/first", "t", token, "code", code, "password", ownPassword)
	b.post(http.StatusSeeOther, "/account/factor")
	key := shownKey.FindStringSubmatch(b.get("/account/factor").text)[1]
	b.post(http.StatusOK, "/account/factor/confirm", "code", b.codeNow(key))
	if p := b.post(http.StatusOK, "/account/recovery-codes"); len(shownCodes.FindAllString(p.text, -1)) != identity.RecoveryCodes {
		t.Fatal(p.text)
	}
	b.clock.Advance(identity.StepUpLasts)
	for _, path := range []string{"/account/recovery-codes", "/account/factor", "/account/password"} {
		b.post(http.StatusSeeOther, path, "current", ownPassword, "password", "another green market stall").leads(t, "/account/step-up?back=%2Faccount")
	}
	b.want(http.StatusOK, "/account/step-up?back=%2Faccount", `value="/account"`)
	b.post(http.StatusUnprocessableEntity, "/account/step-up", "code", "123456", "back", "/account")
	b.post(http.StatusSeeOther, "/account/step-up", "code", b.codeNow(key), "back", "/account").leads(t, "/account")
	if p := b.post(http.StatusUnprocessableEntity, "/account/password", "current", "x", "password", "another green market stall"); !strings.Contains(p.text, "is not your password") {
		t.Fatal(p.text)
	}
	b.post(http.StatusOK, "/account/password", "current", ownPassword, "password", "another green market stall")
}

// An open browser alone cannot enrol a first factor: the page asks for the password.
func TestOpenBrowser_enrolsNoFactor(t *testing.T) {
	t.Parallel()
	b := produce(t)
	token, code := b.invited("ama@example.com", identity.Membership{Tenant: roles.Installation, Role: roles.Owner})
	b.post(http.StatusSeeOther, "/first", "t", token, "code", code, "password", ownPassword)
	b.clock.Advance(identity.StepUpLasts)
	b.want(http.StatusOK, "/account", "Your password")
	for _, wrong := range []string{"", "x"} {
		if p := b.post(http.StatusUnprocessableEntity, "/account/factor", "current", wrong); !strings.Contains(p.text, "is not your password") {
			t.Fatal(p.text)
		}
	}
	b.get("/account/factor").leads(t, "/account")
	b.post(http.StatusSeeOther, "/account/factor", "current", ownPassword).leads(t, "/account/factor")
	key := shownKey.FindStringSubmatch(b.get("/account/factor").text)[1]

	// Another browser of the person neither sees the key nor confirms it.
	begun := b.http.Jar
	b.http.Jar = held{}
	b.post(http.StatusSeeOther, "/sign-in", "email", "ama@example.com", "password", ownPassword)
	b.get("/account/factor").leads(t, "/account")
	b.post(http.StatusGone, "/account/factor/confirm", "code", b.codeNow(key))

	// Later the first browser does not show the key any more, and requires the password with the code.
	b.http.Jar = begun
	b.clock.Advance(identity.StepUpLasts)
	if p := b.want(http.StatusOK, "/account/factor", "Your password"); shownKey.MatchString(p.text) || strings.Contains(p.text, `class="qr"`) {
		t.Error("the key is shown for longer than five minutes")
	}
	if p := b.post(http.StatusUnprocessableEntity, "/account/factor/confirm", "code", b.codeNow(key), "current", "x"); !strings.Contains(p.text, "is not your password") {
		t.Error(p.text)
	}
	b.post(http.StatusOK, "/account/factor/confirm", "code", b.codeNow(key), "current", ownPassword)
}

// A person who enrols the first factor in a later session cannot make personal tokens for an hour. The page shows the end of
// that hour.
func TestTokens_waitOnThePage(t *testing.T) {
	t.Parallel()
	b := produce(t)
	token, code := b.invited("ama@example.com", identity.Membership{Tenant: roles.Installation, Role: roles.Owner})
	b.post(http.StatusSeeOther, "/first", "t", token, "code", code, "password", ownPassword)
	b.post(http.StatusSeeOther, "/sign-out")
	b.post(http.StatusSeeOther, "/sign-in", "email", "ama@example.com", "password", ownPassword)
	b.post(http.StatusSeeOther, "/account/factor")
	key := shownKey.FindStringSubmatch(b.get("/account/factor").text)[1]
	b.post(http.StatusOK, "/account/factor/confirm", "code", b.codeNow(key))
	if p := b.want(http.StatusOK, "/account", "Your second factor is new"); strings.Contains(p.text, "Create token") {
		t.Error("the page offers a token")
	}
	b.post(http.StatusForbidden, "/account/tokens", "name", "the laptop")
}

func TestSessions_endOthers(t *testing.T) {
	t.Parallel()
	b := produce(t)
	token, code := b.invited("kofi@example.com", identity.Membership{Tenant: roles.Installation, Role: roles.Auditor})
	b.post(http.StatusSeeOther, "/first", "t", token, "code", code, "password", ownPassword)
	b.get("/").leads(t, "/ops") // an auditor needs no factor
	lost := b.http.Jar
	b.http.Jar = held{}
	b.post(http.StatusSeeOther, "/sign-in", "email", "kofi@example.com", "password", ownPassword)
	p := b.want(http.StatusOK, "/account")
	id := regexp.MustCompile(`name="id" value="([0-9a-f-]{36})"`).FindAllStringSubmatch(p.text, -1)
	if len(id) != 1 {
		t.Fatal(p.text)
	}
	b.post(http.StatusSeeOther, "/account/sessions/end", "id", id[0][1])
	b.clock.Advance(identity.Freshness)
	b.want(http.StatusOK, "/account")
	here := b.http.Jar
	b.http.Jar = lost
	b.want(http.StatusUnauthorized, "/account")
	b.http.Jar = held{}
	b.post(http.StatusSeeOther, "/sign-in", "email", "kofi@example.com", "password", ownPassword)
	lost, b.http.Jar = b.http.Jar, here
	b.want(http.StatusOK, "/account", "Sign out all other sessions")
	b.post(http.StatusSeeOther, "/account/sessions/end")
	b.clock.Advance(identity.Freshness)
	b.want(http.StatusOK, "/account")
	b.http.Jar = lost
	b.want(http.StatusUnauthorized, "/account")
}

// A browser that signs in again has only one session. The older cookie no longer works.
func TestSignIn_endsTheBrowsersOlderSession(t *testing.T) {
	t.Parallel()
	b := produce(t)
	token, code := b.invited("kofi@example.com", identity.Membership{Tenant: roles.Installation, Role: roles.Auditor})
	b.post(http.StatusSeeOther, "/first", "t", token, "code", code, "password", ownPassword)
	older := maps.Clone(b.http.Jar.(held))
	b.http.Jar = held{}
	b.post(http.StatusSeeOther, "/sign-in", "email", "kofi@example.com", "password", ownPassword)
	elsewhere := b.http.Jar
	b.http.Jar = maps.Clone(older)
	b.post(http.StatusSeeOther, "/sign-in", "email", "kofi@example.com", "password", ownPassword)
	b.clock.Advance(identity.Freshness)
	b.want(http.StatusOK, "/account")
	b.http.Jar = older
	b.want(http.StatusUnauthorized, "/account")
	b.http.Jar = elsewhere
	b.want(http.StatusOK, "/account")
}

var shownToken = regexp.MustCompile(`<code id="personal-token">(mk_person_[A-Za-z0-9_-]{43})</code>`)

// A person of the installation makes a personal token after a code of the app, sees it once, and revokes it. The audit log
// marks changes by commands without a person in red.
func TestToken_createdAndRevoked(t *testing.T) {
	t.Parallel()
	b := produce(t)
	member := identitytest.Join(t, b.db, b.clock, b.identity, "yaa@example.com", identity.Membership{Tenant: b.live().ID, Role: roles.Owner})
	b.as(member)
	if p := b.want(http.StatusOK, "/account"); strings.Contains(p.text, "Personal tokens") {
		t.Error("a person of an account is offered a token for commands")
	}
	b.post(http.StatusForbidden, "/account/tokens", "name", "the laptop")
	b.as(b.joins("ama@example.com", roles.Owner))
	b.post(http.StatusUnprocessableEntity, "/account/tokens", "name", " ")
	p := b.post(http.StatusOK, "/account/tokens", "name", "the laptop")
	found := shownToken.FindStringSubmatch(p.text)
	if found == nil {
		t.Fatal(p.text)
	}
	if _, err := b.identity.Bearer(t.Context(), found[1]); err != nil {
		t.Fatal(err)
	}
	p = b.want(http.StatusOK, "/account", "the laptop", "Revoke token")
	if strings.Contains(p.text, found[1]) {
		t.Error("the token is shown again")
	}
	b.post(http.StatusSeeOther, "/account/tokens/end", "id", p.hidden(t, "id")).leads(t, "/account")
	if _, err := b.identity.Bearer(t.Context(), found[1]); !problem.Is(err, problem.Forbidden) {
		t.Fatal(err)
	}
	if err := b.audit.Record(t.Context(), audit.Entry{Actor: audit.BreakGlass + "root", Action: "fees.set", Reason: "at night"}); err != nil {
		t.Fatal(err)
	}
	if p := b.want(http.StatusOK, "/ops/audit", "person.token", "break-glass:root"); !regexp.MustCompile(`class="badge bad"><span aria-hidden="true">[^<]*</span>break-glass:root`).MatchString(p.text) {
		t.Error(p.text)
	}
	b.clock.Advance(identity.StepUpLasts)
	if p := b.post(http.StatusForbidden, "/account/tokens", "name", "the laptop"); !strings.Contains(p.text, "Your entries are kept") {
		t.Error(p.text)
	}
	if marked, err := b.installation.Production(t.Context()); err != nil || !marked {
		t.Fatal("commands do not learn that this is production", marked, err)
	}
}

func TestSignIn_limitNamesTheTime(t *testing.T) {
	t.Parallel()
	b := produce(t)
	b.invited("ama@example.com", identity.Membership{Tenant: roles.Installation, Role: roles.Owner})
	for range 10 {
		b.post(http.StatusUnprocessableEntity, "/sign-in", "email", "ama@example.com", "password", "guess")
	}
	if p := b.post(http.StatusTooManyRequests, "/sign-in", "email", "ama@example.com", "password", "guess"); p.Header.Get("Retry-After") != "61" {
		t.Fatal(p.Header)
	}
}

func TestSetup_ownerOfTheSettings(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(ownPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := produce(t, func(c *config.Server) { c.BootstrapEmail, c.BootstrapFile = "Ops@example.com", file })
	b.post(http.StatusSeeOther, "/sign-in", "email", "ops@example.com", "password", ownPassword).leads(t, "/")
	b.get("/").leads(t, "/account")
	for _, c := range []struct{ text, file string }{{"short\n", file}, {ownPassword, file + "x"}} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := b.cfg
		cfg.Data, cfg.BootstrapFile = t.TempDir(), c.file
		if a, err := Start(context.Background(), cfg, Options{}); err == nil || !strings.Contains(err.Error(), "MAKOLA_BOOTSTRAP_") {
			t.Errorf("%+v: %v, %v", c, a, err)
		}
	}
}

// The audit log records that an operator views a tenant's pages, and that a list is downloaded.
func TestViewAs_isAudited(t *testing.T) {
	t.Parallel()
	b := produce(t)
	shop := b.live()
	ama := b.joins("ama@example.com", roles.Owner)
	b.as(ama)
	for range 3 {
		b.want(http.StatusOK, "/app/"+shop.ID, "You are viewing Adom Stores")
	}
	b.want(http.StatusOK, "/app/"+shop.ID+"/payouts.csv?status=success")
	b.clock.Advance(time.Hour)
	b.post(http.StatusSeeOther, "/sign-in", "email", "ama@example.com", "password", identitytest.Password, "code", b.codeNow(ama.Key))
	b.want(http.StatusOK, "/app/"+shop.ID)
	log, err := b.audit.List(t.Context(), audit.Filter{Tenant: shop.ID})
	if err != nil || len(log) != 3 || log[0].Action != "tenant.view" || log[1].Action != "payments.export" || log[2].Action != "tenant.view" ||
		log[1].Person != ama.Person.ID || log[1].Actor != "ama@example.com" || !strings.Contains(string(log[1].Details.(json.RawMessage)), "status=success") {
		t.Fatalf("%+v, %v", log, err)
	}
}
