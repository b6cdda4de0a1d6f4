package approvals

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// inForceColumns are the columns of the policy in force.
var inForceColumns = []console.Column[changes.InForce]{
	console.Text("Change", "", func(one changes.InForce) string {
		if one.ByKey {
			return one.Title + ", requested by an API key"
		}
		return one.Title
	}),
	console.Shown("In force", func(one changes.InForce) templ.Component {
		if one.Alone {
			return page.Mark(page.Badge{Tone: page.Bad, Word: words.Capital(one.Text) + ": nobody else may approve"})
		}
		return page.Text(words.Capital(one.Text))
	}),
}

// lineColumns returns the columns of the lines of the policy.
func (ps *Pages) lineColumns(v *console.Visit) []console.Column[changes.Line] {
	return []console.Column[changes.Line]{
		console.Text("Change", "", func(l changes.Line) string { return ps.Changes.Kinds(v.PersonSite())[l.Kind] }),
		console.Text("Account", "", func(l changes.Line) string {
			switch {
			case l.Own:
				return "This account"
			case l.Tenant != "":
				return v.NameOf(l.Tenant)
			}
			return "All accounts"
		}),
		console.Money("From amount", "", func(l changes.Line) money.Pesewas { return l.From }),
		console.Text("Approvers", "", func(l changes.Line) string { return changes.Approvers(l.Approvers) }),
	}
}

// policyActions lead to the form of the page, which is below a long table.
func policyActions(mayChange bool) (list []templ.Component) {
	if mayChange {
		list = append(list, page.Button("#change", "Change the policy"))
	}
	return list
}

// policyForm asks for another line of the policy: the installation's, or the one of the account's own requests.
func (ps *Pages) policyForm(v *console.Visit, id, kind, tenant, amount, approvers, reason string) (page.Form, error) {
	f := page.Form{ID: "policy", Action: v.Base() + "/policy", Submit: "Request change", Fields: []page.Field{
		{Name: "id", Type: "hidden", Value: id}, {Name: "kind", Label: "Kind of change", Value: kind},
		{Name: "amount", Label: "From amount (GHS)", Value: amount, Max: 20, Required: true},
		{Name: "approvers", Label: "Approvers", Value: approvers, Options: []page.Option{{Value: "1", Text: "1 approver"}, {Value: "2", Text: "2 approvers"}, {Value: "0", Text: "No approver"}, {Value: "-1", Text: "Remove this line"}}},
		{Name: "reason", Label: "Reason", Value: reason, Max: 500, Required: true}}}
	for name, does := range ps.Changes.Kinds(v.PersonSite()) {
		f.Fields[1].Options = append(f.Fields[1].Options, page.Option{Value: name, Text: does})
	}
	slices.SortFunc(f.Fields[1].Options, func(a, b page.Option) int { return strings.Compare(b.Text, a.Text) })
	if v.Route.Site != console.Operators {
		return f, nil
	}
	account, err := v.AccountChoice("tenant", "Account", tenant, page.Option{Text: "All accounts"})
	f.Fields = slices.Insert(f.Fields, 2, account)
	return f, err
}

// policyPage shows how many approvers changes need, and asks for another line.
func (ps *Pages) policyPage(v *console.Visit) (console.Answer, error) {
	kind := changes.KindFund
	if v.Route.Site == console.Tenants {
		kind = changes.KindAddresses
	}
	form, err := ps.policyForm(v, uuid.Must(uuid.NewV7()).String(), kind, "", "0.00", "1", "")
	if err != nil {
		return console.Answer{}, err
	}
	return ps.policy(v, form)
}

func (ps *Pages) policy(v *console.Visit, form page.Form) (console.Answer, error) {
	lines, err := ps.Changes.Store.Policy(v.Ctx)
	if err != nil {
		return console.Answer{}, err
	}
	lines = slices.DeleteFunc(lines, func(l changes.Line) bool {
		own := v.Route.Site == console.Tenants
		return l.Own != own || own && l.Tenant != v.Tenant.ID
	})
	inForce, err := ps.Changes.InForce(v.Ctx, By(v), "")
	return console.Answer{Title: "Approval policy", Body: policyBody(console.Grid(inForceColumns, inForce, nil), console.Grid(ps.lineColumns(v), lines, nil), v.Can(roles.ChangePolicy) && !v.Viewing, form)}, err
}

// approversOf reads the number of approvers from a form. A form that a person opened before the last upgrade has another name
// for it.
func approversOf(v *console.Visit) string {
	return cmp.Or(v.R.PostFormValue("approvers"), v.R.PostFormValue("checkers"))
}

// resumePolicy shows the form again with the entries from before the code.
func (ps *Pages) resumePolicy(v *console.Visit) (console.Answer, error) {
	form, err := ps.sentPolicyForm(v)
	if err != nil {
		return console.Answer{}, err
	}
	return ps.policy(v, form)
}

// sentPolicyForm is the form with the entries that were sent.
func (ps *Pages) sentPolicyForm(v *console.Visit) (page.Form, error) {
	value := v.R.PostFormValue
	return ps.policyForm(v, value("id"), value("kind"), value("tenant"), value("amount"), approversOf(v), value("reason"))
}

// setPolicy asks for another line.
func (ps *Pages) setPolicy(v *console.Visit) (console.Answer, error) {
	value := v.R.PostFormValue
	v.FormPage = v.Base() + "/policy"
	l := changes.Line{Kind: value("kind")}
	var request changes.Request
	of, accountErr := v.AccountIn("tenant", value("tenant"))
	amount, err := money.Parse(value("amount"))
	approvers, countErr := strconv.Atoi(approversOf(v))
	switch {
	case accountErr != nil:
		err = accountErr
	case errors.Is(err, money.ErrRange):
		err = problem.Field("amount", err.Error())
	case err != nil || amount < 0:
		err = problem.Field("amount", "must be an amount that is not below zero, such as 1000.00")
	case countErr != nil:
		err = problem.Field("approvers", "must be one of the options")
	default:
		l.Tenant, l.From, l.Approvers = of, amount, approvers
		request, err = ps.Changes.SetPolicy(v.Ctx, By(v), value("id"), l, value("reason"))
	}
	if problem.Is(err, problem.NotFound) {
		err = problem.Field("tenant", "is not an account")
	}
	if problem.Is(err, problem.Invalid) {
		form, formErr := ps.sentPolicyForm(v)
		if formErr != nil {
			return console.Answer{}, formErr
		}
		a, pageErr := ps.policy(v, console.Faulty(form, err))
		a.Wrong = true
		return a, pageErr
	}
	return console.Answer{To: Path(v) + "/" + request.ID}, err
}
