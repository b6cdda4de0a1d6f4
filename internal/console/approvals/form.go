package approvals

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// Form is a form that requests a change. Its page asks for the second factor first. The form contains the id of the
// request, so a form that is sent twice makes one request.
type Form struct {
	Path   string // path under the base of its site
	Title  string
	May    roles.Permission
	Inputs []console.Input
	Sent   []console.Input // of the form alone: no link fills them in
	Submit string
	Danger bool
	Lead   func(v *console.Visit) (string, error)
	Fields func(v *console.Visit) ([]page.Field, error)
	Table  func(v *console.Visit) (page.FieldTable, error) // nil: no table of fields
	// Confirm returns the second page of an order that must be seen before it is requested, or nil after the visitor has
	// confirmed it. A nil function: the form has one page.
	Confirm func(v *console.Visit) (*Confirmation, error)
	Ask     func(v *console.Visit, id string) (changes.Request, error)
	// Then returns the page that follows a request. nil: that of the request.
	Then func(v *console.Visit, made changes.Request) string
}

// Confirmation is the second page of an order.
type Confirmation struct {
	Lead, Submit string
	Fields       []page.Field // hidden ones
}

// Routes returns the routes of the form: its page, and its submission.
func (o Form) Routes(base string) []console.Route {
	inputs := slices.Concat([]console.Input{{Name: "id", Max: 36}, {Name: "reason", Max: 500}}, o.Inputs, o.Sent)
	return []console.Route{
		{Method: http.MethodGet, Path: base + o.Path, Permission: o.May, Inputs: o.Inputs, Handle: o.page},
		{Method: http.MethodPost, Path: base + o.Path, Permission: o.May, Inputs: inputs, Handle: o.do, Resume: o.resume},
	}
}

func (o Form) form(v *console.Visit, id, reason string) (page.Form, string, error) {
	f := page.Form{ID: "order", Action: v.R.URL.EscapedPath(), Submit: o.Submit, Danger: o.Danger, Fields: []page.Field{{Name: "id", Type: "hidden", Value: id}}}
	lead, err := o.Lead(v)
	if err != nil {
		return f, "", err
	}
	if o.Fields != nil {
		more, err := o.Fields(v)
		if err != nil {
			return f, "", err
		}
		f.Fields = append(f.Fields, more...)
	}
	if o.Table != nil {
		if f.Table, err = o.Table(v); err != nil {
			return f, "", err
		}
	}
	f.Fields = append(f.Fields, page.Field{Name: "reason", Label: "Reason", Value: reason, Max: 500, Required: true, Hint: "Approvers and the audit log show it."})
	return f, lead, nil
}

func (o Form) page(v *console.Visit) (console.Answer, error) {
	f, lead, err := o.form(v, uuid.Must(uuid.NewV7()).String(), "")
	if err != nil {
		return console.Answer{}, err
	}
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	return console.Answer{Title: o.Title, Body: orderBody(o.Title, lead, f, false)}, nil
}

// resume shows the form again with the entries from before the code.
func (o Form) resume(v *console.Visit) (console.Answer, error) {
	f, lead, err := o.form(v, v.R.PostFormValue("id"), v.R.PostFormValue("reason"))
	return console.Answer{Title: o.Title, Body: orderBody(o.Title, lead, f, true)}, err
}

func (o Form) do(v *console.Visit) (console.Answer, error) {
	v.FormPage = v.R.URL.EscapedPath()
	f, lead, err := o.form(v, v.R.PostFormValue("id"), v.R.PostFormValue("reason"))
	if err != nil {
		return console.Answer{}, err
	}
	request, confirmation, err := o.confirmed(v)
	if err == nil && confirmation != nil {
		second := page.Form{ID: "order", Action: f.Action, Submit: confirmation.Submit, Danger: o.Danger, Fields: append(confirmation.Fields,
			page.Field{Name: "id", Type: "hidden", Value: v.R.PostFormValue("id")}, page.Field{Name: "reason", Type: "hidden", Value: v.R.PostFormValue("reason")})}
		return console.Answer{Title: o.Title, Body: orderBody(o.Title, confirmation.Lead, second, false)}, nil
	}
	var e *problem.Error
	if errors.As(err, &e) && e.Code != console.CodeStepUp && slices.Contains(shownRefusals, e.Kind) {
		return console.Answer{Title: o.Title, Wrong: true, Body: orderBody(o.Title, lead, console.Faulty(f, err), false)}, nil
	}
	if err == nil && o.Then != nil {
		return console.Answer{To: o.Then(v, request)}, nil
	}
	return console.Answer{To: Path(v) + "/" + request.ID}, err
}

