package console

import (
	"net/http"
	"time"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
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

// first shows whom a sign-in link is for. It uses nothing up: mail programs and browsers look at links by themselves.
func first(v *visit) (answer, error) {
	if !loopback(v.r) {
		return answer{}, errNoPage()
	}
	token := v.r.FormValue("t")
	l, err := v.console.Identity.Link(v.ctx, token)
	if err != nil {
		return answer{}, err
	}
	return answer{title: "Sign in", body: signIn(l.Person, token)}, nil
}

// signInByLink uses a link up.
func signInByLink(v *visit) (answer, error) {
	if !loopback(v.r) {
		return answer{}, errNoPage()
	}
	token, err := v.console.Identity.SignIn(v.ctx, v.r.PostFormValue("t"), v.r.UserAgent())
	if err != nil {
		return answer{}, err
	}
	http.SetCookie(v.w, v.console.cookie(token, identity.Longest))
	return answer{to: "/"}, nil
}

// linkAgain prints a new link where the server was started: who reads it there may sign in.
func linkAgain(v *visit) (answer, error) {
	c := v.console
	if c.NewLink == nil || !loopback(v.r) {
		return answer{}, errNoPage()
	}
	c.mu.Lock()
	soon := c.Clock.Now().Before(c.linkedAt.Add(linkEvery))
	if !soon {
		c.linkedAt = c.Clock.Now()
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
	help := signInHelp(v.console.NewLink != nil && loopback(v.r), v.r.URL.Query().Has("again"))
	return answer{title: "Sign in", body: page.Message("Sign in", "Open the sign-in link that the server printed when it started.", help)}, nil
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
