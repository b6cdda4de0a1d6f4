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
	"sync"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// visit is one request of a browser on its way through.
type visit struct {
	console *Console
	w       http.ResponseWriter
	r       *http.Request
	ctx     context.Context
	id      string // of the request
	route   *Route // nil: no such page

	who     identity.Visitor
	tenant  tenant.Tenant // of /app/{tenant}
	role    identity.Role // there, or at the installation
	viewing bool          // an operator looks at a tenant's pages
	live    []livePart
	// formPage is the page that has the form which the request sent; empty: the start.
	formPage string
	home     *url.URL // of the page, where the request went elsewhere; nil: here
}

// answer is what a handler makes: a page, a part of one, a file, or another place to go.
type answer struct {
	title string
	body  templ.Component
	wrong bool                                    // the page is a form that was refused
	limit bool                                    // ... because there were too many
	to    string                                  // leads there
	part  templ.Component                         // alone, for a page that asked for it; see also same
	same  bool                                    // nothing changed since the page asked
	file  string                                  // name of a file
	media string                                  // its Content-Type
	write func(w http.ResponseWriter) error       // writes it
	raw   func(w http.ResponseWriter, status int) // writes the whole answer itself
}

func (c *Console) begin(w http.ResponseWriter, r *http.Request, route *Route) *visit {
	v := &visit{console: c, w: w, r: r, ctx: r.Context(), id: api.RequestID(r), route: route}
	page.Secure(w.Header())
	w.Header().Set("X-Request-Id", v.id)
	return v
}

