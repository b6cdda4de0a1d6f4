package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

// walletOrder is a form that changes the balance of a wallet.
type walletOrder struct {
	name, kind, title, lead string
	takes                   bool // the form can also withdraw
	ask                     func(a *changes.Changes, ctx context.Context, by changes.By, id string, d changes.Deposit, reason string) (changes.Request, error)
	pages                   *Pages
}

func (ps *Pages) walletOrders() []walletOrder {
	return []walletOrder{
		{"fund", changes.KindFund, "Fund wallet", "For a deposit that you received from the account outside Makola.", false, (*changes.Changes).FundFrom, ps},
		{"adjust", changes.KindAdjust, "Correct wallet balance", "For wrong bookings. A correction changes the balance without a payment.", true,
			func(a *changes.Changes, ctx context.Context, by changes.By, id string, d changes.Deposit, reason string) (changes.Request, error) {
				return a.AdjustUnder(ctx, by, id, d.Reference, d.Tenant, d.Amount, reason)
			}, ps},
	}
}

func (o walletOrder) path(t tenant.Tenant) string { return "/ops/tenants/" + t.ID + "/" + o.name }

// banks returns the choice of the bank account that received a deposit, and the field of the slip. It returns no fields
// if no bank account is open in the account's mode, or if the form is for another change.
func (o walletOrder) banks(v *console.Visit, t tenant.Tenant) ([]page.Field, error) {
	if o.kind != changes.KindFund {
		return nil, nil
	}
	list, err := o.pages.Approvals.Changes.Treasury.Banks(v.Ctx)
	if err != nil {
		return nil, err
	}
	options := []page.Option{{Text: "Choose"}}
	for _, b := range list {
		if !b.Closed && b.Mode == t.Mode {
			options = append(options, page.Option{Value: b.Name, Text: b.String()})
		}
	}
	if len(options) == 1 {
		return nil, nil
	}
	credits, err := o.pages.Reconcile.Credits(v.Ctx, t.Mode, mostCredits)
	if err != nil {
		return nil, err
	}
	fields := []page.Field{{Name: "bank", Label: "Bank account", Value: v.Given("bank", ""), Options: options}}
	if len(credits) > 0 {
		lines := []page.Option{{Text: "No credit: no statement of this bank account is imported"}}
		for _, c := range credits {
			lines = append(lines, page.Option{Value: c.ID, Text: fmt.Sprintf("%s on %s at %s", t.Money().Text(int64(c.Amount)), c.At.Format("2 Jan 2006"), c.Bank)})
		}
		fields = append(fields, page.Field{Name: "line", Label: "Credit in the bank's statement", Value: v.Given("line", ""), Options: lines, Hint: "Choose the credit of the deposit. A credit pays for one deposit."})
	}
	return append(fields, page.Field{Name: "slip", Label: "Slip number", Value: v.Given("slip", ""), Max: treasury.MaxSlip, Required: len(credits) == 0, Hint: "Enter the number of the bank's slip or credit. A slip of a bank account pays for one deposit."}), nil
}

// mostCredits is the maximum number of credits of statements in the form, newest first.
const mostCredits = 200

// form returns the form for the amount and the reason.
func (o walletOrder) form(v *console.Visit, t tenant.Tenant, banks []page.Field, amount, way, reason string) page.Form {
	f := page.Form{ID: o.name, Action: o.path(t), Submit: "Continue", Fields: []page.Field{
		{Name: "amount", Label: "Amount (GHS)", Value: amount, Max: 20, Required: true, Hint: "Enter an amount such as 1250.00. You confirm it on the next page."},
		referenceField(v),
		{Name: "reason", Label: "Reason", Value: reason, Max: 500, Required: true, Hint: "Describe your evidence for the approver and the audit log."}}}
	f.Fields = slices.Insert(f.Fields, 1, banks...)
	if o.takes {
		f.Fields = slices.Insert(f.Fields, 0, page.Field{Name: "way", Label: "Direction", Value: way, Options: []page.Option{{Value: "in", Text: "Add to wallet"}, {Value: "out", Text: "Remove from wallet"}}})
	}
	return f
}

// page shows the form.
func (o walletOrder) page(v *console.Visit) (console.Answer, error) {
	t, err := v.About()
	if err != nil {
		return console.Answer{}, err
	}
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	banks, err := o.banks(v, t)
	return console.Answer{Title: o.title, Body: walletBody(o, t, o.form(v, t, banks, "", "in", ""))}, err
}

