package changes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// ToBank is the prefix of the field channel for a payout to a bank account. The bank's ID follows.
const ToBank = "bank:"

// Yes is the value of a field that is either set or absent.
const Yes = "yes"

// payoutFields are the fields of a payout by a page. The last three carry values that the page showed before.
var payoutFields = []Field{tenantField,
	{Name: "channel", Label: "Network or bank", Max: 60, Required: true},
	{Name: "account_number", Label: "Phone or account number", Max: 30, Required: true},
	{Name: "amount", Label: "Amount (GHS)", Max: 20, Required: true},
	{Name: "name", Label: "Name of the payee", Hint: "Enter the name that you expect. It is compared with the registered name.", Max: 100},
	{Name: "account_type", Label: "MTN wallet type", Options: []string{book.AccountSubscriber, book.AccountAgent}, Max: 12},
	{Name: "purpose", Label: "Purpose", Hint: "Enter the purpose. The payee and the approver may see it.", Max: 64},
	{Name: "reference", Label: "Your reference", Hint: "Enter 12 to 36 letters, digits, dots, dashes or underscores, such as an invoice number. A reference is used for one payout. Leave empty for a generated reference.", Max: 36},
	{Name: "registered", Label: "Registered name", Hint: "Enter the name that was shown. Leave empty to look it up.", Max: 100},
	{Name: "unnamed", Label: "No registered name was found", Options: []string{Yes}, Max: 3},
	{Name: "fee", Label: "Fee", Hint: "Enter the fee that was shown. A payout with another fee is refused.", Max: 20}}

func (a *Changes) payoutKind() Kind {
	return Kind{Name: KindSendPayout, Title: "Payout by a page or a key", Rule: sendRule, Check: a.checkPayout, Apply: a.approvePayout, Undone: a.disapprovePayout,
		Instead: "People of the account send payouts on its page"}.by(a.lookPayout, payoutFields...)
}

// PayoutOrder is a payout by a page, with its fee and the registered name.
type PayoutOrder struct {
	Payout     payments.Payout
	Fee        money.Pesewas
	Expected   string // name of the payee that the person expects
	Registered string // registered name of the payee at the provider
	Unnamed    bool   // no provider returned the name
}

// Differs reports whether the registered name differs from the expected one.
func (o PayoutOrder) Differs() bool {
	return o.Expected != "" && o.Registered != "" && !SameName(o.Expected, o.Registered)
}

// payment returns the payment of an order as it would be accepted, without its id.
func (o PayoutOrder) payment(t tenant.Tenant) book.Payment {
	channel, account := o.Stored()
	return book.Payment{Tenant: t.ID, Mode: string(t.Mode), Kind: book.KindPayout, Channel: channel, BankID: o.Payout.BankID, Account: account, AccountName: o.Registered, Amount: o.Payout.Amount, Charges: o.Fee,
		Reference: o.Payout.Reference}
}

// Stored returns the channel and the number of a payout in the form in which its row stores them.
func (o PayoutOrder) Stored() (channel, account string) {
	if o.Payout.BankID != "" {
		return book.ChannelBank, o.Payout.AccountNumber
	}
	return string(o.Payout.Network), string(o.Payout.MSISDN)
}

// payoutOf parses the payout of a form. Package payments has the rules of payouts.
func payoutOf(t tenant.Tenant, v Values) (payments.Payout, error) {
	p := payments.Payout{Name: v["name"], Label: v["purpose"], Reference: v["reference"]}
	var bad problem.Fields
	limit := t.PayoutLimitWallet
	if bank, is := strings.CutPrefix(v["channel"], ToBank); is {
		p.BankID, limit = bank, t.PayoutLimitBank
		if p.AccountNumber = strings.NewReplacer(" ", "", "-", "").Replace(v["account_number"]); p.AccountNumber == "" {
			bad.Add("account_number", "is required")
		}
		if bank == "" {
			bad.Add("channel", "must be one of the options")
		}
	} else {
		var err error
		if p.MSISDN, err = msisdn.Parse(v["account_number"]); err != nil {
			bad.Add("account_number", err.Error())
		}
		network, known := msisdn.ParseNetwork(v["channel"])
		if !known {
			bad.Add("channel", "must be one of the options")
		}
		if p.Network, p.AccountType = network, v["account_type"]; network != msisdn.MTN {
			p.AccountType = ""
		} else if !slices.Contains([]string{"", book.AccountSubscriber, book.AccountAgent}, p.AccountType) {
			bad.Add("account_type", "must be one of the options")
		}
	}
	amount, err := money.Parse(v["amount"])
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
	if p.Reference != "" {
		bad.Merge(payments.CheckReference("reference", p.Reference))
	}
	return p, bad.Err()
}