// run answers the request of a route, or says why not.
func (v *visit) run() {
	within := answerWithin
	if v.route.File {
		within = exportWithin
	}
	ctx, cancel := context.WithTimeout(v.ctx, within)
	defer cancel()
	v.ctx = ctx
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			v.refuse(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	if !isText(v.r.URL.Path) {
		v.refuse(errNoPage())
		return
	}
	if err := v.admit(); err != nil {
		v.refuse(err)
		return
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, v.route.body())
	if v.r.Method == http.MethodPost && v.route.reads() {
		if err := v.r.ParseForm(); err != nil {
			v.refuse(problem.Wrap(err, problem.Malformed, "form_unreadable", "The form did not arrive whole. Go back and send it again."))
			return
		}
	}
	if err := v.checkForm(); err != nil {
		v.refuse(err)
		return
	}
	a, err := v.route.handle(v)
	if err == nil && v.exports() {
		if err = v.console.exporting.begin(v.who.Person.ID); err == nil {
			defer v.console.exporting.end(v.who.Person.ID)
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

// admit finds out who asks, and whether they may.
func (v *visit) admit() error {
	if v.route.Site == public {
		return nil
	}
	cookie, err := v.r.Cookie(v.console.cookieName())
	if err != nil {
		return problem.New(problem.Unauthenticated, "not_signed_in", "Sign in to see this page")
	}
	if v.who, err = v.console.Identity.Visit(v.ctx, cookie.Value, !v.polls()); err != nil {
		return err
	}
	api.MarkKnown(v.w)
	if err := v.ready(); err != nil {
		return err
	}
	switch v.route.Site {
	case anyone:
		return nil
	case operators:
		v.role = v.who.Role(identity.Installation)
	case tenants:
		if err := v.enter(v.r.PathValue("tenant")); err != nil {
			return err
		}
	}
	for _, p := range []identity.Permission{v.route.Permission, v.route.Also} {
		if p != "" && !v.can(p) {
			return errNotAllowed(p)
		}
	}
	if v.console.Stopped != nil && v.route.moves() {
		return v.console.Stopped()
	}
	return nil
}

// viewedEvery is how often it is written down that an operator looks at a tenant's pages.
const viewedEvery = time.Hour

// entry is what the audit log says of something that the visitor does.
func (v *visit) entry(action, tenantID, subject string) audit.Entry {
	return audit.Entry{Actor: v.who.Person.Email, Person: v.who.Person.ID, Origin: v.by().Origin, Action: action, Tenant: tenantID, Subject: subject}
}

// record writes down, before anything is shown, that an operator looks at a tenant's pages, or that a list is taken away.
func (v *visit) record() error {
	switch {
	case v.exports():
		e := v.entry("payments.export", v.tenant.ID, v.route.Path)
		e.Details = map[string]any{"filter": v.r.URL.RawQuery, "viewing": v.viewing}
		return v.console.Identity.Use(v.ctx, identity.Exports, v.who.Person.ID, keyOf(v.r.URL.Path, v.r.URL.RawQuery), e)
	case v.route.File, !v.viewing:
		return nil
	}
	key := v.who.Session.ID + " " + v.tenant.ID
	if !v.console.viewed.first(key, v.console.Clock.Now().Truncate(viewedEvery)) {
		return nil
	}
	err := v.console.Audit.RecordOnce(v.ctx, key, viewedEvery, v.entry("tenant.view", v.tenant.ID, v.tenant.ID))
	if err != nil {
		v.console.viewed.forget(key)
	}
	return err
}

// exports says whether a list is taken away as a file.
func (v *visit) exports() bool { return v.route.File && v.r.Method == http.MethodGet }

// keyOf is a key of a fixed length for what texts of any length name.
func keyOf(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	return hex.EncodeToString(sum[:16])
}

// busy are the people who take a file from this node at this moment: one at a time.
type busy struct {
	mu     sync.Mutex
	people map[string]bool
}

// begin refuses a person who takes a file already.
func (b *busy) begin(person string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.people[person] {
		return problem.New(problem.RateLimited, "export_running", "You are taking another file already. Wait until it has arrived, and try again.")
	}
	if b.people == nil {
		b.people = map[string]bool{}
	}
	b.people[person] = true
	return nil
}

func (b *busy) end(person string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.people, person)
}

// viewings remembers what this node wrote down already, so that not every page costs a look.
type viewings struct {
	mu sync.Mutex
	at map[string]time.Time
}

// maxViewings are remembered; all are forgotten together, which costs a look each.
const maxViewings = 10_000

// first says whether a key comes for the first time in a period.
func (w *viewings) first(key string, period time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, there := w.at[key]; there && at.Equal(period) {
		return false
	}
	if w.at == nil || len(w.at) >= maxViewings {
		w.at = map[string]time.Time{}
	}
	w.at[key] = period
	return true
}

func (w *viewings) forget(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.at, key)
}

// ready refuses, in production, a visitor who has to set up a password or a second factor first.
func (v *visit) ready() error {
	if password, factor := v.who.Lacks(); v.console.Development || v.route.Unready || !password && !factor {
		return nil
	}
	return problem.New(problem.Forbidden, codeNotReady, "Your role needs a second factor: set it up first, on the page of your account")
}

// enter finds the tenant of the path and the visitor's role there. A tenant that the visitor has nothing to do with is
// answered like one that does not exist.
func (v *visit) enter(id string) error {
	v.role = v.who.Role(id)
	if v.role == "" && (v.r.Method == http.MethodGet || v.r.Method == http.MethodHead) && v.who.Can(identity.Installation, identity.ViewAs) {
		v.role, v.viewing = identity.Auditor, true
	}
	if id == identity.Installation || v.role == "" {
		return errNoPage()
	}
	var err error
	if v.tenant, err = v.console.Tenants.Get(v.ctx, id); problem.Is(err, problem.NotFound) {
		return errNoPage()
	}
	return err
}

// can says whether the visitor has a permission where the page belongs to.
func (v *visit) can(p identity.Permission) bool {
	if v.viewing {
		return v.who.Role(identity.Installation).MayViewAs(p)
	}
	site := identity.InstallationSite
	if v.route.Site == tenants {
		site = identity.TenantSite
	}
	return identity.Can(site, v.role, p)
}

// polls says whether a page asked by itself, which is no use of the session.
func (v *visit) polls() bool { return v.r.URL.Query().Has("live") || v.r.URL.Query().Has("newer") }

// give sends an answer.
func (v *visit) give(a answer) {
	switch {
	case a.raw != nil:
		a.raw(v.w, http.StatusOK)
	case a.to != "":
		http.Redirect(v.w, v.r, a.to, http.StatusSeeOther)
	case a.same:
		v.w.WriteHeader(http.StatusNoContent)
	case a.part != nil:
		v.send(http.StatusOK, a.part)
	case a.write != nil:
		v.sendFile(a)
	default:
		if asked := v.r.URL.Query().Get("live"); asked != "" {
			v.giveLive(asked)
			return
		}
		status := http.StatusOK
		switch {
		case a.limit:
			status = http.StatusTooManyRequests
		case a.wrong:
			status = http.StatusUnprocessableEntity
		}
		v.send(status, page.Layout(v.shell(a.title), a.body))
	}
}

// send renders into memory first: a page comes whole or as an error.
func (v *visit) send(status int, body templ.Component) {
	var text bytes.Buffer
	if err := body.Render(v.ctx, &text); err != nil {
		if v.left(err) {
			v.w.WriteHeader(api.StatusLeft)
			return
		}
		v.console.Log.Error("failed to render page", "request_id", v.id, "path", v.path(), "error", err)
		http.Error(v.w, "The page could not be made. Request "+v.id, http.StatusInternalServerError)
		return
	}
	v.w.WriteHeader(status)
	_, _ = v.w.Write(text.Bytes()) // a browser that has gone needs no answer
}

func (v *visit) sendFile(a answer) {
	h := v.w.Header()
	h.Set("Content-Type", a.media)
	h.Set("Content-Disposition", `attachment; filename="`+a.file+`"`)
	err := a.write(v.w)
	if err == nil {
		return
	}
	if v.r.Context().Err() == nil { // the visitor is there still
		v.console.Log.Error("file download interrupted", "request_id", v.id, "path", v.path(), "error", err)
	}
	panic(http.ErrAbortHandler) // so that half a file is not taken for a whole one
}

// path is the pattern of the page for the log, which no id gets into.
func (v *visit) path() string {
	if v.route == nil {
		return "other"
	}
	return v.route.Path
}

// query gives the address of this page with some parameters changed; an empty value removes one.
func (v *visit) query(pairs ...string) string {
	here := v.r.URL
	if v.home != nil {
		here = v.home
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

// from is the address that the visitor comes from.
func (v *visit) from() netip.Addr {
	return access.ClientIP(v.r.RemoteAddr, v.r.Header.Values("X-Forwarded-For"), v.console.TrustedProxies)
}

func fromProxy(r *http.Request, trusted []netip.Prefix) bool {
	return access.FromProxy(r.RemoteAddr, trusted)
}

// loopback says whether a request comes from this machine, and through no proxy.
func loopback(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() && r.Header.Get("X-Forwarded-For") == "" && r.Header.Get("Forwarded") == ""
}