// confirmed requests the change, unless the visitor has to see its second page first.
func (o Form) confirmed(v *console.Visit) (r changes.Request, c *Confirmation, err error) {
	if o.Confirm != nil {
		if c, err = o.Confirm(v); err != nil || c != nil {
			return r, c, err
		}
	}
	r, err = o.Ask(v, v.R.PostFormValue("id"))
	return r, nil, err
}

// OfAccount is the lead of an order about the account of the page.
func OfAccount(text string) func(v *console.Visit) (string, error) {
	return func(v *console.Visit) (string, error) {
		t, err := v.Subject()
		return console.AccountName(t) + ". " + text, err
	}
}

// templated are the kinds whose pages have more than their fields.
var templated = []string{changes.KindFund, changes.KindAdjust, changes.KindTransfer, changes.KindRecover, changes.KindAddFloat, changes.KindSellCredits, changes.KindRefundCredits,
	changes.KindFees, changes.KindRoute, changes.KindCreateSender, changes.KindReopen, changes.KindPolicy, changes.KindTenant, changes.KindBlock, changes.KindSettings, changes.KindAddresses,
	changes.KindCreateKey, changes.KindRotateKey, changes.KindRevokeKey, changes.KindSetKey, changes.KindRotateSecret, changes.KindInvite, changes.KindRole, changes.KindSendBatch}

// GeneratedForms returns the pages of the kinds about an account that have no template. A page has the fields of its
// kind.
func (ps *Pages) GeneratedForms(at roles.Site) (orders []Form) {
	for _, form := range changes.Forms() {
		may := func(r roles.Role) bool { return roles.Can(at, r, form.Request) }
		if slices.Contains(templated, form.Kind) || !form.About() || !slices.ContainsFunc(roles.At(at), may) {
			continue
		}
		orders = append(orders, ps.generated(form))
	}
	return orders
}

// Choices are the options of fields on a page, by the names of the fields.
type Choices map[string]func(v *console.Visit) ([]page.Option, error)

// Form is the page of a kind about the installation itself, made from its fields. choices replace texts by lists.
func (ps *Pages) Form(kind, path, submit, lead string, choices Choices) Form {
	all := changes.Forms()
	form := all[slices.IndexFunc(all, func(f changes.Form) bool { return f.Kind == kind })]
	o := ps.fromFields(form, path, choices)
	o.Submit, o.Lead = submit, func(*console.Visit) (string, error) { return lead, nil }
	return o
}

// generated is the page of a kind that is about an account.
func (ps *Pages) generated(form changes.Form) Form {
	o := ps.fromFields(form, "/changes/"+form.Kind, nil)
	o.Submit, o.Lead = "Request the change", OfAccount("")
	return o
}

// mostOf returns the maximum number of characters of a field on a page, where an account can be named in the place of its id.
func mostOf(f changes.Field) int {
	if f.Name == changes.FieldWallet {
		return 120
	}
	return f.Max
}

// fromFields makes the page of a kind from its fields. If the kind is about an account, it is the account of
// the page.
func (ps *Pages) fromFields(form changes.Form, path string, choices Choices) Form {
	o := Form{Path: path, Title: form.Title, May: form.Request}
	var own []changes.Field
	for _, f := range form.Fields {
		if f.Name != changes.FieldTenant {
			own = append(own, f)
			o.Inputs = append(o.Inputs, console.Input{Name: f.Name, Max: mostOf(f)})
		}
	}
	o.Fields = func(v *console.Visit) (fields []page.Field, err error) {
		for _, f := range own {
			field := page.Field{Name: f.Name, Label: f.Label, Hint: f.Hint, Value: v.Given(f.Name, ""), Max: f.Max, Required: f.Required}
			for _, option := range f.Options {
				field.Options = append(field.Options, page.Option{Value: option, Text: option})
			}
			if f.Name == changes.FieldWallet {
				if field, err = v.AccountChoice(f.Name, f.Label, v.Given(f.Name, ""), page.Option{Text: "Choose an account"}); err != nil {
					return nil, err
				}
			}
			if choose := choices[f.Name]; choose != nil {
				field.Hint = ""
				if field.Options, err = choose(v); err != nil {
					return nil, err
				}
			}
			fields = append(fields, field)
		}
		return fields, nil
	}
	o.Ask = func(v *console.Visit, id string) (changes.Request, error) {
		values := changes.Values{}
		if form.About() {
			t, err := v.Subject()
			if err != nil {
				return changes.Request{}, err
			}
			values[changes.FieldTenant] = t.ID
		}
		for _, f := range own {
			values[f.Name] = strings.TrimSpace(v.R.PostFormValue(f.Name))
		}
		of, err := v.AccountIn(changes.FieldWallet, values[changes.FieldWallet])
		if err != nil {
			return changes.Request{}, err
		}
		if of != "" {
			values[changes.FieldWallet] = of
		}
		return ps.Changes.Do(v.Ctx, By(v), form.Kind, id, values, v.R.PostFormValue("reason"))
	}
	return o
}
