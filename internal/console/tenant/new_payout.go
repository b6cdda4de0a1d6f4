package tenant

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/ratelimit"
	"github.com/makola/makola/internal/tenant"
)

// A payout by a person has two steps: a form, and a page for its confirmation. The form has a token, from which the payout's
// Reference and Idempotency-Key are made. So a double click, a page that is loaded again or a step back requests the same
// payout. The second page is signed: the payout is sent as it was shown.

// formLasts is the lifetime of a form.
const formLasts = time.Hour

// A token is a nonce, its time in seconds, and a MAC of both.
const (
	nonceBytes = 16
	timeBytes  = 8
	codeBytes  = 16
)

// payoutInputs are the parameters of the form.
var payoutInputs = []console.Input{{Name: "token", Max: 80}, {Name: "channel", Max: 60}, {Name: "account_number", Max: 30}, {Name: "amount", Max: 20}, {Name: "name", Max: 100}, {Name: "account_type", Max: 12}, {Name: "purpose", Max: 64}, {Name: "reference", Max: 36}}

// order is a payout in the form of the pages.
type order struct {
	token       string
	channel     string // a network, or changes.ToBank and a bank's ID
	account     string
	amount      string
	name        string // the expected name; on the second page the name shown
	accountType string
	purpose     string
	reference   string // the reference that the person entered; empty: none
	fee         string // as shown
	expected    string // on the second page, the name of the first page
	unnamed     string // changes.Yes if no registered name was found
}

func orderOf(v *console.Visit) order {
	value := v.R.PostFormValue
	return order{token: value("token"), channel: value("channel"), account: strings.TrimSpace(value("account_number")), amount: strings.TrimSpace(value("amount")),
		name: strings.TrimSpace(value("name")), accountType: value("account_type"), purpose: strings.TrimSpace(value("purpose")), reference: strings.TrimSpace(value("reference")), fee: value("fee"), expected: value("expected"), unnamed: value("unnamed")}
}

// first returns the order of the first page, with the expected name.
func (o order) first() order {
	if o.fee != "" {
		o.name = o.expected
	}
	return o
}

func payoutPath(v *console.Visit) string { return "/app/" + v.Tenant.ID + "/payouts/new" }

// code returns a MAC of texts for the visitor and the account. Lengths separate the texts.
func (ps *Pages) code(v *console.Visit, use string, texts ...string) []byte {
	mac := hmac.New(sha256.New, ps.FormKey)
	for _, text := range append([]string{use, v.Who.Person.ID, v.Tenant.ID}, texts...) {
		_ = binary.Write(mac, binary.BigEndian, int64(len(text))) // writing to a hash does not fail
		mac.Write([]byte(text))
	}
	return mac.Sum(nil)[:codeBytes]
}

// newToken returns the token of a new form.
func (ps *Pages) newToken(v *console.Visit) string {
	raw := make([]byte, nonceBytes, nonceBytes+timeBytes+codeBytes)
	rand.Read(raw)
	raw = binary.BigEndian.AppendUint64(raw, uint64(v.Now().Unix()))
	return base64.RawURLEncoding.EncodeToString(append(raw, ps.code(v, "payout form", string(raw))...))
}

// errForm is returned for a form that is not the visitor's, was changed or has expired.
func errForm() error {
	return problem.New(problem.Gone, "form_over", "This form has expired or belongs to another person. Nothing was sent. Check the list of payouts before you start again.")
}

// formID returns the id of a form, from which its payout's Reference is made. old reports that the form has expired.
func (ps *Pages) formID(v *console.Visit, token string) (id string, old bool, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) != nonceBytes+timeBytes+codeBytes {
		return "", false, errForm()
	}
	signed := raw[:nonceBytes+timeBytes]
	if subtle.ConstantTimeCompare(raw[nonceBytes+timeBytes:], ps.code(v, "payout form", string(signed))) != 1 {
		return "", false, errForm()
	}
	at := time.Unix(int64(binary.BigEndian.Uint64(signed[nonceBytes:])), 0)
	age := v.Now().Sub(at)
	made, err := uuid.FromBytes(ps.code(v, "payout reference", string(signed)))
	return made.String(), age >= formLasts || age < -time.Minute, err
}

// texts returns the fields of the second page in a fixed order.
func (o order) texts() []string {
	return []string{o.token, o.channel, o.account, o.amount, o.name, o.accountType, o.purpose, o.reference, o.fee, o.expected, o.unnamed}
}

