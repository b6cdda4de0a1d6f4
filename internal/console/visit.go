package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// Visit is one request of a browser while it is processed.
type Visit struct {
	console *Console
	W       http.ResponseWriter
	R       *http.Request
	Ctx     context.Context
	id      string // of the request
	Route   *Route // nil: there is no such page

	Who     identity.Visitor
	Tenant  tenant.Tenant // of /app/{tenant}
	Role    roles.Role    // role at Tenant, or at the installation
	Viewing bool          // an operator views a tenant's pages
	live    []livePart
	// FormPage is the page with the form that the request sent. Empty means the start page.
	FormPage string
	Home     *url.URL       // URL of the page, if the request went to another one; nil: this one
	waiting  map[string]int // counts by path of the navigation
}

// Answer is the result of a handler: a page, a part of one, a file, or a redirect.
type Answer struct {
	Title string
	Body  templ.Component
	Wrong bool                                    // the page is a form that was refused
	Limit bool                                    // the form was refused because of too many requests
	To    string                                  // leads there
	Part  templ.Component                         // only this part, for a page that requested it; see also same
	Same  bool                                    // nothing changed since the page requested it last
	File  string                                  // name of a file
	Media string                                  // its Content-Type
	Write func(w http.ResponseWriter) error       // writes it
	Raw   func(w http.ResponseWriter, status int) // writes the whole answer itself
}

func (c *Console) begin(w http.ResponseWriter, r *http.Request, route *Route) *Visit {
	v := &Visit{console: c, W: w, R: r, Ctx: r.Context(), id: api.RequestID(r), Route: route}
	page.Secure(w.Header())
	w.Header().Set("X-Request-Id", v.id)
	return v
}