// OrderOf returns the payout of a form with its fee and the payee's registered name. It looks up the name if the form
// does not carry it.
func (a *Changes) OrderOf(ctx context.Context, t tenant.Tenant, v Values) (o PayoutOrder, err error) {
	if o.Payout, err = payoutOf(t, v); err != nil {
		return o, err
	}
	o.Expected, o.Registered, o.Unnamed = v["name"], v["registered"], v["unnamed"] == Yes
	channel, _ := o.Stored()
	if o.Fee, _, err = a.Tenants.Fee(ctx, t.ID, tenant.Payout, channel, o.Payout.Amount, a.Store.clock.Now()); err != nil {
		return o, err
	}
	if o.Registered == "" && !o.Unnamed {
		if o.Registered, o.Unnamed, err = a.registered(ctx, t, o.Payout); err != nil {
			return o, err
		}
	}
	if o.Registered != "" {
		o.Payout.Name = o.Registered
	}
	return o, nil
}

// registered looks up the registered name of the payee. unnamed reports that no provider returned it.
func (a *Changes) registered(ctx context.Context, t tenant.Tenant, p payments.Payout) (name string, unnamed bool, err error) {
	if p.BankID != "" {
		name, _, err = a.Lookups.PayeeName(ctx, t.ID, p.BankID, p.AccountNumber, p.Amount)
	} else {
		name, err = a.Lookups.WalletName(ctx, t.ID, p.Network, p.MSISDN)
	}
	if problem.Is(err, problem.Unavailable) || p.BankID == "" && problem.From(err) != nil && problem.From(err).Code == "not_served" {
		return "", true, nil
	}
	return name, name == "" && err == nil, err
}

// formKey returns the Idempotency-Key of the payout of a form. It is also the payout's reference if the person
// entered none.
func formKey(id string) string {
	digits := strings.ReplaceAll(id, "-", "")
	return "console-" + digits[:min(24, len(digits))]
}

// PayoutOf finds the payout that a form has made. reference is the person's own, or empty. It refuses a reference
// that belongs to another payout.
func (a *Changes) PayoutOf(ctx context.Context, tenantID, id, reference string) (pay book.Payment, found bool, err error) {
	key := formKey(id)
	list, err := a.Payments.History(ctx, tenantID, book.Filter{Kind: book.KindPayout, Reference: cmp.Or(reference, key), Page: 1, Size: 1})
	switch {
	case err != nil || len(list.Rows) == 0:
		return pay, false, err
	case list.Rows[0].IdempotencyKey != key:
		return pay, false, problem.Field("reference", "belongs to another payout")
	}
	return list.Rows[0], true, nil
}

