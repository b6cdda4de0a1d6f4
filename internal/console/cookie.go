package console

import (
	"net/http"
	"time"

	"github.com/makola/makola/internal/identity"
)

// cookieName is the name of the session's cookie. In production browsers accept it over TLS only, for this host only.
// In development it contains the installation, because cookies ignore ports.
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

// deviceCookie remembers that a person signed in with this browser. It stays when they sign out.
func (c *Console) deviceCookie(device string) *http.Cookie {
	cookie := c.cookie(device, identity.DeviceLasts)
	cookie.Name += deviceSuffix
	cookie.SameSite = http.SameSiteStrictMode
	return cookie
}

// deviceSuffix follows the name of the session's cookie.
const deviceSuffix = "-device"
