package console

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// ErrNoPage returns the error of a page that does not exist, or that the visitor may not see.
func ErrNoPage() error {
	return problem.New(problem.NotFound, "page_not_found", "This page does not exist, or you do not have access to it")
}

func errCrossSite() error {
	return problem.New(problem.Forbidden, "cross_site", "This request came from another site, so it was rejected. Open the page here and submit the form again.")
}

func errNotEncrypted() error {
	return problem.New(problem.Forbidden, "not_encrypted", "Use https to reach this service")
}

func errHost() error {
	return problem.New(problem.Forbidden, codeHost, api.HostNotServed)
}

func errNotAllowed(p roles.Permission) error {
	return problem.New(problem.Forbidden, "not_allowed", "Your role does not have the permission "+string(p)+". Ask an owner to change your role.")
}

// statuses are the HTTP statuses of errors, as in the JSON API.
var statuses = map[problem.Kind]int{
	problem.Malformed: http.StatusBadRequest, problem.Unauthenticated: http.StatusUnauthorized, problem.Forbidden: http.StatusForbidden,
	problem.NotFound: http.StatusNotFound, problem.Invalid: http.StatusUnprocessableEntity, problem.Duplicate: http.StatusUnprocessableEntity,
	problem.InsufficientFunds: http.StatusBadRequest, problem.InsufficientCredits: http.StatusPaymentRequired, problem.Refused: http.StatusBadRequest,
	problem.InProgress: http.StatusConflict, problem.Gone: http.StatusGone, problem.TooLarge: http.StatusRequestEntityTooLarge,
	problem.RateLimited: http.StatusTooManyRequests, problem.Unavailable: http.StatusServiceUnavailable,
}

// refuse answers an error with a page that explains it.
func (v *Visit) refuse(err error) {
	if v.left(err) {
		v.W.WriteHeader(api.StatusLeft) // for the metrics
		return
	}
	e := problem.From(err)
	status := statuses[e.Kind]
	if status == 0 {
		status = http.StatusInternalServerError
	}
	if status >= 500 {
		v.console.Log.Error("page failed", "request_id", v.id, "method", v.R.Method, "path", v.path(), "code", e.Code, "error", e)
	}
	if v.polls() {
		v.W.WriteHeader(status)
		return
	}
	if e.Code == CodeStepUp {
		back := v.formPage()
		if text := v.keep(back); text != "" {
			v.send(status, page.Layout(v.shell("Second factor"), stepUpBody(stepUpForm(back, text), true)))
			return
		}
	}
	if to := v.elsewhere(e); to != "" {
		http.Redirect(v.W, v.R, to, http.StatusSeeOther)
		return
	}
	if e.RetryAfter > 0 {
		v.W.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds()+1)))
	}
	title, more := v.explain(status, e)
	text := e.Message
	if v.R.Method == http.MethodGet {
		text = labelled(e)
	}
	v.send(status, page.Layout(v.shell(title), page.Message(title, Sentence(text), more)))
}

// filterLabels are the labels of filters whose parameters have other names.
var filterLabels = map[string]string{"least": "Amount from", "most": "Amount to"}

// labelled returns the message of an error about a filter, with the filter's label.
func labelled(e *problem.Error) string {
	for name, label := range filterLabels {
		if texts := e.Fields[name]; len(texts) > 0 && len(e.Fields) == 1 {
			return label + " " + strings.Join(texts, ", ")
		}
	}
	return e.Message
}

// left reports whether an error is the disconnection of the browser.
func (v *Visit) left(err error) bool {
	return errors.Is(err, context.Canceled) && v.R.Context().Err() != nil
}

// The codes of errors that redirect to another page.
const (
	codeNotReady = "not_ready"
	CodeStepUp   = "step_up_needed"
)

// codeHost is the code for a host name that the server does not serve.
const codeHost = "host_not_served"

// elsewhere returns the page on which the visitor can resolve an error. It is empty if there is none.
func (v *Visit) elsewhere(e *problem.Error) string {
	switch e.Code {
	case codeNotReady:
		return "/account"
	case CodeStepUp:
		return "/account/step-up?" + url.Values{"back": {v.formPage()}}.Encode()
	}
	return ""
}

// formPage returns the page to continue with after a code: this one, or the one with the form of the request.
func (v *Visit) formPage() string {
	switch {
	case v.R.Method == http.MethodGet:
		return v.Query()
	case v.FormPage != "":
		return v.FormPage
	}
	return v.Route.back()
}

// kept are the contents of a form.
type kept struct {
	Path   string     `json:"path"` // path to which the form was sent, with its query
	Values url.Values `json:"values"`
	At     time.Time  `json:"at"`
}

// resumed is the context key of a request that comes from the page that asks for the code.
type resumed struct{}

// bound returns the context to which sealed contents are bound. back is the page to continue with without them.
func (v *Visit) bound(back string) []byte {
	text, _ := json.Marshal([]string{v.Who.Session.ID, v.Who.Person.ID, back}) // texts can always be marshalled
	return text
}

// SealForms names the use of the master key under which contents of forms are sealed.
const SealForms = "console/kept forms"

