package console

import (
	"fmt"
	"strings"

	"rsc.io/qr"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
)

// accountOf is the data of the page of one's own account.
type accountOf struct {
	visitor                    identity.Visitor
	sessions                   []identity.Session
	tokens                     []identity.PersonalToken
	tokenForm                  page.Form
	lacksPassword, lacksFactor bool // the person must set these up first; in production only
	passwordForm, appForm      page.Form
	tokensWait                 bool // the person's first factor is new, so tokens do not work yet
	done                       string
}

// passwordForm is the form that sets a password.
func passwordForm(v identity.Visitor) page.Form {
	f := page.Form{ID: "password", Action: "/account/password", Submit: "Set password"}
	if v.HasPassword {
		f.Fields = append(f.Fields, page.Field{Name: "current", Label: "Current password", Type: "password", Max: identity.MaxPassword, Required: true, Auto: "current-password"})
	}
	f.Fields = append(f.Fields, newPassword)
	return f
}

// appForm asks for the password before a first second factor.
func appForm() page.Form {
	return page.Form{ID: "app", Action: "/account/factor", Submit: "Set up app", Fields: []page.Field{ownPassword("Enter your password, because you signed in more than five minutes ago.")}}
}

// ownPassword is the field for the visitor's password.
func ownPassword(hint string) page.Field {
	return page.Field{Name: "current", Label: "Your password", Type: "password", Max: identity.MaxPassword, Required: true, Auto: "current-password", Hint: hint}
}

// account shows one's own account.
func account(v *Visit) (Answer, error) {
	return v.ownAccount(passwordForm(v.Who), tokenForm(), page.Form{}, "")
}

func (v *Visit) ownAccount(password, token, app page.Form, done string) (Answer, error) {
	a := accountOf{visitor: v.Who, passwordForm: password, tokenForm: token, appForm: app, done: done}
	if len(app.Fields) == 0 && v.console.Identity.NeedsPassword(v.Who) {
		a.appForm = appForm()
	}
	if !v.console.Development {
		a.lacksPassword, a.lacksFactor = v.Who.Lacks()
	}
	a.tokensWait = v.console.Clock.Now().Before(v.Who.TokensFrom)
	var err error
	if a.sessions, err = v.console.Identity.Sessions(v.Ctx, v.Who); err == nil {
		a.tokens, err = v.console.Identity.PersonalTokens(v.Ctx, v.Who)
	}
	return Answer{Title: "Your account", Body: accountPage(a)}, err
}

// changePassword sets a password.
func changePassword(v *Visit) (Answer, error) {
	err := v.console.Identity.SetPassword(v.Ctx, v.Who, v.R.PostFormValue("current"), v.R.PostFormValue("password"), v.from())
	if problem.Is(err, problem.Invalid) || problem.Is(err, problem.RateLimited) {
		a, listErr := v.ownAccount(Faulty(passwordForm(v.Who), err), tokenForm(), page.Form{}, "")
		a.Wrong, a.Limit = true, problem.Is(err, problem.RateLimited)
		return a, listErr
	}
	if err != nil {
		return Answer{}, err
	}
	return v.ownAccount(passwordForm(v.Who), tokenForm(), page.Form{}, "Your password was changed. Your other sessions were signed out and your personal tokens revoked.")
}

// tokenForm is the form that creates a personal token.
func tokenForm() page.Form {
	return page.Form{ID: "token", Action: "/account/tokens", Submit: "Create token", Fields: []page.Field{
		{Name: "name", Label: "Name", Max: 60, Required: true, Hint: "Enter where you use it, such as the name of the machine."}}}
}

// resumeToken shows the form with the name that the person entered before the code.
func resumeToken(v *Visit) (Answer, error) {
	f := tokenForm()
	f.Fields[0].Value = v.R.PostFormValue("name")
	return v.ownAccount(passwordForm(v.Who), f, page.Form{}, "")
}

// makeToken creates a personal token, and shows it once.
func makeToken(v *Visit) (Answer, error) {
	text, t, err := v.console.Identity.NewPersonalToken(v.Ctx, v.Who, v.R.PostFormValue("name"), v.from())
	if problem.Is(err, problem.Invalid) {
		a, listErr := v.ownAccount(passwordForm(v.Who), Faulty(tokenForm(), err), page.Form{}, "")
		a.Wrong = true
		return a, listErr
	}
	return Answer{Title: "Personal token", Body: tokenPage(text, t)}, err
}

// endToken revokes a personal token of the visitor.
func endToken(v *Visit) (Answer, error) {
	return Answer{To: "/account"}, v.console.Identity.EndPersonalToken(v.Ctx, v.Who, v.R.PostFormValue("id"), v.from())
}

// tokenFacts describe a token.
func tokenFacts(t identity.PersonalToken) []page.Fact {
	return []page.Fact{{Name: "Name", Value: page.Text(t.Name)}, {Name: "Created", Value: page.Time(t.CreatedAt)}, {Name: "Expires", Value: page.Time(t.ExpiresAt)}}
}

