package console

import (
	"net/http"
	"strings"

	"github.com/a-h/templ"

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
	e := problem.From(err)
	status := statuses[e.Kind]
	if status == 0 {
		status = http.StatusInternalServerError
	}
	if status >= 500 {
		v.console.Log.Error("page failed", "request_id", v.id, "method", v.r.Method, "path", v.path(), "code", e.Code, "error", e)
	}
	title, more := v.explain(status, e)
	if v.polls() {
		v.w.WriteHeader(status)
		return
	}
	v.send(status, page.Layout(v.shell(title), page.Message(title, sentence(e.Message), more)))
}

// explain gives the title of an error's page and what stands below its text.
func (v *visit) explain(status int, e *problem.Error) (title string, more templ.Component) {
	request := page.Facts([]page.Fact{{Name: "Request", Value: page.ID(v.id)}})
	switch status {
	case http.StatusUnauthorized:
		return "Sign in", signInHelp(v.console.NewLink != nil && loopback(v.r), v.r.URL.Query().Has("again"))
	case http.StatusForbidden:
		return "No permission", request
	case http.StatusNotFound:
		return "Not found", page.Anchor("/", "To the start")
	case http.StatusServiceUnavailable:
		return "Not available now", request
	case http.StatusInternalServerError:
		return "This page could not be made", request
	}
	return "This was not done", request
}

// notSetUp answers everything in production, which has no people yet.
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