// mostKept is the longest sealed text, in characters.
const mostKept = 20_000

// keep seals the contents of the form of the request. It returns nothing if the route does not resume forms.
func (v *Visit) keep(back string) string {
	if v.Route == nil || v.Route.Resume == nil || v.R.Method != http.MethodPost || v.console.Seal == nil {
		return ""
	}
	k := kept{Path: v.R.URL.RequestURI(), Values: url.Values{}, At: v.console.Clock.Now()}
	for _, in := range v.Route.Inputs {
		if given, there := v.R.PostForm[in.Name]; there {
			k.Values[in.Name] = given
		}
	}
	text, _ := json.Marshal(k) // texts and a time can always be marshalled
	sealed := base64.RawURLEncoding.EncodeToString(v.console.Seal.Seal(text, v.bound(back)))
	if len(sealed) > mostKept {
		return ""
	}
	return sealed
}

// stepUpForm asks for the second factor.
func stepUpForm(back, kept string) page.Form {
	return page.Form{ID: "step-up", Action: "/account/step-up", Submit: "Continue", Fields: []page.Field{
		{Name: "back", Type: "hidden", Value: back}, {Name: "kept", Type: "hidden", Value: kept},
		{Name: "code", Label: "Code from your app", Max: 40, Required: true, Auto: "one-time-code", Hint: "Enter the six digits, or a recovery code."}}}
}

// back returns the page with the form of a route.
func (r *Route) back() string {
	if r == nil || !r.Unready {
		return "/"
	}
	return "/account"
}

// explain returns the title of an error's page, and the content below its text.
func (v *Visit) explain(status int, e *problem.Error) (title string, more templ.Component) {
	request := page.Facts([]page.Fact{{Name: "Request ID", Value: page.ID(v.id)}})
	switch status {
	case http.StatusUnauthorized:
		return "Sign in", v.waysIn(page.Form{}, v.backHere())
	case http.StatusForbidden:
		if e.Code == codeHost {
			return "Unknown host name", request
		}
		return "No permission", request
	case http.StatusNotFound:
		return "Not found", page.Anchor("/", "Go to the start page")
	case http.StatusServiceUnavailable:
		return "Temporarily unavailable", request
	case http.StatusInternalServerError:
		return "Server error", request
	}
	if v.R.Method == http.MethodGet {
		return "Invalid filter", page.Join(request, page.Anchor(v.R.URL.Path, "Clear filters"))
	}
	return "Request rejected", request
}

// notSetUp answers all requests in production while there are no people.
func (v *Visit) notSetUp() {
	v.send(http.StatusServiceUnavailable, page.Layout(page.Shell{Title: "Not set up yet", Theme: v.theme(), Path: "/"}, notSetUp()))
}

// Sentence ends a text with a full stop.
func Sentence(text string) string {
	if text != "" && !strings.ContainsAny(text[len(text)-1:], ".!?") {
		return text + "."
	}
	return text
}

// Faulty adds an error to a form and its fields.
func Faulty(f page.Form, err error) page.Form {
	e := problem.From(err)
	f.Fields = slices.Clone(f.Fields)
	for i := range f.Fields {
		if texts := e.Fields[f.Fields[i].Name]; len(texts) > 0 {
			f.Fields[i].Wrong = strings.Join(texts, ", ")
		}
	}
	f.Table.Rows = slices.Clone(f.Table.Rows)
	for i, row := range f.Table.Rows {
		f.Table.Rows[i].Fields = slices.Clone(row.Fields)
		for j, field := range row.Fields {
			f.Table.Rows[i].Fields[j].Wrong = strings.Join(e.Fields[field.Name], ", ")
		}
	}
	if len(e.Fields) == 0 {
		f.Wrong = Sentence(e.Message)
	}
	return f
}

// signInForm asks for all credentials at once, so that an error does not reveal which one was wrong.
func signInForm(email, back string) page.Form {
	return page.Form{ID: "sign-in", Action: "/sign-in", Submit: "Sign in", Failed: "Sign-in failed", Fields: []page.Field{
		{Name: "back", Type: "hidden", Value: back},
		{Name: "email", Label: "E-mail address", Type: "email", Value: email, Max: 254, Required: true, Auto: "username"},
		{Name: "password", Label: "Password", Type: "password", Max: identity.MaxPassword, Required: true, Auto: "current-password"},
		{Name: "code", Label: "Code from your app", Max: 40, Auto: "one-time-code", Hint: "Leave empty if you have no authenticator app. A recovery code works as well."},
	}}
}

// waysIn returns the ways to sign in. A development server shows the link first.
func (v *Visit) waysIn(f page.Form, back string) templ.Component {
	if len(f.Fields) == 0 {
		f = signInForm("", back)
	}
	if !v.console.Development {
		return page.Asking(f)
	}
	return page.Join(signInHelp(v.console.NewLink != nil && loopback(v.R), v.R.URL.Query().Has("again")), withPassword(f))
}

// backHere returns the address of this page if it can be opened again.
func (v *Visit) backHere() string {
	if v.R.Method != http.MethodGet || v.Route == nil || v.Route.Site == Public {
		return "/"
	}
	return v.Query()
}