func (ps *Pages) shownCode(v *console.Visit, o order) string {
	return base64.RawURLEncoding.EncodeToString(ps.code(v, "payout shown", o.texts()...))
}

// payoutForm returns the form of a payout.
func (ps *Pages) payoutForm(v *console.Visit, o order) (page.Form, error) {
	options := []page.Option{}
	for _, n := range msisdn.Networks() {
		options = append(options, page.Option{Value: string(n), Text: n.Name()})
	}
	banks, err := ps.Rails.Banks(v.Ctx, v.Tenant.ID, string(v.Tenant.Mode))
	if err != nil {
		return page.Form{}, err
	}
	for _, b := range banks {
		options = append(options, page.Option{Value: changes.ToBank + b.ID, Text: b.Name})
	}
	return page.Form{ID: "payout", Action: payoutPath(v), Submit: "Continue", Fields: []page.Field{
		{Name: "token", Type: "hidden", Value: o.token},
		{Name: "channel", Label: "Network or bank", Value: o.channel, Options: options},
		{Name: "account_number", Label: "Phone or account number", Value: o.account, Max: 30, Required: true},
		{Name: "amount", Label: "Amount (GHS)", Value: o.amount, Max: 20, Required: true, Hint: "Enter an amount such as 1250.00. You confirm it on the next page."},
		{Name: "name", Label: "Name of the payee", Value: o.name, Max: 100, Hint: "Enter the name that you expect. It is compared with the registered name."},
		{Name: "account_type", Label: "MTN wallet type", Value: o.accountType, Options: []page.Option{{Text: "Unknown"}, {Value: book.AccountSubscriber, Text: "Personal"}, {Value: book.AccountAgent, Text: "Agent"}}},
		{Name: "purpose", Label: "Purpose", Value: o.purpose, Max: 64, Hint: "Enter the reason for the payout, such as November salary. The approver sees this text. The payee may see it too."},
		{Name: "reference", Label: "Your reference", Value: o.reference, Max: 36, Hint: "Enter 12 to 36 letters, digits, dots, dashes or underscores, such as INV-2026-00417. Leave empty for a generated reference."},
	}}, nil
}

// newPayout shows the form.
func (ps *Pages) newPayout(v *console.Visit) (console.Answer, error) {
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	return ps.askPayout(v, order{token: ps.newToken(v)}, nil)
}

// askPayout shows the form with its errors.
func (ps *Pages) askPayout(v *console.Visit, o order, wrong error) (console.Answer, error) {
	f, err := ps.payoutForm(v, o)
	if err != nil {
		return console.Answer{}, err
	}
	if wrong != nil {
		f = console.Faulty(f, formFields(wrong))
	}
	if v.Tenant.PayoutsStopped {
		f.Wrong = "Payouts of this account are stopped."
	}
	return console.Answer{Title: "New payout", Wrong: wrong != nil, Body: newPayoutBody(v, f)}, nil
}

// formFields gives an error the names of the form's fields.
func formFields(err error) error {
	e := *problem.From(err)
	names := map[string]string{"bank_id": "channel", "network": "channel", "phone_number": "account_number", "carriermomo_account_type": "account_type", "client_reference": "reference"}
	fields := map[string][]string{}
	for name, texts := range e.Fields {
		if known := names[name]; known != "" {
			name = known
		}
		fields[name] = append(fields[name], texts...)
	}
	for name := range fields { // an error without a field of the form is shown above it
		if !slices.Contains([]string{"channel", "account_number", "amount", "name", "account_type", "purpose", "reference"}, name) {
			delete(fields, name)
		}
	}
	e.Fields = fields
	return &e
}

// values returns the form's entries as values for a payout's change request.
func (o order) values(t tenant.Tenant) changes.Values {
	v := changes.Values{changes.FieldTenant: t.ID, "channel": o.channel, "account_number": o.account, "amount": o.amount, "name": o.name, "account_type": o.accountType, "purpose": o.purpose, "reference": o.reference}
	if network, known := msisdn.ParseNetwork(o.channel); !known || network != msisdn.MTN {
		v["account_type"] = ""
	}
	if o.fee == "" {
		return v
	}
	v["fee"], v["name"], v["unnamed"] = o.fee, o.expected, o.unnamed // the second page
	if o.unnamed != changes.Yes {
		v["registered"] = o.name
	}
	return v
}

