package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
)

func errNoPage() error {
	return problem.New(problem.NotFound, "page_not_found", "There is no such page, or it is not yours")
}

func errCrossSite() error {
	return problem.New(problem.Forbidden, "cross_site", "This request came from another site. Nothing was done. Open the page here and send the form again.")
}

func errNotEncrypted() error {
	return problem.New(problem.Forbidden, "not_encrypted", "This service is reached over https, through its proxy")
}

func errHost() error {
	return problem.New(problem.Forbidden, codeHost, api.HostNotServed)
}

func errNotAllowed(p identity.Permission) error {
	return problem.New(problem.Forbidden, "not_allowed", "Your role does not have the permission "+string(p)+". An owner can change your role.")
}

// statuses are those of the JSON interface, as far as a page can meet them.
var statuses = map[problem.Kind]int{
	problem.Malformed: http.StatusBadRequest, problem.Unauthenticated: http.StatusUnauthorized, problem.Forbidden: http.StatusForbidden,
	problem.NotFound: http.StatusNotFound, problem.Invalid: http.StatusUnprocessableEntity, problem.Duplicate: http.StatusUnprocessableEntity,
	problem.InsufficientFunds: http.StatusBadRequest, problem.InsufficientCredits: http.StatusPaymentRequired, problem.Refused: http.StatusBadRequest,
	problem.InProgress: http.StatusConflict, problem.Gone: http.StatusGone, problem.TooLarge: http.StatusRequestEntityTooLarge,
	problem.RateLimited: http.StatusTooManyRequests, problem.Unavailable: http.StatusServiceUnavailable,
}

// refuse answers an error with a page that says what happened and what to do.
func (v *visit) refuse(err error) {
	if v.left(err) {
		v.w.WriteHeader(api.StatusLeft) // for the metrics
		return
	}
	e := problem.From(err)
	status := statuses[e.Kind]
	if status == 0 {
		status = http.StatusInternalServerError
	}
	if status >= 500 {
		v.console.Log.Error("page failed", "request_id", v.id, "method", v.r.Method, "path", v.path(), "code", e.Code, "error", e)
	}
	if v.polls() {
		v.w.WriteHeader(status)
		return
	}
	if to := v.elsewhere(e); to != "" {
		http.Redirect(v.w, v.r, to, http.StatusSeeOther)
		return
	}
	if e.RetryAfter > 0 {
		v.w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds()+1)))
	}
	title, more := v.explain(status, e)
	v.send(status, page.Layout(v.shell(title), page.Message(title, sentence(e.Message), more)))
}

// left reports whether an error is that the browser has gone, which ended the work of its request.
func (v *visit) left(err error) bool {
	return errors.Is(err, context.Canceled) && v.r.Context().Err() != nil
}

// The codes of refusals that lead to another page.
const (
	codeNotReady = "not_ready"
	codeStepUp   = "step_up_needed"
)

// codeHost is the code of the refusal of a host to which the server does not answer.
const codeHost = "host_not_served"

// elsewhere is where a refused visitor can do what is missing; empty: nowhere.
func (v *visit) elsewhere(e *problem.Error) string {
	switch e.Code {
	case codeNotReady:
		return "/account"
	case codeStepUp:
		back := v.query()
		if v.r.Method != http.MethodGet {
			back = v.route.back()
			if v.formPage != "" {
				back = v.formPage
			}
		}
		return "/account/step-up?" + url.Values{"back": {back}}.Encode()
	}
	return ""
}

// back is the page that has the form of a route.
func (r *Route) back() string {
	if r == nil || !r.Unready {
		return "/"
	}
	return "/account"
}

// explain gives the title of an error's page and what stands below its text.
func (v *visit) explain(status int, e *problem.Error) (title string, more templ.Component) {
	request := page.Facts([]page.Fact{{Name: "Request", Value: page.ID(v.id)}})
	switch status {
	case http.StatusUnauthorized:
		return "Sign in", v.waysIn(page.Form{}, v.backHere())
	case http.StatusForbidden:
		if e.Code == codeHost {
			return "Unknown host name", request
		}
		return "No permission", request
	case http.StatusNotFound:
		return "Not found", page.Anchor("/", "To the start")
	case http.StatusServiceUnavailable:
		return "Not available now", request
	case http.StatusInternalServerError:
		return "This page could not be made", request
	}
	if v.r.Method == http.MethodGet {
		return "This address does not fit", page.Join(request, page.Anchor(v.r.URL.Path, "The page without its filters"))
	}
	return "This was not done", request
}

// notSetUp answers everything in production while there are no people.
func (v *visit) notSetUp() {
	v.send(http.StatusServiceUnavailable, page.Layout(page.Shell{Title: "Not set up yet", Theme: v.theme(), Path: "/"}, notSetUp()))
}

// sentence ends a text with a full stop.
func sentence(text string) string {
	if text != "" && !strings.ContainsAny(text[len(text)-1:], ".!?") {
		return text + "."
	}
	return text
}
