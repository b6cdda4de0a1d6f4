package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/makola/makola/internal/page"
)

// owned are the paths of the console: these, and all paths below those that end in a slash. All other paths belong to
// the JSON interface.
var owned = []string{"/", "/account", "/account/", "/first", "/first/again", "/sign-in", "/forgotten", "/forgotten/new", "/sign-out", "/theme", "/app", "/app/", "/ops", "/ops/", "/sim", "/sim/", page.Assets}

// Owns reports whether a path belongs to the console.
func Owns(path string) bool {
	for _, o := range owned {
		if path == o || o != "/" && strings.HasSuffix(o, "/") && strings.HasPrefix(path, o) {
			return true
		}
	}
	return false
}

// Routes returns every route of the console: those of signing in and of one's own account, and the given ones of its sites.
func Routes(sites ...[]Route) []Route {
	return withFormats(append(signRoutes(), slices.Concat(sites...)...))
}

// New builds the console of the routes of its sites.
func New(d Deps, sites ...[]Route) *Console {
	c := &Console{Deps: d, mux: http.NewServeMux(), assets: page.AssetServer(), cross: http.NewCrossOriginProtection()}
	if u, err := url.Parse(d.PublicURL); err == nil && u.Host != "" {
		_ = c.cross.AddTrustedOrigin(u.Scheme + "://" + u.Host) // an invalid address does not make any origin trusted
	}
	c.cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.begin(w, r, nil).refuse(errCrossSite())
	}))
	for _, route := range Routes(sites...) {
		if route.Development && !d.Development {
			continue
		}
		c.mux.Handle(route.Method+" "+route.Path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if o, counted := w.(*observed); counted {
				o.route = route.Path
			}
			c.begin(w, r, &route).run()
		}))
	}
	for _, route := range strayRoutes() {
		c.mux.HandleFunc(route.Method+" "+route.Path, func(w http.ResponseWriter, r *http.Request) { c.begin(w, r, &route).run() })
	}
	c.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { c.begin(w, r, nil).refuse(ErrNoPage()) })
	return c
}

// serve answers one request.
func (c *Console) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case c.ProxiesOnly && !fromProxy(r, c.TrustedProxies):
		c.begin(w, r, nil).refuse(errNotEncrypted())
	case c.Hosts != nil && !c.Hosts(r.Host):
		c.begin(w, r, nil).refuse(errHost())
	case strings.HasPrefix(r.URL.Path, page.Assets):
		c.assets.ServeHTTP(w, r)
	case !c.Development && !c.hasPeople(r.Context()):
		c.begin(w, r, nil).notSetUp()
	default:
		c.cross.Handler(c.mux).ServeHTTP(w, r)
	}
}

// hasPeople reports whether the console of a production server is set up. If the database does not answer it returns
// true, and signing in shows the error.
func (c *Console) hasPeople(ctx context.Context) bool {
	if c.setUp.Load() {
		return true
	}
	set, err := c.Identity.SetUp(ctx)
	if err != nil || set {
		c.setUp.Store(err == nil)
		return true
	}
	return false
}
