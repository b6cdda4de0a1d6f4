package console

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
)

func signRoutes() []Route {
	token, back, code := Input{"t", 100}, Input{"back", 2000}, Input{"code", 40}
	routes := []Route{
		{Method: http.MethodGet, Path: "/{$}", Site: Anyone, Handle: start},
		{Method: http.MethodGet, Path: "/first", Inputs: []Input{token}, Handle: first},
		{Method: http.MethodPost, Path: "/first", Inputs: []Input{token, {"password", identity.MaxPassword + 1}}, Handle: signInByLink},
		{Method: http.MethodPost, Path: "/first/again", Development: true, Handle: linkAgain},
		{Method: http.MethodGet, Path: "/sign-in", Inputs: []Input{{"again", 1}, back}, Handle: signInPage},
		{Method: http.MethodPost, Path: "/sign-in", Inputs: []Input{{"email", 254}, {"password", identity.MaxPassword + 1}, code, back}, Handle: signInByPassword},
		{Method: http.MethodPost, Path: "/sign-out", Handle: signOut},
		{Method: http.MethodPost, Path: "/theme", Inputs: []Input{{"theme", 10}, back}, Handle: setTheme},
	}
	routes = append(routes, forgottenRoutes()...)
	own := []Route{
		{Method: http.MethodGet, Path: "/account", Handle: account},
		{Method: http.MethodGet, Path: "/account/notices", Handle: ownNotices},
		{Method: http.MethodPost, Path: "/account/notices", Inputs: noticeInputs(), Handle: chooseNotices},
		{Method: http.MethodPost, Path: "/account/notices/test", Inputs: []Input{{"channel", 10}}, Handle: testNotice},
		{Method: http.MethodPost, Path: "/account/notices/phone", Inputs: []Input{{"number", 40}}, Handle: setPhone},
		{Method: http.MethodPost, Path: "/account/password", Inputs: []Input{{"current", identity.MaxPassword + 1}, {"password", identity.MaxPassword + 1}}, Handle: changePassword},
		{Method: http.MethodPost, Path: "/account/factor", Inputs: []Input{{"current", identity.MaxPassword + 1}}, Handle: beginFactor},
		{Method: http.MethodGet, Path: "/account/factor", Handle: factorPage},
		{Method: http.MethodPost, Path: "/account/factor/confirm", Inputs: []Input{code, {"current", identity.MaxPassword + 1}}, Handle: confirmFactor},
		{Method: http.MethodPost, Path: "/account/recovery-codes", Handle: renewCodes},
		{Method: http.MethodPost, Path: "/account/sessions/end", Inputs: []Input{{"id", 36}}, Handle: endSession},
		{Method: http.MethodPost, Path: "/account/tokens", Inputs: []Input{{"name", 240}}, Handle: makeToken, Resume: resumeToken},
		{Method: http.MethodPost, Path: "/account/tokens/end", Inputs: []Input{{"id", 36}}, Handle: endToken},
		{Method: http.MethodGet, Path: "/account/step-up", Inputs: []Input{back}, Handle: stepUpPage},
		{Method: http.MethodPost, Path: "/account/step-up", Inputs: []Input{code, back, {"kept", mostKept}}, Handle: stepUp},
	}
	for i := range own {
		own[i].Site, own[i].Unready = Anyone, true
	}
	return append(routes, own...)
}

// first shows the person of a link. It does not use the link, because mail programs and browsers open links by themselves.
func first(v *Visit) (Answer, error) {
	if v.console.Development && !loopback(v.R) {
		return Answer{}, ErrNoPage()
	}
	token := v.R.FormValue("t")
	l, err := v.console.Identity.Link(v.Ctx, token)
	if err != nil {
		return Answer{}, err
	}
	if l.Invitation {
		return Answer{Title: "Welcome", Body: choosePassword(l.Person, invitationForm(token))}, nil
	}
	return Answer{Title: "Sign in", Body: signIn(l.Person, token)}, nil
}

// invitationForm is the form for a first password.
func invitationForm(token string) page.Form {
	return page.Form{ID: "invitation", Action: "/first", Submit: "Set password and sign in", Fields: []page.Field{{Name: "t", Type: "hidden", Value: token},
		{Name: "code", Label: "Code", Max: 20, Required: true, Auto: "off", Hint: "Enter the eight digits that you received separately from the link. Five wrong codes cancel the invitation."}, newPassword}}
}

// signInByLink uses a link.
func signInByLink(v *Visit) (Answer, error) {
	if v.console.Development && !loopback(v.R) {
		return Answer{}, ErrNoPage()
	}
	token, password := v.R.PostFormValue("t"), v.R.PostForm["password"]
	if len(password) == 0 {
		session, err := v.console.Identity.SignIn(v.Ctx, token, v.R.UserAgent())
		return v.signedIn(session, err, "/")
	}
	session, err := v.console.Identity.Accept(v.Ctx, token, v.R.PostFormValue("code"), password[0], v.R.UserAgent(), v.from())
	if problem.Is(err, problem.Invalid) {
		l, linkErr := v.console.Identity.Link(v.Ctx, token)
		return Answer{Title: "Welcome", Wrong: true, Body: choosePassword(l.Person, Faulty(invitationForm(token), err))}, linkErr
	}
	return v.signedInWithPassword(session, err, "/account")
}

