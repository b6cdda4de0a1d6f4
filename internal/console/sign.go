package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
)

// cookieName is that of the session: in production one that browsers accept from this host over TLS alone, in
// development one of this installation, because cookies ignore ports.
func (c *Console) cookieName() string {
	if c.Development {
		return "makola-" + c.Installation
	}
	return "__Host-makola"
}

func (c *Console) cookie(token string, lasts time.Duration) *http.Cookie {
	return &http.Cookie{Name: c.cookieName(), Value: token, Path: "/", MaxAge: int(lasts.Seconds()), HttpOnly: true, Secure: !c.Development, SameSite: http.SameSiteLaxMode}
}

const themeCookie = "makola-theme"

// first shows whom a link is for. It uses nothing up: mail programs and browsers look at links by themselves.
func first(v *visit) (answer, error) {
	if v.console.Development && !loopback(v.r) {
		return answer{}, errNoPage()
	}
	token := v.r.FormValue("t")
	l, err := v.console.Identity.Link(v.ctx, token)
	if err != nil {
		return answer{}, err
	}
	if l.Invitation {
		return answer{title: "Welcome", body: choosePassword(l.Person, invitationForm(token))}, nil
	}
	return answer{title: "Sign in", body: signIn(l.Person, token)}, nil
}

// invitationForm asks for a first password.
func invitationForm(token string) page.Form {
	return page.Form{ID: "invitation", Action: "/first", Submit: "Set password and sign in", Fields: []page.Field{{Name: "t", Type: "hidden", Value: token},
		{Name: "code", Label: "Code", Max: 20, Required: true, Auto: "off", Hint: "Eight digits, which somebody tells you apart from the link. Five wrong codes end both."}, newPassword}}
}

var newPassword = page.Field{Name: "password", Label: "New password", Type: "password", Max: identity.MaxPassword, Required: true, Auto: "new-password",
	Hint: "At least 12 characters. A few words that do not belong together are best."}

// signInByLink uses a link up.
func signInByLink(v *visit) (answer, error) {
	if v.console.Development && !loopback(v.r) {
		return answer{}, errNoPage()
	}
	token, password := v.r.PostFormValue("t"), v.r.PostForm["password"]
	if len(password) == 0 {
		session, err := v.console.Identity.SignIn(v.ctx, token, v.r.UserAgent())
		return v.signedIn(session, err, "/")
	}
	session, err := v.console.Identity.Accept(v.ctx, token, v.r.PostFormValue("code"), password[0], v.r.UserAgent(), v.from())
	if problem.Is(err, problem.Invalid) {
		l, linkErr := v.console.Identity.Link(v.ctx, token)
		return answer{title: "Welcome", wrong: true, body: choosePassword(l.Person, faulty(invitationForm(token), err))}, linkErr
	}
	return v.signedInWithPassword(session, err, "/account")
}

// signedIn gives the browser its session and leads on. It ends the session that the browser had before, because its cookie
// is replaced and the person could no longer end it.
func (v *visit) signedIn(token string, err error, to string) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	if before, err := v.r.Cookie(v.console.cookieName()); err == nil && before.Value != "" {
		if err := v.console.Identity.SignOut(v.ctx, before.Value); err != nil {
			return answer{}, err
		}
	}
	http.SetCookie(v.w, v.console.cookie(token, identity.Longest))
	return answer{to: to}, nil
}

// signedInWithPassword is signedIn, and the browser becomes known to the person.
func (v *visit) signedInWithPassword(token string, err error, to string) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	device, err := v.console.Identity.NewDevice(v.ctx, token)
	if err == nil && device != "" {
		http.SetCookie(v.w, v.console.deviceCookie(device))
	}
	return v.signedIn(token, err, to)
}

// deviceCookie remembers that a person signed in with this browser. It stays when they sign out.
func (c *Console) deviceCookie(device string) *http.Cookie {
	cookie := c.cookie(device, identity.DeviceLasts)
	cookie.Name += deviceSuffix
	cookie.SameSite = http.SameSiteStrictMode
	return cookie
}

// deviceSuffix follows the name of the session's cookie.
const deviceSuffix = "-device"