// lookUp returns the payout of an order with its fee and the registered name, which is looked up.
func (ps *Pages) lookUp(v *console.Visit, o order) (made changes.PayoutOrder, err error) {
	took, err := ps.Limits.Take(v.Ctx, v.Tenant.ID, ratelimit.NameLimit())
	if err != nil {
		return made, err
	}
	if !took.Allowed {
		e := problem.New(problem.RateLimited, "rate_limited", "Too many name lookups. Try again in a minute")
		e.RetryAfter = took.ResetAfter
		return made, e
	}
	values := o.values(v.Tenant)
	for _, shown := range []string{"fee", "registered", "unnamed"} {
		delete(values, shown)
	}
	return ps.Approvals.Changes.OrderOf(v.Ctx, v.Tenant, values)
}

// confirmPayout shows the payout for confirmation.
func (ps *Pages) confirmPayout(v *console.Visit) (console.Answer, error) {
	v.FormPage = payoutPath(v)
	o := orderOf(v)
	id, old, err := ps.formID(v, o.token)
	if err != nil {
		return console.Answer{}, err
	}
	to, err := ps.paidAlready(v, o, id)
	if problem.Is(err, problem.Invalid) {
		return ps.askPayout(v, o.first(), err)
	}
	if to != "" || err != nil {
		return console.Answer{To: to}, err
	}
	if old {
		return console.Answer{}, errForm()
	}
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	return ps.showPayout(v, o)
}

// showPayout looks up the payout and shows it for confirmation.
func (ps *Pages) showPayout(v *console.Visit, o order) (console.Answer, error) {
	made, err := ps.lookUp(v, o)
	if problem.Is(err, problem.Invalid) || problem.Is(err, problem.RateLimited) {
		return ps.askPayout(v, o, err)
	}
	if err != nil {
		return console.Answer{}, err
	}
	values := o.values(v.Tenant)
	values["fee"], values["registered"], values["unnamed"] = made.Fee.String(), made.Registered, ""
	if made.Unnamed {
		values["unnamed"] = changes.Yes
	}
	request, err := ps.Approvals.Changes.Preview(v.Ctx, approvals.By(v), changes.KindSendPayout, values)
	if err != nil {
		return console.Answer{}, err
	}
	wallet := v.Tenant.Wallet()
	before, err := ps.Ledger.Balance(v.Ctx, wallet)
	if err != nil {
		return console.Answer{}, err
	}
	total := made.Payout.Amount + made.Fee
	if int64(total) > before {
		return ps.askPayout(v, o, problem.Field("amount", "is more than the wallet balance. The wallet has "+wallet.Asset.Text(before)+", and this payout costs "+wallet.Asset.Text(int64(total))+" with its fee"))
	}
	shown := o
	shown.amount, shown.fee, shown.expected, shown.unnamed = made.Payout.Amount.String(), made.Fee.String(), made.Expected, values["unnamed"]
	if shown.name = made.Registered; made.Registered == "" {
		shown.name = made.Expected
	}
	facts := payoutFacts(v, made, before)
	needs, err := ps.Approvals.Changes.Approvers(v.Ctx, approvals.By(v), request)
	if problem.Is(err, problem.Forbidden) {
		return ps.askPayout(v, o, err)
	}
	if err != nil {
		return console.Answer{}, err
	}
	if needs > 0 {
		people := map[bool]string{true: "Another person of the account must approve it within a day", false: "Two other people of the account must approve it within a day"}
		facts = append(facts, page.Fact{Name: "Approval", Value: page.Text(people[needs == 1])})
	}
	return console.Answer{Title: "New payout", Body: confirmPayoutBody(v, request.Facts.Warnings(), facts, ps.confirmForm(v, shown, wallet.Asset.Text(int64(made.Payout.Amount))))}, nil
}

// payoutFacts returns the details that a person confirms.
func payoutFacts(v *console.Visit, o changes.PayoutOrder, before int64) []page.Fact {
	asset, amount, total := v.Tenant.Wallet().Asset, o.Payout.Amount, o.Payout.Amount+o.Fee
	name := cmp.Or(o.Registered, "unknown")
	channel, account := o.Stored()
	facts := []page.Fact{{Name: "To", Value: page.Text(channel + " " + account)}, {Name: "Registered name", Value: page.Text(name)}, {Name: "Amount", Value: page.Text(asset.Text(int64(amount)))}}
	if amount >= words.InWords {
		facts = append(facts, page.Fact{Name: "In words", Value: page.Text(page.Words(amount))})
	}
	if o.Payout.Label != "" {
		facts = append(facts, page.Fact{Name: "Purpose", Value: page.Text(o.Payout.Label)})
	}
	if o.Payout.Reference != "" {
		facts = append(facts, page.Fact{Name: "Your reference", Value: page.Text(o.Payout.Reference)})
	}
	return append(facts, page.Fact{Name: "Fee", Value: page.Text(asset.Text(int64(o.Fee)))}, page.Fact{Name: "Total", Value: page.Text(asset.Text(int64(total)))},
		page.Fact{Name: "Wallet balance now", Value: page.Text(asset.Text(before))}, page.Fact{Name: "Wallet balance after", Value: page.Text(asset.Text(before - int64(total)))})
}