// run answers the request of a route, or shows why it is refused.
func (v *Visit) run() {
	within := AnswerWithin
	if v.Route.File || v.Route.Slow {
		within = exportWithin
	}
	ctx, cancel := context.WithTimeout(v.Ctx, within)
	defer cancel()
	v.Ctx = ctx
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			v.refuse(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	if !isText(v.R.URL.Path) {
		v.refuse(ErrNoPage())
		return
	}
	if err := v.admit(); err != nil {
		v.refuse(err)
		return
	}
	v.R.Body = http.MaxBytesReader(v.W, v.R.Body, v.Route.body())
	if v.R.Method == http.MethodPost && v.Route.reads() {
		if err := v.R.ParseForm(); err != nil {
			v.refuse(problem.Wrap(err, problem.Malformed, "form_unreadable", "The form did not arrive completely. Go back and submit it again."))
			return
		}
	}
	if err := v.checkForm(); err != nil {
		v.refuse(err)
		return
	}
	a, err := v.handle()(v)
	if err == nil && v.exports() {
		if err = v.console.exporting.begin(v.Who.Person.ID); err == nil {
			defer v.console.exporting.end(v.Who.Person.ID)
		}
	}
	if err == nil {
		err = v.record()
	}
	if err != nil {
		v.refuse(err)
		return
	}
	v.give(a)
}

// handle returns the handler of the request: the route's own or, after a code, the handler that shows the form again.
func (v *Visit) handle() func(*Visit) (Answer, error) {
	if v.R.Context().Value(resumed{}) == nil {
		return v.Route.Handle
	}
	if v.Route.Resume == nil {
		return func(*Visit) (Answer, error) { return Answer{}, ErrNoPage() }
	}
	return v.Route.Resume
}

// admit identifies the visitor and checks the permission of the route.
func (v *Visit) admit() error {
	if v.Route.Site == Public {
		return nil
	}
	cookie, err := v.R.Cookie(v.console.cookieName())
	if err != nil {
		return problem.New(problem.Unauthenticated, "not_signed_in", "Sign in to see this page")
	}
	if v.Who, err = v.console.Identity.Visit(v.Ctx, cookie.Value, !v.polls()); err != nil {
		return err
	}
	api.MarkKnown(v.W)
	if err := v.ready(); err != nil {
		return err
	}
	switch v.Route.Site {
	case Anyone:
		return nil
	case Operators:
		v.Role = v.Who.Role(roles.Installation)
	case Tenants:
		if err := v.enter(v.R.PathValue("tenant")); err != nil {
			return err
		}
	}
	for _, p := range []roles.Permission{v.Route.Permission, v.Route.Also} {
		if p != "" && !v.Can(p) {
			return errNotAllowed(p)
		}
	}
	if v.console.Stopped != nil && v.Route.moves() {
		return v.console.Stopped()
	}
	return nil
}

// exportWithin is the most time that a file may take.
const exportWithin = 60 * time.Second

// viewedEvery is how often the audit log records that an operator views a tenant's pages.
const viewedEvery = time.Hour

// Entry returns the audit entry of an action of the visitor.
func (v *Visit) Entry(action, tenantID, subject string) audit.Entry {
	return audit.Entry{Actor: v.Who.Person.Email, Person: v.Who.Person.ID, Origin: v.Origin(), Action: action, Tenant: tenantID, Subject: subject}
}

// Origin returns the visitor's address. It is empty if the address is not known.
func (v *Visit) Origin() string {
	if from := v.from(); from.IsValid() {
		return from.String()
	}
	return ""
}

// Use counts a use of an action that each person may do a limited number of times an hour, and writes the entry into
// the audit log.
func (v *Visit) Use(of identity.Limit, key string, e audit.Entry) error {
	return v.console.Identity.Use(v.Ctx, of, v.Who.Person.ID, key, e)
}

// record writes into the audit log, before anything is shown, that an operator views a tenant's pages or that a list
// is exported.
func (v *Visit) record() error {
	switch {
	case v.exports():
		e := v.Entry("payments.export", v.Tenant.ID, v.Route.Path)
		e.Details = map[string]any{"filter": v.R.URL.RawQuery, "viewing": v.Viewing}
		return v.Use(identity.Exports, keyOf(v.R.URL.Path, v.R.URL.RawQuery), e)
	case v.Route.File, !v.Viewing:
		return nil
	}
	key := v.Who.Session.ID + " " + v.Tenant.ID
	if !v.console.viewed.first(key, v.console.Clock.Now().Truncate(viewedEvery)) {
		return nil
	}
	err := v.console.Audit.RecordOnce(v.Ctx, key, viewedEvery, v.Entry("tenant.view", v.Tenant.ID, v.Tenant.ID))
	if err != nil {
		v.console.viewed.forget(key)
	}
	return err
}

// exports reports whether the request asks for a list as a file.
func (v *Visit) exports() bool { return v.Route.File && v.R.Method == http.MethodGet }

// keyOf returns a hash of texts, which is a key of a fixed length.
func keyOf(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	return hex.EncodeToString(sum[:16])
}

// ready refuses, in production, a visitor who has to set up a password or a second factor first.
func (v *Visit) ready() error {
	if password, factor := v.Who.Lacks(); v.console.Development || v.Route.Unready || !password && !factor {
		return nil
	}
	return problem.New(problem.Forbidden, codeNotReady, "Your role needs a second factor. Set it up on the page of your account first")
}

// enter finds the tenant of the path and the visitor's role there. A tenant at which the visitor has no role gets the
// same response as one that does not exist.
func (v *Visit) enter(id string) error {
	v.Role = v.Who.Role(id)
	if v.Role == "" && (v.R.Method == http.MethodGet || v.R.Method == http.MethodHead) && v.Who.Can(roles.Installation, roles.ViewAs) {
		v.Role, v.Viewing = roles.Auditor, true
	}
	if id == roles.Installation || v.Role == "" {
		return ErrNoPage()
	}
	var err error
	if v.Tenant, err = v.console.Tenants.Get(v.Ctx, id); problem.Is(err, problem.NotFound) {
		return ErrNoPage()
	}
	return err
}

// Can reports whether the visitor has a permission at the site of the page.
func (v *Visit) Can(p roles.Permission) bool {
	if v.Viewing {
		return v.Who.Role(roles.Installation).MayViewAs(p)
	}
	site := roles.InstallationSite
	if v.Route.Site == Tenants {
		site = roles.TenantSite
	}
	return roles.Can(site, v.Role, p)
}

// polls reports whether a live part made the request. Polling does not extend the session.
func (v *Visit) polls() bool { return v.R.URL.Query().Has("live") || v.R.URL.Query().Has("newer") }

// give sends an answer.
func (v *Visit) give(a Answer) {
	switch {
	case a.Raw != nil:
		a.Raw(v.W, http.StatusOK)
	case a.To != "":
		http.Redirect(v.W, v.R, a.To, http.StatusSeeOther)
	case a.Same:
		v.W.WriteHeader(http.StatusNoContent)
	case a.Part != nil:
		v.send(http.StatusOK, a.Part)
	case a.Write != nil:
		v.sendFile(a)
	default:
		if asked := v.R.URL.Query().Get("live"); asked != "" {
			v.giveLive(asked)
			return
		}
		status := http.StatusOK
		switch {
		case a.Limit:
			status = http.StatusTooManyRequests
		case a.Wrong:
			status = http.StatusUnprocessableEntity
		}
		v.count()
		v.send(status, page.Layout(v.shell(a.Title), a.Body))
	}
}

// send renders into memory first: a page comes whole or as an error.
func (v *Visit) send(status int, body templ.Component) {
	var text bytes.Buffer
	if err := body.Render(v.Ctx, &text); err != nil {
		if v.left(err) {
			v.W.WriteHeader(api.StatusLeft)
			return
		}
		v.console.Log.Error("failed to render page", "request_id", v.id, "path", v.path(), "error", err)
		http.Error(v.W, "Server error. Request ID: "+v.id, http.StatusInternalServerError)
		return
	}
	v.W.WriteHeader(status)
	_, _ = v.W.Write(text.Bytes()) // the browser may have disconnected
}

func (v *Visit) sendFile(a Answer) {
	h := v.W.Header()
	h.Set("Content-Type", a.Media)
	h.Set("Content-Disposition", `attachment; filename="`+a.File+`"`)
	err := a.Write(v.W)
	if err == nil {
		return
	}
	if v.R.Context().Err() == nil { // the visitor is still connected
		v.console.Log.Error("file download interrupted", "request_id", v.id, "path", v.path(), "error", err)
	}
	panic(http.ErrAbortHandler) // the visitor must not take half a file for a whole one
}

// path is the pattern of the page for the log. It contains no id.
func (v *Visit) path() string {
	if v.Route == nil {
		return "other"
	}
	return v.Route.Path
}

// Query returns the address of this page with changed parameters. An empty value removes a parameter.
func (v *Visit) Query(pairs ...string) string {
	here := v.R.URL
	if v.Home != nil {
		here = v.Home
	}
	q := here.Query()
	q.Del("live")
	q.Del("seen")
	q.Del("newer")
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			q.Del(pairs[i])
		} else {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	u := url.URL{Path: here.Path, RawQuery: q.Encode()}
	return u.String()
}

// local keeps a redirect on this server.
func local(path string) string {
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return "/"
	}
	return path
}

// from returns the visitor's address.
func (v *Visit) from() netip.Addr {
	return access.ClientIP(v.R.RemoteAddr, v.R.Header.Values("X-Forwarded-For"), v.console.TrustedProxies)
}

func fromProxy(r *http.Request, trusted []netip.Prefix) bool {
	return access.FromProxy(r.RemoteAddr, trusted)
}

// loopback reports whether a request comes from this machine without a proxy.
func loopback(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() && r.Header.Get("X-Forwarded-For") == "" && r.Header.Get("Forwarded") == ""
}