// amount reads the amount of the form. It is negative for a withdrawal.
func (o walletOrder) amount(v *console.Visit) (money.Pesewas, error) {
	amount, err := money.Parse(v.R.PostFormValue("amount"))
	if errors.Is(err, money.ErrRange) {
		return 0, problem.Field("amount", err.Error())
	}
	if err != nil || amount <= 0 {
		return 0, problem.Field("amount", "must be an amount above zero, such as 1250.00")
	}
	switch way := v.R.PostFormValue("way"); {
	case o.takes && way == "out":
		return -amount, nil
	case o.takes && way != "in":
		return 0, problem.Field("way", "must be one of the options")
	}
	return amount, nil
}

// confirm shows the effect of the change.
func (o walletOrder) confirm(v *console.Visit) (console.Answer, error) {
	t, err := v.About()
	if err != nil {
		return console.Answer{}, err
	}
	value := v.R.PostFormValue
	banks, err := o.banks(v, t)
	if err != nil {
		return console.Answer{}, err
	}
	faulty := func(err error) (console.Answer, error) {
		return console.Answer{Title: o.title, Wrong: true, Body: walletBody(o, t, console.Faulty(o.form(v, t, banks, value("amount"), value("way"), value("reason")), err))}, nil
	}
	amount, err := o.amount(v)
	if err != nil {
		return faulty(err)
	}
	wallet := t.Wallet()
	values := changes.Values{changes.FieldTenant: t.ID, "amount": max(amount, -amount).String(), "reference": value("reference")}
	if o.takes {
		values["way"] = value("way")
	} else {
		values["bank"], values["slip"], values["line"] = value("bank"), value("slip"), value("line")
	}
	preview, err := o.pages.Approvals.Changes.Preview(v.Ctx, approvals.By(v), o.kind, values)
	if problem.Is(err, problem.Invalid) {
		return faulty(err)
	}
	if err != nil {
		return console.Answer{}, err
	}
	size, submit := max(amount, -amount), "Add %s to wallet"
	if amount < 0 {
		submit = "Remove %s from wallet"
	}
	worth := wallet.Asset.Text(int64(size))
	facts := []page.Fact{{Name: "Account", Value: page.Text(console.AccountName(t))}, {Name: "ID", Value: page.ID(t.ID)}, {Name: "Amount", Value: page.Text(wallet.Asset.Text(int64(amount)))}}
	if size >= words.InWords {
		facts = append(facts, page.Fact{Name: "In words", Value: page.Text(page.Words(size))})
	}
	for _, f := range preview.Facts.List {
		if !f.Warning {
			facts = append(facts, page.Fact{Name: f.Name, Value: page.Text(f.Value)})
		}
	}
	if value("reference") != "" {
		facts = append(facts, page.Fact{Name: "Reference", Value: page.Text(value("reference"))})
	}
	if value("slip") != "" {
		facts = append(facts, page.Fact{Name: "Slip", Value: page.Text(value("slip"))})
	}
	facts = append(facts, page.Fact{Name: "Reason", Value: page.Text(value("reason"))})
	var warnings []string
	for _, f := range preview.Facts.Warnings() {
		warnings = append(warnings, f.Value)
	}
	form := page.Form{ID: "confirm", Action: o.path(t) + "/confirm", Submit: fmt.Sprintf(submit, worth), Danger: amount < 0, Fields: []page.Field{
		{Name: "id", Type: "hidden", Value: cmp.Or(value("id"), uuid.Must(uuid.NewV7()).String())}, {Name: "amount", Type: "hidden", Value: size.String()},
		{Name: "way", Type: "hidden", Value: value("way")}, {Name: "reference", Type: "hidden", Value: value("reference")}, {Name: "bank", Type: "hidden", Value: value("bank")},
		{Name: "slip", Type: "hidden", Value: value("slip")}, {Name: "line", Type: "hidden", Value: value("line")}, {Name: "reason", Type: "hidden", Value: value("reason")}}}
	return console.Answer{Title: o.title, Body: walletConfirmBody(o, warnings, facts, form, o.path(t))}, nil
}

// do requests the change. The form's ID is the request's, so a form that is sent twice makes one request.
func (o walletOrder) do(v *console.Visit) (console.Answer, error) {
	t, err := v.About()
	if err != nil {
		return console.Answer{}, err
	}
	v.FormPage = o.path(t)
	amount, err := o.amount(v)
	if err != nil {
		return console.Answer{}, err
	}
	value := v.R.PostFormValue
	request, err := o.ask(o.pages.Approvals.Changes, v.Ctx, approvals.By(v), value("id"), changes.Deposit{Tenant: t.ID, Amount: amount, Reference: value("reference"), Bank: value("bank"), Slip: value("slip"), Line: value("line")}, value("reason"))
	if err != nil {
		return console.Answer{}, err
	}
	return console.Answer{To: "/ops/acts/" + request.ID}, nil
}