func (ps *Pages) confirmForm(v *console.Visit, o order, amount string) page.Form {
	hidden := func(name, value string) page.Field { return page.Field{Name: name, Type: "hidden", Value: value} }
	f := page.Form{ID: "confirm", Action: payoutPath(v) + "/confirm", Submit: "Send " + amount, Fields: []page.Field{
		hidden("token", o.token), hidden("channel", o.channel), hidden("account_number", o.account), hidden("amount", o.amount), hidden("name", o.name),
		hidden("account_type", o.accountType), hidden("purpose", o.purpose), hidden("reference", o.reference), hidden("fee", o.fee), hidden("expected", o.expected), hidden("unnamed", o.unnamed), hidden("shown", ps.shownCode(v, o))}}
	if o.differs() {
		f.Danger = true
		typed := page.Field{Name: "typed", Label: "Type the registered name to confirm the payee", Max: 100, Required: true, Auto: "off", Hint: "The registered name differs from the name that you expected: " + o.expected + "."}
		if text := v.R.PostFormValue("typed"); text != "" && !changes.SameName(text, o.name) {
			typed.Wrong = "is not the registered name"
		}
		f.Fields = append(f.Fields, typed)
	}
	return f
}

// differs reports whether the second page showed another registered name than the person expected.
func (o order) differs() bool {
	return changes.PayoutOrder{Expected: o.expected, Registered: o.name}.Differs() && o.unnamed != changes.Yes
}

// paidAlready returns the page of the payout that a form has made. It is empty if there is none.
func (ps *Pages) paidAlready(v *console.Visit, o order, id string) (string, error) {
	pay, found, err := ps.Approvals.Changes.PayoutOf(v.Ctx, v.Tenant.ID, id, o.reference)
	if err != nil || !found {
		return "", err
	}
	return paymentPath(v, pay.ID), nil
}

func paymentPath(v *console.Visit, id string) string {
	return "/app/" + v.Tenant.ID + "/payments/" + id
}

// pay sends the payout of the second page. A form that is sent again leads to the same payout.
func (ps *Pages) pay(v *console.Visit) (console.Answer, error) {
	v.FormPage = payoutPath(v)
	o := orderOf(v)
	id, old, err := ps.formID(v, o.token)
	if err != nil {
		return console.Answer{}, err
	}
	if subtle.ConstantTimeCompare([]byte(v.R.PostFormValue("shown")), []byte(ps.shownCode(v, o))) != 1 {
		return console.Answer{}, errForm()
	}
	to, err := ps.paidAlready(v, o, id)
	if problem.Is(err, problem.Invalid) {
		return ps.askPayout(v, o.first(), err)
	}
	if to != "" || err != nil {
		return console.Answer{To: to}, err
	}
	if old {
		return console.Answer{}, errForm()
	}
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	if o.differs() && !changes.SameName(v.R.PostFormValue("typed"), o.name) {
		a, err := ps.showPayout(v, o.first())
		a.Wrong = true
		return a, err
	}
	made, err := ps.Approvals.Changes.Do(v.Ctx, approvals.By(v), changes.KindSendPayout, id, o.values(v.Tenant), "")
	if err == nil {
		return console.Answer{To: paymentPath(v, made.ID)}, nil
	}
	if problem.From(err).Code == changes.CodeChanged { // the fee has changed since
		return ps.showPayout(v, o.first())
	}
	// A payout that the provider refused, or that the first of two clicks is sending, has a page.
	if to, lost := ps.paidAlready(v, o, id); lost == nil && to != "" {
		return console.Answer{To: to}, nil
	}
	if problem.Is(err, problem.Invalid) || problem.Is(err, problem.InsufficientFunds) || problem.Is(err, problem.Forbidden) {
		return ps.askPayout(v, o.first(), err)
	}
	return console.Answer{}, err
}