// beginFactor starts the enrolment of a second factor.
func beginFactor(v *Visit) (Answer, error) {
	err := v.console.Identity.BeginFactor(v.Ctx, v.Who, v.R.PostFormValue("current"), v.from())
	if problem.Is(err, problem.Invalid) || problem.Is(err, problem.RateLimited) {
		a, listErr := v.ownAccount(passwordForm(v.Who), tokenForm(), Faulty(appForm(), err), "")
		a.Wrong, a.Limit = true, problem.Is(err, problem.RateLimited)
		return a, listErr
	}
	return Answer{To: "/account/factor"}, err
}

// factorForm is the form for the first code of an enrolment.
func factorForm(e identity.Enrolment) page.Form {
	f := page.Form{ID: "factor", Action: "/account/factor/confirm", Submit: "Confirm app", Fields: []page.Field{
		{Name: "code", Label: "Code from your app", Max: 40, Required: true, Auto: "one-time-code"}}}
	if e.NeedsPassword {
		f.Fields = append(f.Fields, ownPassword("Enter your password, because you started more than five minutes ago."))
	}
	return f
}

// factorPage shows the enrolment in progress.
func factorPage(v *Visit) (Answer, error) { return v.factor(nil) }

// factor shows the enrolment in progress, with the error of the last code.
func (v *Visit) factor(refused error) (Answer, error) {
	e, found, err := v.console.Identity.PendingFactor(v.Ctx, v.Who)
	if err != nil {
		return Answer{}, err
	}
	if !found {
		return Answer{To: "/account"}, nil
	}
	form := factorForm(e)
	if refused != nil {
		form = Faulty(form, refused)
	}
	if e.Key == "" {
		return Answer{Title: "Second factor", Body: enrolLater(form)}, nil
	}
	code, err := qr.Encode(e.URI, qr.M)
	if err != nil {
		return Answer{}, fmt.Errorf("encode a QR code: %w", err)
	}
	return Answer{Title: "Second factor", Body: enrolPage(squares(code), fmt.Sprint(code.Size+2*quiet), grouped(e.Key), form)}, nil
}

// quiet is the width of the white border of a QR code, in modules.
const quiet = 4

// squares returns a QR code as an SVG path.
func squares(code *qr.Code) string {
	var path strings.Builder
	for y := range code.Size {
		for x := range code.Size {
			if code.Black(x, y) {
				fmt.Fprintf(&path, "M%d %dh1v1h-1z", x+quiet, y+quiet)
			}
		}
	}
	return path.String()
}

// grouped writes a key in groups of four, which are easier to type.
func grouped(key string) string {
	var groups []string
	for len(key) > 4 {
		groups, key = append(groups, key[:4]), key[4:]
	}
	return strings.Join(append(groups, key), " ")
}

// confirmFactor checks the first code, and shows the recovery codes once.
func confirmFactor(v *Visit) (Answer, error) {
	codes, err := v.console.Identity.ConfirmFactor(v.Ctx, v.Who, v.R.PostFormValue("code"), v.R.PostFormValue("current"), v.from())
	if problem.Is(err, problem.Invalid) || problem.Is(err, problem.RateLimited) {
		a, pageErr := v.factor(err)
		a.Wrong, a.Limit = true, problem.Is(err, problem.RateLimited)
		return a, pageErr
	}
	if err != nil {
		return Answer{}, err
	}
	return Answer{Title: "Recovery codes", Body: codesPage(codes, true)}, nil
}

// renewCodes replaces the recovery codes.
func renewCodes(v *Visit) (Answer, error) {
	codes, err := v.console.Identity.RenewRecoveryCodes(v.Ctx, v.Who, v.from())
	return Answer{Title: "Recovery codes", Body: codesPage(codes, false)}, err
}

// endSession ends one session of the visitor. Without an ID it ends all but this one.
func endSession(v *Visit) (Answer, error) {
	var err error
	if id := v.R.PostFormValue("id"); id != "" {
		err = v.console.Identity.End(v.Ctx, v.Who, id)
	} else {
		err = v.console.Identity.EndOthers(v.Ctx, v.Who, v.from())
	}
	return Answer{To: "/account"}, err
}

// stepUpPage asks for the second factor.
func stepUpPage(v *Visit) (Answer, error) {
	return Answer{Title: "Second factor", Body: stepUpBody(stepUpForm(local(v.Param("back")), ""), false)}, nil
}

// stepUp checks the second factor, and continues with the form whose contents came with it.
func stepUp(v *Visit) (Answer, error) {
	back, kept := local(v.R.PostFormValue("back")), v.R.PostFormValue("kept")
	err := v.console.Identity.StepUp(v.Ctx, v.Who, v.R.PostFormValue("code"), v.from())
	if problem.Is(err, problem.Invalid) || problem.Is(err, problem.RateLimited) {
		return Answer{Title: "Second factor", Wrong: true, Limit: problem.Is(err, problem.RateLimited), Body: stepUpBody(Faulty(stepUpForm(back, kept), err), kept != "")}, nil
	}
	if err == nil && kept != "" {
		return v.resume(kept, back)
	}
	return Answer{To: back}, err
}

// sessionFacts describe a session.
func sessionFacts(s identity.Session) []page.Fact {
	source := s.Source
	if source == "" {
		source = "this machine"
	}
	return []page.Fact{{Name: "Browser", Value: page.Text(s.Agent)}, {Name: "IP address", Value: page.Text(source)},
		{Name: "Signed in", Value: page.Time(s.CreatedAt)}, {Name: "Last used", Value: page.Time(s.UsedAt)}}
}