// signedIn gives the browser its session. It ends the browser's former session, because the person could no longer end it
// after its cookie is replaced.
func (v *Visit) signedIn(token string, err error, to string) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	if before, err := v.R.Cookie(v.console.cookieName()); err == nil && before.Value != "" {
		if err := v.console.Identity.SignOut(v.Ctx, before.Value); err != nil {
			return Answer{}, err
		}
	}
	http.SetCookie(v.W, v.console.cookie(token, identity.Longest))
	return Answer{To: to}, nil
}

// signedInWithPassword is signedIn for a browser that becomes known.
func (v *Visit) signedInWithPassword(token string, err error, to string) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}
	device, err := v.console.Identity.NewDevice(v.Ctx, token)
	if err == nil && device != "" {
		http.SetCookie(v.W, v.console.deviceCookie(device))
	}
	return v.signedIn(token, err, to)
}

// device returns the device cookie of a known browser. It is empty for an unknown one.
func (v *Visit) device() string {
	cookie, err := v.R.Cookie(v.console.cookieName() + deviceSuffix)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// signInByPassword starts a session.
func signInByPassword(v *Visit) (Answer, error) {
	back, email := local(v.R.PostFormValue("back")), v.R.PostFormValue("email")
	token, err := v.console.Identity.SignInWithPassword(v.Ctx, identity.Attempt{
		Email: email, Password: v.R.PostFormValue("password"), Code: v.R.PostFormValue("code"), Agent: v.R.UserAgent(), From: v.from(), Device: v.device()})
	limited := problem.Is(err, problem.RateLimited)
	if limited || problem.Is(err, problem.Unauthenticated) {
		form := Faulty(signInForm(email, back), err)
		if limited {
			v.W.Header().Set("Retry-After", strconv.Itoa(int(problem.From(err).RetryAfter.Seconds()+1)))
		}
		return Answer{Title: "Sign in", Wrong: true, Limit: limited, Body: signInBody(form)}, nil
	}
	return v.signedInWithPassword(token, err, back)
}

// linkAgain prints a new sign-in link in the terminal of the server.
func linkAgain(v *Visit) (Answer, error) {
	c := v.console
	if c.NewLink == nil || !loopback(v.R) {
		return Answer{}, ErrNoPage()
	}
	c.mu.Lock()
	now := c.Clock.Elapsed()
	soon := now < c.linkFrom
	if !soon {
		c.linkFrom = now + linkEvery
	}
	c.mu.Unlock()
	if !soon {
		if err := c.NewLink(v.Ctx); err != nil {
			return Answer{}, err
		}
	}
	return Answer{To: "/sign-in?again=1"}, nil
}

// signInPage shows the ways to sign in.
func signInPage(v *Visit) (Answer, error) {
	text := "Enter the e-mail address and password of your account."
	if v.console.Development {
		text = "Open the sign-in link that the server printed when it started."
	}
	return Answer{Title: "Sign in", Body: page.Message("Sign in", text, page.Join(v.waysIn(page.Form{}, local(v.Param("back"))), forgottenLink(v)))}, nil
}

func signOut(v *Visit) (Answer, error) {
	if cookie, err := v.R.Cookie(v.console.cookieName()); err == nil {
		if err := v.console.Identity.SignOut(v.Ctx, cookie.Value); err != nil {
			return Answer{}, err
		}
	}
	http.SetCookie(v.W, v.console.cookie("", -time.Second))
	return Answer{To: "/sign-in"}, nil
}

// setTheme stores the theme of a browser.
func setTheme(v *Visit) (Answer, error) {
	theme := v.R.PostFormValue("theme")
	cookie := &http.Cookie{Name: themeCookie, Value: theme, Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true, Secure: !v.console.Development, SameSite: http.SameSiteLaxMode}
	if theme != "light" && theme != "dark" {
		cookie.Value, cookie.MaxAge = "", -1
	}
	http.SetCookie(v.W, cookie)
	return Answer{To: local(v.R.PostFormValue("back"))}, nil
}

// start redirects to the first page of the visitor.
func start(v *Visit) (Answer, error) {
	if v.Who.Operator() {
		return Answer{To: cmp.Or(v.console.Home, "/ops")}, nil
	}
	if len(v.Who.Memberships) == 1 {
		return Answer{To: "/app/" + v.Who.Memberships[0].Tenant}, nil
	}
	var links []page.Link
	for _, m := range v.Who.Memberships {
		t, err := v.console.Tenants.Get(v.Ctx, m.Tenant)
		if err != nil {
			return Answer{}, err
		}
		links = append(links, page.Link{Href: "/app/" + t.ID, Text: t.Name})
	}
	return Answer{Title: "Choose an account", Body: choice(links)}, nil
}
