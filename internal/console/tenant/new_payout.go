package tenant

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments"
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

// toBank is the prefix of the choice of a bank. The bank's ID follows.
const toBank = "bank:"

// payoutInputs are the parameters of the form.
var payoutInputs = []console.Input{{Name: "token", Max: 80}, {Name: "channel", Max: 60}, {Name: "account_number", Max: 30}, {Name: "amount", Max: 20}, {Name: "name", Max: 100}, {Name: "account_type", Max: 12}}

// order is a payout in the form of the pages.
type order struct {
	token       string
	channel     string // a network, or toBank and a bank's ID
	account     string
	amount      string
	name        string // the expected name; on the second page the name shown
	accountType string
	fee         string // as shown
	expected    string // on the second page, the name of the first page
	unnamed     string // unnamedYes if no registered name was found
}

// unnamedYes flags, on the second page, a number without a registered name.
const unnamedYes = "yes"

func orderOf(v *console.Visit) order {
	value := v.R.PostFormValue
	return order{token: value("token"), channel: value("channel"), account: strings.TrimSpace(value("account_number")), amount: strings.TrimSpace(value("amount")),
		name: strings.TrimSpace(value("name")), accountType: value("account_type"), fee: value("fee"), expected: value("expected"), unnamed: value("unnamed")}
}

func payoutPath(v *console.Visit) string { return "/app/" + v.Tenant.ID + "/payouts/new" }