// device is what the browser was given when a person last signed in with it; empty: nothing.
func (v *visit) device() string {
	cookie, err := v.r.Cookie(v.console.cookieName() + deviceSuffix)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// faulty puts the texts of a refusal beside the fields of a form.
func faulty(f page.Form, err error) page.Form {
	e := problem.From(err)
	f.Fields = slices.Clone(f.Fields)
	for i := range f.Fields {
		if texts := e.Fields[f.Fields[i].Name]; len(texts) > 0 {
			f.Fields[i].Wrong = strings.Join(texts, ", ")
		}
	}
	if len(e.Fields) == 0 {
		f.Wrong = sentence(e.Message)
	}
	return f
}

// signInForm asks for all that a person proves themselves with, so that nothing tells which of it was wrong.
func signInForm(email, back string) page.Form {
	return page.Form{ID: "sign-in", Action: "/sign-in", Submit: "Sign in", Fields: []page.Field{
		{Name: "back", Type: "hidden", Value: back},
		{Name: "email", Label: "E-mail address", Type: "email", Value: email, Max: 254, Required: true, Auto: "username"},
		{Name: "password", Label: "Password", Type: "password", Max: identity.MaxPassword, Required: true, Auto: "current-password"},
		{Name: "code", Label: "Code of your app", Max: 40, Auto: "one-time-code", Hint: "Or a recovery code. Empty if you have not set up an app."},
	}}
}

// waysIn are the ways to sign in: on a development server the link first.
func (v *visit) waysIn(f page.Form, back string) templ.Component {
	if len(f.Fields) == 0 {
		f = signInForm("", back)
	}
	if !v.console.Development {
		return page.Asking(f)
	}
	return page.Join(signInHelp(v.console.NewLink != nil && loopback(v.r), v.r.URL.Query().Has("again")), withPassword(f))
}

// backHere is this page, where it can be opened again.
func (v *visit) backHere() string {
	if v.r.Method != http.MethodGet || v.route == nil || v.route.Site == public {
		return "/"
	}
	return v.query()
}

// signInByPassword begins the session of a person.
func signInByPassword(v *visit) (answer, error) {
	back, email := local(v.r.PostFormValue("back")), v.r.PostFormValue("email")
	token, err := v.console.Identity.SignInWithPassword(v.ctx, identity.Attempt{
		Email: email, Password: v.r.PostFormValue("password"), Code: v.r.PostFormValue("code"), Agent: v.r.UserAgent(), From: v.from(), Device: v.device()})
	limited := problem.Is(err, problem.RateLimited)
	if limited || problem.Is(err, problem.Unauthenticated) {
		form := faulty(signInForm(email, back), err)
		if limited {
			v.w.Header().Set("Retry-After", strconv.Itoa(int(problem.From(err).RetryAfter.Seconds()+1)))
		}
		return answer{title: "Sign in", wrong: true, limit: limited, body: signInBody(form)}, nil
	}
	return v.signedInWithPassword(token, err, back)
}

// linkAgain prints a new link where the server was started: who reads it there may sign in.
func linkAgain(v *visit) (answer, error) {
	c := v.console
	if c.NewLink == nil || !loopback(v.r) {
		return answer{}, errNoPage()
	}
	c.mu.Lock()
	now := c.Clock.Elapsed()
	soon := now < c.linkFrom
	if !soon {
		c.linkFrom = now + linkEvery
	}
	c.mu.Unlock()
	if !soon {
		if err := c.NewLink(v.ctx); err != nil {
			return answer{}, err
		}
	}
	return answer{to: "/sign-in?again=1"}, nil
}

// signInPage says how to sign in.
func signInPage(v *visit) (answer, error) {
	text := "With the e-mail address and the password of your account."
	if v.console.Development {
		text = "Open the sign-in link that the server printed when it started."
	}
	return answer{title: "Sign in", body: page.Message("Sign in", text, v.waysIn(page.Form{}, local(v.param("back"))))}, nil
}

func signOut(v *visit) (answer, error) {
	if cookie, err := v.r.Cookie(v.console.cookieName()); err == nil {
		if err := v.console.Identity.SignOut(v.ctx, cookie.Value); err != nil {
			return answer{}, err
		}
	}
	http.SetCookie(v.w, v.console.cookie("", -time.Second))
	return answer{to: "/sign-in"}, nil
}

// setTheme remembers the colours that a browser wants.
func setTheme(v *visit) (answer, error) {
	theme := v.r.PostFormValue("theme")
	cookie := &http.Cookie{Name: themeCookie, Value: theme, Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, Secure: !v.console.Development, SameSite: http.SameSiteLaxMode}
	if theme != "light" && theme != "dark" {
		cookie.Value, cookie.MaxAge = "", -1
	}
	http.SetCookie(v.w, cookie)
	return answer{to: local(v.r.PostFormValue("back"))}, nil
}

// theme is what the browser wants; empty: as its system says.
func (v *visit) theme() string {
	cookie, err := v.r.Cookie(themeCookie)
	if err != nil || cookie.Value != "light" && cookie.Value != "dark" {
		return ""
	}
	return cookie.Value
}

// start leads where a person belongs.
func start(v *visit) (answer, error) {
	if v.who.Operator() {
		return answer{to: "/ops"}, nil
	}
	if len(v.who.Memberships) == 1 {
		return answer{to: "/app/" + v.who.Memberships[0].Tenant}, nil
	}
	var links []page.Link
	for _, m := range v.who.Memberships {
		t, err := v.console.Tenants.Get(v.ctx, m.Tenant)
		if err != nil {
			return answer{}, err
		}
		links = append(links, page.Link{Href: "/app/" + t.ID, Text: t.Name})
	}
	return answer{title: "Where to", body: choice(links)}, nil
}