// lookPayout drafts a payout by a page. The transaction that stores the request accepts the payment. The payment then
// waits for approval with its money on hold, or is sent at once.
func (a *Changes) lookPayout(ctx context.Context, o Order) (Draft, error) {
	if o.By.Place != o.Values[FieldTenant] || o.By.Machine != "" {
		return Draft{}, problem.New(problem.Forbidden, "person_needed", a.kinds[KindSendPayout].Instead)
	}
	switch pay, found, err := a.PayoutOf(ctx, o.By.Place, o.ID, o.Values["reference"]); {
	case err != nil:
		return Draft{}, err
	case found: // the same form again
		again, err := a.accepted(ctx, KindSendPayout, o.By.Place, pay.ID)
		return Draft{Again: &again}, err
	}
	t, err := a.Tenants.Get(ctx, o.By.Place)
	if err != nil {
		return Draft{}, err
	}
	order, err := a.OrderOf(ctx, t, o.Values)
	if err != nil {
		return Draft{}, err
	}
	if shown := o.Values["fee"]; shown != "" && shown != order.Fee.String() {
		return Draft{}, errChanged("The fee")
	}
	order.Payout.Reference = cmp.Or(order.Payout.Reference, formKey(o.ID))
	facts, err := a.PayoutFacts(ctx, order.payment(t), order.Expected, order.Unnamed)
	r := payoutRequest(order.payment(t))
	return Draft{Tenant: t.ID, Sentence: r.Sentence, Amount: r.Amount, Payload: r.Payload, Reason: cmp.Or(order.Payout.Label, "Reference "+reference(order.payment(t))),
		Facts: facts, Changes: []audit.Change{{What: "payout", After: "is sent"}},
		Accept: func(ctx context.Context, plan Plan) (string, error) { return a.acceptPayout(ctx, o, order, plan) }}, err
}

// acceptWithin is the time limit of an acceptance, which continues if the browser disconnects.
const acceptWithin = 30 * time.Second

// acceptPayout accepts the payout of an order and submits it unless it waits for approval.
func (a *Changes) acceptPayout(ctx context.Context, o Order, order PayoutOrder, plan Plan) (string, error) {
	gone := ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptWithin)
	defer cancel()
	p := order.Payout
	p.Gone = gone
	p.Requester.Plan = func(ctx context.Context, pay book.Payment) (*payments.PendingApproval, error) {
		if pay.Charges != order.Fee {
			return nil, errChanged("The fee")
		}
		// The name is looked up again, perhaps by another provider, whose code of the bank may lead to somebody else.
		if pay.Channel == book.ChannelBank && order.Registered != "" && !SameName(pay.AccountName, order.Registered) {
			return nil, errChanged("The registered name")
		}
		return plan.pending(ctx, payoutRequest(pay))
	}
	p.Requester.Adopted = a.adopted(o, KindSendPayout)
	caller, err := o.caller()
	if err != nil {
		return "", err
	}
	pay, _, err := a.Payments.Payout(ctx, caller, p)
	return pay.ID, err
}

// adopted records who entered a payment that a recovery found at a provider. It has no request: its approval, if it
// needed one, was lost with the rows that the recovery replaces.
func (a *Changes) adopted(o Order, kind string) func(tx *db.Tx, pay book.Payment) error {
	return func(tx *db.Tx, pay book.Payment) error {
		return a.Store.audit.Write(tx, audit.Entry{Actor: o.By.name(), Person: o.By.id(), Origin: o.By.Origin, Action: kind, Tenant: pay.Tenant, Subject: pay.ID, Reason: o.Reason,
			Details: map[string]any{"reference": reference(pay), "changes": []audit.Change{{What: string(pay.Kind), After: "was found at the provider in a recovery, and is not sent"}}}})
	}
}

// caller returns the caller for whom the payment of a form is accepted. The form's id makes its Idempotency-Key.
func (o Order) caller() (idempotency.Caller, error) {
	asked, err := json.Marshal(o.Values)
	sum := sha256.Sum256(asked)
	return idempotency.Caller{Tenant: o.By.Place, IdempotencyKey: formKey(o.ID), BodyHash: hex.EncodeToString(sum[:16])}, err
}

// pending returns how long the payment of a request waits for approval, and the function that stores the
// request with the payment.
func (p Plan) pending(ctx context.Context, r Request) (*payments.PendingApproval, error) {
	r, write, err := p(ctx, r)
	if err != nil {
		return nil, err
	}
	held := &payments.PendingApproval{Write: write}
	if r.Needs > 0 {
		held.Until = r.ExpiresAt
	}
	return held, nil
}