// code returns a MAC of texts for the visitor and the account. Lengths separate the texts.
func (ps *Pages) code(v *console.Visit, use string, texts ...string) []byte {
	mac := hmac.New(sha256.New, ps.FormKey)
	for _, text := range append([]string{use, v.Who.Person.ID, v.Tenant.ID}, texts...) {
		_ = binary.Write(mac, binary.BigEndian, int64(len(text))) // a hash takes everything
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

// reference returns the Reference of a form's payout. old reports that the form has expired.
func (ps *Pages) reference(v *console.Visit, token string) (reference string, old bool, err error) {
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
	return "console-" + hex.EncodeToString(ps.code(v, "payout reference", string(signed))[:12]), age >= formLasts || age < -time.Minute, nil
}

// texts returns the fields of the second page in a fixed order.
func (o order) texts() []string {
	return []string{o.token, o.channel, o.account, o.amount, o.name, o.accountType, o.fee, o.expected, o.unnamed}
}

func (ps *Pages) shownCode(v *console.Visit, o order) string {
	return base64.RawURLEncoding.EncodeToString(ps.code(v, "payout shown", o.texts()...))
}

// payoutForm returns the form of a payout.
func (ps *Pages) payoutForm(v *console.Visit, o order) (page.Form, error) {
	options := []page.Option{}
	for _, n := range msisdn.Networks() {
		options = append(options, page.Option{Value: string(n), Text: words.NetworkWords[n]})
	}
	banks, err := ps.Rails.Banks(v.Ctx, v.Tenant.ID, string(v.Tenant.Mode))
	if err != nil {
		return page.Form{}, err
	}
	for _, b := range banks {
		options = append(options, page.Option{Value: toBank + b.ID, Text: b.Name})
	}
	return page.Form{ID: "payout", Action: payoutPath(v), Submit: "Continue", Fields: []page.Field{
		{Name: "token", Type: "hidden", Value: o.token},
		{Name: "channel", Label: "Network or bank", Value: o.channel, Options: options},
		{Name: "account_number", Label: "Phone or account number", Value: o.account, Max: 30, Required: true},
		{Name: "amount", Label: "Amount (GHS)", Value: o.amount, Max: 20, Required: true, Hint: "Enter an amount such as 1250.00. You confirm it on the next page."},
		{Name: "name", Label: "Name of the payee", Value: o.name, Max: 100, Hint: "Enter the name that you expect. It is compared with the registered name."},
		{Name: "account_type", Label: "MTN wallet type", Value: o.accountType, Options: []page.Option{{Text: "Unknown"}, {Value: book.AccountSubscriber, Text: "Personal"}, {Value: book.AccountAgent, Text: "Agent"}}},
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
	names := map[string]string{"bank_id": "channel", "network": "channel", "phone_number": "account_number", "carriermomo_account_type": "account_type"}
	fields := map[string][]string{}
	for name, texts := range e.Fields {
		if known := names[name]; known != "" {
			name = known
		}
		fields[name] = append(fields[name], texts...)
	}
	for name := range fields { // an error without a field of the form is shown above it
		if !slices.Contains([]string{"channel", "account_number", "amount", "name", "account_type"}, name) {
			delete(fields, name)
		}
	}
	e.Fields = fields
	return &e
}

// payout parses the order. The rules of payouts are those of package payments.
func (o order) payout(t tenant.Tenant) (payments.Payout, error) {
	p := payments.Payout{Name: o.name}
	var bad problem.Fields
	limit := t.PayoutLimitWallet
	if bank, is := strings.CutPrefix(o.channel, toBank); is {
		p.BankID, limit = bank, t.PayoutLimitBank
		if p.AccountNumber = strings.NewReplacer(" ", "", "-", "").Replace(o.account); p.AccountNumber == "" {
			bad.Add("account_number", "is required")
		}
		if bank == "" {
			bad.Add("channel", "must be one of the options")
		}
	} else {
		var err error
		if p.MSISDN, err = msisdn.Parse(o.account); err != nil {
			bad.Add("account_number", err.Error())
		}
		network, known := msisdn.ParseNetwork(o.channel)
		if !known {
			bad.Add("channel", "must be one of the options")
		}
		if p.Network, p.AccountType = network, o.accountType; network != msisdn.MTN {
			p.AccountType = ""
		} else if !slices.Contains([]string{"", book.AccountSubscriber, book.AccountAgent}, o.accountType) {
			bad.Add("account_type", "must be one of the options")
		}
	}
	amount, err := money.Parse(o.amount)
	switch {
	case errors.Is(err, money.ErrRange):
		bad.Add("amount", "must be at most "+limit.String())
	case err != nil:
		bad.Add("amount", "must be an amount such as 1250.00")
	case amount < payments.MinPayout:
		bad.Add("amount", "must be at least "+payments.MinPayout.String())
	case amount > limit:
		bad.Add("amount", "must be at most "+limit.String())
	}
	p.Amount = amount
	return p, bad.Err()
}

// stored returns the channel and the number of a payout as its row has them.
func stored(p payments.Payout) (channel, account string) {
	if p.BankID != "" {
		return book.ChannelBank, p.AccountNumber
	}
	return string(p.Network), string(p.MSISDN)
}

// registered looks up the registered name of the payee. unnamed reports that no provider could name it.
func (ps *Pages) registered(v *console.Visit, p payments.Payout) (name string, unnamed bool, err error) {
	took, err := ps.Limits.Take(v.Ctx, v.Tenant.ID, ratelimit.NameLimit())
	if err != nil {
		return "", false, err
	}
	if !took.Allowed {
		e := problem.New(problem.RateLimited, "rate_limited", "Too many name lookups. Try again in a minute")
		e.RetryAfter = took.ResetAfter
		return "", false, e
	}
	if p.BankID != "" {
		name, err = ps.Lookups.BankName(v.Ctx, v.Tenant.ID, p.BankID, p.AccountNumber)
	} else {
		name, err = ps.Lookups.WalletName(v.Ctx, v.Tenant.ID, p.Network, p.MSISDN)
	}
	if problem.Is(err, problem.Unavailable) || p.BankID == "" && problem.From(err) != nil && problem.From(err).Code == "not_served" {
		return "", true, nil
	}
	return name, false, err
}

// payoutWarnings returns the warnings of a payout, which the approver sees as well.
func (ps *Pages) payoutWarnings(v *console.Visit, p payments.Payout, expected, registered string, unnamed bool) (list []string, err error) {
	_, account := stored(p)
	payment := book.Payment{Tenant: v.Tenant.ID, Account: account, AccountName: registered, Amount: p.Amount}
	facts, err := ps.Approvals.Changes.PayoutFacts(v.Ctx, payment, expected, unnamed)
	for _, f := range facts {
		if f.Warning {
			list = append(list, f.Value)
		}
	}
	return list, err
}

// confirmPayout shows the payout for confirmation.
func (ps *Pages) confirmPayout(v *console.Visit) (console.Answer, error) {
	v.FormPage = payoutPath(v)
	o := orderOf(v)
	reference, old, err := ps.reference(v, o.token)
	if err != nil {
		return console.Answer{}, err
	}
	if to, err := ps.paidAlready(v, reference); to != "" || err != nil {
		return console.Answer{To: to}, err
	}
	if old {
		return console.Answer{}, errForm()
	}
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	p, err := o.payout(v.Tenant)
	if err != nil {
		return ps.askPayout(v, o, err)
	}
	return ps.showPayout(v, o, p)
}

// fee returns the current fee of the payout.
func (ps *Pages) fee(v *console.Visit, p payments.Payout) (money.Pesewas, error) {
	channel, _ := stored(p)
	fee, _, err := ps.Tenants.Fee(v.Ctx, v.Tenant.ID, tenant.Payout, channel, p.Amount, v.Now())
	return fee, err
}

func (ps *Pages) showPayout(v *console.Visit, o order, p payments.Payout) (console.Answer, error) {
	fee, err := ps.fee(v, p)
	if err != nil {
		return console.Answer{}, err
	}
	name, unnamed, err := ps.registered(v, p)
	if problem.Is(err, problem.Invalid) || problem.Is(err, problem.RateLimited) {
		return ps.askPayout(v, o, err)
	}
	if err != nil {
		return console.Answer{}, err
	}
	expected := o.name
	if o.fee != "" { // on the second page the name is the registered one
		expected = o.expected
	}
	warnings, err := ps.payoutWarnings(v, p, expected, name, unnamed)
	if err != nil {
		return console.Answer{}, err
	}
	wallet := v.Tenant.Wallet()
	before, err := ps.Ledger.Balance(v.Ctx, wallet)
	if err != nil {
		return console.Answer{}, err
	}
	total := p.Amount + fee
	if int64(total) > before {
		return ps.askPayout(v, o, problem.Field("amount", "is more than the wallet balance. The wallet has "+wallet.Asset.Text(before)+", and this payout costs "+wallet.Asset.Text(int64(total))+" with its fee"))
	}
	shown := o
	shown.amount, shown.fee, shown.expected = p.Amount.String(), fee.String(), expected
	if unnamed {
		shown.unnamed = unnamedYes
	}
	if name != "" {
		shown.name = name
	}
	facts := payoutFacts(v, o, p, name, fee, before)
	waits, err := ps.Approvals.Changes.Store.Asked(v.Ctx, changes.KindSendPayout, v.Tenant.ID, p.Amount)
	if err != nil {
		return console.Answer{}, err
	}
	if waits {
		facts = append(facts, page.Fact{Name: "Approval", Value: page.Text("Another person of the account must approve it within a day")})
	}
	return console.Answer{Title: "New payout", Body: confirmPayoutBody(v, warnings, facts, ps.confirmForm(v, shown, wallet.Asset.Text(int64(p.Amount))))}, nil
}

// payoutFacts returns the details that a person confirms.
func payoutFacts(v *console.Visit, o order, p payments.Payout, name string, fee money.Pesewas, before int64) []page.Fact {
	asset, total := v.Tenant.Wallet().Asset, p.Amount+fee
	if name == "" {
		name = "unknown"
	}
	channel, account := stored(p)
	facts := []page.Fact{{Name: "To", Value: page.Text(channel + " " + account)}, {Name: "Registered name", Value: page.Text(name)}, {Name: "Amount", Value: page.Text(asset.Text(int64(p.Amount)))}}
	if p.Amount >= words.InWords {
		facts = append(facts, page.Fact{Name: "In words", Value: page.Text(page.Words(p.Amount))})
	}
	return append(facts, page.Fact{Name: "Fee", Value: page.Text(asset.Text(int64(fee)))}, page.Fact{Name: "Total", Value: page.Text(asset.Text(int64(total)))},
		page.Fact{Name: "Wallet balance now", Value: page.Text(asset.Text(before))}, page.Fact{Name: "Wallet balance after", Value: page.Text(asset.Text(before - int64(total)))})
}

func (ps *Pages) confirmForm(v *console.Visit, o order, amount string) page.Form {
	hidden := func(name, value string) page.Field { return page.Field{Name: name, Type: "hidden", Value: value} }
	f := page.Form{ID: "confirm", Action: payoutPath(v) + "/confirm", Submit: "Send " + amount, Fields: []page.Field{
		hidden("token", o.token), hidden("channel", o.channel), hidden("account_number", o.account), hidden("amount", o.amount), hidden("name", o.name),
		hidden("account_type", o.accountType), hidden("fee", o.fee), hidden("expected", o.expected), hidden("unnamed", o.unnamed), hidden("shown", ps.shownCode(v, o))}}
	if o.differs() {
		f.Danger = true
		typed := page.Field{Name: "typed", Label: "Type the registered name to send it to this person", Max: 100, Required: true, Auto: "off", Hint: "It is not the name that you expected: " + o.expected + "."}
		if text := v.R.PostFormValue("typed"); text != "" && !changes.SameName(text, o.name) {
			typed.Wrong = "is not the registered name"
		}
		f.Fields = append(f.Fields, typed)
	}
	return f
}

// differs reports whether the second page showed another registered name than the person expected.
func (o order) differs() bool {
	return o.expected != "" && o.name != "" && o.unnamed != unnamedYes && !changes.SameName(o.expected, o.name)
}

// paidAlready returns the page of the payout that a form has made. It is empty if there is none.
func (ps *Pages) paidAlready(v *console.Visit, reference string) (string, error) {
	found, err := ps.Payments.History(v.Ctx, v.Tenant.ID, book.Filter{Kind: book.KindPayout, Reference: reference, Page: 1, Size: 1})
	if err != nil || len(found.Rows) == 0 {
		return "", err
	}
	return "/app/" + v.Tenant.ID + "/payments/" + found.Rows[0].ID, nil
}

// pay sends the payout of the second page. A form that is sent again leads to the same payout.
func (ps *Pages) pay(v *console.Visit) (console.Answer, error) {
	v.FormPage = payoutPath(v)
	o := orderOf(v)
	reference, old, err := ps.reference(v, o.token)
	if err != nil {
		return console.Answer{}, err
	}
	if subtle.ConstantTimeCompare([]byte(v.R.PostFormValue("shown")), []byte(ps.shownCode(v, o))) != 1 {
		return console.Answer{}, errForm()
	}
	if to, err := ps.paidAlready(v, reference); to != "" || err != nil {
		return console.Answer{To: to}, err
	}
	if old {
		return console.Answer{}, errForm()
	}
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	p, err := o.payout(v.Tenant)
	if err != nil {
		return ps.askPayout(v, o, err)
	}
	fee, err := ps.fee(v, p)
	if err != nil {
		return console.Answer{}, err
	}
	if o.differs() && !changes.SameName(v.R.PostFormValue("typed"), o.name) {
		return ps.askAgain(v, o, p)
	}
	if fee.String() != o.fee { // the fee has changed since
		return ps.showPayout(v, o, p)
	}
	return ps.sendPayout(v, o, p, reference)
}

// askAgain shows the second page again, because the name was not typed as it is registered.
func (ps *Pages) askAgain(v *console.Visit, o order, p payments.Payout) (console.Answer, error) {
	a, err := ps.showPayout(v, o, p)
	a.Wrong = true
	return a, err
}

// sendPayout records the visitor and sends the payout. It finishes even if the browser disconnects.
func (ps *Pages) sendPayout(v *console.Visit, o order, p payments.Payout, reference string) (console.Answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.Ctx), console.AnswerWithin)
	defer cancel()
	channel, account := stored(p)
	entry := v.Entry("payout.make", v.Tenant.ID, reference)
	entry.Details = map[string]any{"amount": p.Amount.String(), "fee": o.fee, "channel": channel, "account": page.Masked(account)} // no name, because this log is never erased
	if err := ps.Audit.RecordOnce(ctx, reference, formLasts, entry); err != nil {
		return console.Answer{}, err
	}
	sum := sha256.Sum256([]byte(ps.shownCode(v, o)))
	p.Reference, p.Gone = reference, v.R.Context().Done()
	p.Requester = payments.Requester{Person: v.Who.Person.ID, Email: v.Who.Person.Email, Origin: v.Origin(), Expected: o.expected, Unnamed: o.unnamed == unnamedYes}
	asked := idempotency.Caller{Tenant: v.Tenant.ID, IdempotencyKey: reference, BodyHash: hex.EncodeToString(sum[:16])}
	made, _, err := ps.Payments.Payout(ctx, asked, p)
	if err == nil {
		return console.Answer{To: "/app/" + v.Tenant.ID + "/payments/" + made.ID}, nil
	}
	// A payout that the provider refused, or that the first of two clicks is sending, has a page.
	if to, lost := ps.paidAlready(v, reference); lost == nil && to != "" {
		return console.Answer{To: to}, nil
	}
	if problem.Is(err, problem.Invalid) || problem.Is(err, problem.InsufficientFunds) || problem.Is(err, problem.Forbidden) {
		return ps.askPayout(v, o, err)
	}
	return console.Answer{}, err
}
