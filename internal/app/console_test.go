package app

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/identitytest"
)

// browsed is a development server with a browser that is signed in, or not yet.
type browsed struct {
	*App
	t     *testing.T
	base  string
	http  *http.Client
	agent string // user agent of the browser; empty: Go's default
}

func browse(t *testing.T, change ...func(*config.Server)) *browsed {
	t.Helper()
	return browseWith(t, Options{}, change...)
}

func browseWith(t *testing.T, o Options, change ...func(*config.Server)) *browsed {
	t.Helper()
	cfg := config.Server{Environment: "development", Listen: "127.0.0.1:0", Connections: 8, DrainFor: time.Minute, Storage: freshStorage(t, db.SQLite)}
	for _, c := range change {
		c(&cfg)
	}
	o.HashMemory = identitytest.HashMemory
	a, err := Start(context.Background(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b := &browsed{App: a, t: t, base: strings.TrimSuffix(a.ready.ConsoleURL, "/")}
	b.forget()
	return b
}

// freshStorage is a migrated database without rows, and a data folder. A server that begins with an empty folder is started by
// TestBanner_hasWorkingExamples.
func freshStorage(t testing.TB, engine db.Engine) config.Storage {
	t.Helper()
	s := config.Storage{Data: t.TempDir()}
	if engine == db.Postgres {
		s.Database = dbtest.URL(t)
	} else {
		dbtest.File(t, s.SQLite())
	}
	return s
}

// forget deletes the cookies.
func (b *browsed) forget() {
	jar, _ := cookiejar.New(nil) // without options it never fails
	b.http = &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// page is the answer of a server.
type page struct {
	*http.Response
	text string
}

func (b *browsed) do(method, path string, form url.Values, headers ...string) page {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return b.read(r)
}

// read sends a request and reads the whole answer.
func (b *browsed) read(r *http.Request) page {
	b.t.Helper()
	if b.agent != "" {
		r.Header.Set("User-Agent", b.agent)
	}
	answer, err := b.http.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return page{answer, string(text)}
}

func (b *browsed) get(path string) page { return b.do(http.MethodGet, path, nil) }

// want fetches a page. It fails the test if the status differs or a text is missing.
func (b *browsed) want(status int, path string, texts ...string) page {
	b.t.Helper()
	p := b.get(path)
	if p.StatusCode != status {
		b.t.Fatalf("GET %s: %d, not %d: %s", path, p.StatusCode, status, p.text)
	}
	for _, text := range texts {
		if !strings.Contains(p.text, text) {
			b.t.Errorf("GET %s lacks %q: %s", path, text, p.text)
		}
	}
	return p
}

var linkToken = regexp.MustCompile(`[?&]t=([A-Za-z0-9_-]+)`)

// signIn goes through a sign-in link as a person does.
func (b *browsed) signIn(link string) {
	b.t.Helper()
	token := linkToken.FindStringSubmatch(link)
	if token == nil {
		b.t.Fatalf("the link is %q", link)
	}
	b.want(http.StatusOK, "/first?t="+token[1], "Sign in")
	p := b.do(http.MethodPost, "/first", url.Values{"t": {token[1]}})
	if p.StatusCode != http.StatusSeeOther || p.Header.Get("Location") != "/" {
		b.t.Fatalf("signing in: %d %s", p.StatusCode, p.text)
	}
}

// become signs in as a person with these roles.
func (b *browsed) become(email string, roles ...identity.Membership) {
	b.t.Helper()
	p, err := b.identity.Ensure(b.t.Context(), email, "Somebody", roles)
	if err != nil {
		b.t.Fatal(err)
	}
	token, err := b.identity.NewLink(b.t.Context(), p.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	b.forget()
	b.signIn("?t=" + token)
}

func TestBanner_linkSignsInOnce(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.want(http.StatusUnauthorized, "/", "Sign in")
	b.signIn(b.ready.SignInURL)
	cookies := b.http.Jar.Cookies(mustParse(t, b.base))
	if len(cookies) != 1 || !strings.HasPrefix(cookies[0].Name, "makola-") {
		t.Fatalf("cookies: %v", cookies)
	}
	if p := b.get("/"); p.StatusCode != http.StatusSeeOther || p.Header.Get("Location") != "/app/"+b.ready.TenantID {
		t.Errorf("the owner is led to %d %s", p.StatusCode, p.Header.Get("Location"))
	}
	token := linkToken.FindStringSubmatch(b.ready.SignInURL)[1]
	b.want(http.StatusUnauthorized, "/first?t="+token)
	if p := b.do(http.MethodPost, "/first", url.Values{"t": {token}}); p.StatusCode != http.StatusUnauthorized {
		t.Errorf("the link again: %d", p.StatusCode)
	}
	if p := b.do(http.MethodPost, "/sign-out", nil); p.StatusCode != http.StatusSeeOther {
		t.Errorf("signing out: %d", p.StatusCode)
	}
	b.want(http.StatusUnauthorized, "/")
	stolen := &http.Cookie{Name: cookies[0].Name, Value: cookies[0].Value}
	b.http.Jar.SetCookies(mustParse(t, b.base), []*http.Cookie{stolen})
	b.want(http.StatusUnauthorized, "/") // the session has ended, so its token does not work any more
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestCSRF_otherSitesAreRefused(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.ready.SignInURL)
	for _, r := range consoleRoutes() {
		if r.Method != http.MethodPost || r.Machine {
			continue
		}
		for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "", "Origin", "https://evil.example"}} {
			if p := b.do(http.MethodPost, filled(r.Path), nil, headers...); p.StatusCode != http.StatusForbidden {
				t.Errorf("%s with %v: %d", r.Path, headers, p.StatusCode)
			}
		}
	}
	b.want(http.StatusSeeOther, "/") // still signed in
}

// filled replaces the parameters of a route by values.
func filled(path string) string {
	path = strings.ReplaceAll(path, "{$}", "")
	path = strings.ReplaceAll(path, "{tenant}", demoTenant)
	return regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(path, "00000000-0000-7000-8000-000000000000")
}

func TestHeaders_ofEveryPage(t *testing.T) {
	t.Parallel()
	b := browse(t)
	for _, path := range []string{"/", "/sign-in", "/first?t=x", "/ops/nothing"} {
		h := b.get(path).Header
		if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %q", path, csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

func TestPaths_interfaceBeforeConsole(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.ready.SignInURL)
	for _, path := range []string{"/api", "/api/v1", "/api/v1/nothing", "/nothing", "/application", "/opsx", "/simulator", "/callbacks/x", "/firsts", "//", "/ops/../api/v1"} {
		p := b.get(path)
		if path == "/ops/../api/v1" { // a browser never requests such a path
			continue
		}
		if !strings.HasPrefix(p.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: %d %s", path, p.StatusCode, p.Header.Get("Content-Type"))
		}
	}
	if p := b.do(http.MethodGet, "/sim/v1/transactions?reference=x", nil); !strings.HasPrefix(p.Header.Get("Content-Type"), "application/json") {
		t.Errorf("the simulator's control: %s", p.Header.Get("Content-Type"))
	}
}

// Each route, for reading or writing, accepts exactly the roles that the policy lists.
func TestRoutes_needTheirPermission(t *testing.T) {
	t.Parallel()
	b := browse(t)
	try := func(email string, at string, site roles.Site, role roles.Role) {
		b.become(email, identity.Membership{Tenant: at, Role: role})
		for _, r := range consoleRoutes() {
			if !r.Guarded() {
				continue
			}
			status := b.do(r.Method, filled(r.Path), nil).StatusCode
			refused := status == http.StatusForbidden
			hidden := status == http.StatusNotFound
			switch may := r.Allows(site, role); {
			case may && !roles.Can(site, role, r.Permission):
				t.Errorf("%s %s: %s gives more than the role has", site, role, r.Path)
			case may && refused:
				t.Errorf("%s %s: %s %s is refused", site, role, r.Method, r.Path)
			case !may && !refused && !hidden:
				t.Errorf("%s %s: %s %s answers %d", site, role, r.Method, r.Path, status)
			}
		}
	}
	for _, role := range roles.At(roles.TenantSite) {
		try(string(role)+"@tenant.example", demoTenant, roles.TenantSite, role)
	}
	for _, role := range roles.At(roles.InstallationSite) {
		try(string(role)+"@installation.example", roles.Installation, roles.InstallationSite, role)
	}
	b.become("stranger@example.com", identity.Membership{Tenant: "another", Role: roles.Owner})
	for _, r := range consoleRoutes() {
		if !r.Guarded() {
			continue
		}
		if status := b.do(r.Method, filled(r.Path), nil).StatusCode; status != http.StatusForbidden && status != http.StatusNotFound {
			t.Errorf("the owner of another tenant: %s answers %d", r.Path, status)
		}
	}
}

func TestTheme_isRemembered(t *testing.T) {
	t.Parallel()
	b := browse(t)
	for back, want := range map[string]string{"/sign-in?again=1": "/sign-in?again=1", "https://evil.example": "/", "//evil.example": "/", `/\evil.example`: "/", "": "/"} {
		if p := b.do(http.MethodPost, "/theme", url.Values{"theme": {"dark"}, "back": {back}}); p.Header.Get("Location") != want {
			t.Errorf("back to %q leads to %q", back, p.Header.Get("Location"))
		}
	}
	b.want(http.StatusOK, "/sign-in", `data-theme="dark"`)
	b.do(http.MethodPost, "/theme", url.Values{"theme": {`"><script>`}})
	b.want(http.StatusOK, "/sign-in", `data-theme=""`)
}

func TestBanner_newLinkInTerminalOnly(t *testing.T) {
	t.Parallel()
	b := browse(t)
	var screen strings.Builder
	b.opts.Out = &screen
	p := b.do(http.MethodPost, "/first/again", nil)
	if p.StatusCode != http.StatusSeeOther || linkToken.MatchString(p.text+p.Header.Get("Location")) {
		t.Fatalf("%d %s %s", p.StatusCode, p.Header.Get("Location"), p.text)
	}
	printed := screen.String()
	b.do(http.MethodPost, "/first/again", nil) // too soon
	if screen.String() != printed {
		t.Error("a second link within seconds")
	}
	b.signIn(printed)
	if p := b.do(http.MethodPost, "/first/again", nil, "X-Forwarded-For", "203.0.113.9"); p.StatusCode != http.StatusNotFound {
		t.Errorf("from another machine: %d", p.StatusCode)
	}
}

// consoleRoutes returns every route of the console of a development server.
func consoleRoutes() []console.Route {
	a := &App{sim: &simulator{}}
	sites, _ := a.pages(func(string) []byte { return nil })
	return console.Routes(sites...)
}
