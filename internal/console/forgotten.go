package console

import (
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
)

// forgottenLink leads to the page of a forgotten password, where links are sent by mail.
func forgottenLink(v *Visit) templ.Component {
	if !v.console.Notices.Links() {
		return page.Text("")
	}
	return page.Anchor("/forgotten", "Forgotten password?")
}

// forgottenForm asks for the address of the account.
func forgottenForm(email string) page.Form {
	return page.Form{ID: "forgotten", Action: "/forgotten", Submit: "Send link", Fields: []page.Field{
		{Name: "email", Label: "E-mail address", Value: email, Max: 254, Required: true, Auto: "username"}}}
}

// forgotten shows the form for a new password.
func forgotten(v *Visit) (Answer, error) {
	if !v.console.Notices.Links() {
		return Answer{Title: "Forgotten password", Body: page.Message("Forgotten password", "This server sends no mail. Ask an operator to reset your credentials.", page.Anchor("/sign-in", "Back to sign in"))}, nil
	}
	return Answer{Title: "Forgotten password", Body: forgottenPage(forgottenForm(""))}, nil
}

// askForgotten requests a new password. The response is the same whether the account exists or not.
func askForgotten(v *Visit) (Answer, error) {
	email := v.R.PostFormValue("email")
	err := v.console.Notices.Forgotten(v.Ctx, email, v.from())
	limited := problem.Is(err, problem.RateLimited)
	switch {
	case limited, problem.Is(err, problem.Invalid):
		if limited {
			v.W.Header().Set("Retry-After", strconv.Itoa(int(problem.From(err).RetryAfter.Seconds()+1)))
		}
		return Answer{Title: "Forgotten password", Wrong: true, Limit: limited, Body: forgottenPage(Faulty(forgottenForm(email), err))}, nil
	case err != nil:
		return Answer{}, err
	}
	return Answer{Title: "Forgotten password", Body: page.Message("Check your mail", "If an account with this address exists, a mail is on its way. Its link works once, for 30 minutes. No mail within a few minutes? Ask an operator.",
		page.Anchor("/sign-in", "Back to sign in"))}, nil
}

// chooseForm asks for the new password.
func chooseForm(token string) page.Form {
	return page.Form{ID: "forgotten", Action: "/forgotten/new", Submit: "Set password", Fields: []page.Field{{Name: "t", Type: "hidden", Value: token}, newPassword}}
}

// chooseForgotten shows the person of a link. It does not use the link, because mail programs open links by themselves.
func chooseForgotten(v *Visit) (Answer, error) {
	token := v.R.FormValue("t")
	p, err := v.console.Identity.ForgottenLink(v.Ctx, token)
	return Answer{Title: "New password", Body: newPasswordPage(p, chooseForm(token))}, err
}

// setForgotten stores the new password.
func setForgotten(v *Visit) (Answer, error) {
	token := v.R.PostFormValue("t")
	err := v.console.Identity.ChooseForgotten(v.Ctx, token, v.R.PostFormValue("password"), v.from())
	if problem.Is(err, problem.Invalid) {
		p, linkErr := v.console.Identity.ForgottenLink(v.Ctx, token)
		return Answer{Title: "New password", Wrong: true, Body: newPasswordPage(p, Faulty(chooseForm(token), err))}, linkErr
	}
	if err != nil {
		return Answer{}, err
	}
	return Answer{Title: "New password", Body: page.Message("Your password was changed", "All sessions and personal tokens ended. Sign in with the new password and a code of your authenticator app.", page.Anchor("/sign-in", "Sign in"))}, nil
}

// forgottenRoutes are the pages of a forgotten password.
func forgottenRoutes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: "/forgotten", Handle: forgotten},
		{Method: http.MethodPost, Path: "/forgotten", Inputs: []Input{{"email", 254}}, Handle: askForgotten},
		{Method: http.MethodGet, Path: "/forgotten/new", Inputs: []Input{{"t", 100}}, Handle: chooseForgotten},
		{Method: http.MethodPost, Path: "/forgotten/new", Inputs: []Input{{"t", 100}, {"password", identity.MaxPassword + 1}}, Handle: setForgotten},
	}
}
