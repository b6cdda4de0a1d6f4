package pawapay

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/sim"
)

// party is a wallet.
type party struct {
	Type    string `json:"type"`
	Details struct {
		Phone    string `json:"phoneNumber"`
		Provider string `json:"provider"`
	} `json:"accountDetails"`
}

// body is the body of every request that moves money.
type body struct {
	DepositID string `json:"depositId"`
	PayoutID  string `json:"payoutId"`
	RefundID  string `json:"refundId"`
	Payer     *party `json:"payer"`
	Recipient *party `json:"recipient"`
	Amount    string `json:"amount"`
	Currency  string `json:"currency"`
	Message   string `json:"customerMessage"`
	Client    string `json:"clientReferenceId"`
}

// amountForm is the form of an amount that pawaPay accepts: without a leading zero, and with at most two decimals, as the
// networks of Ghana have.
var amountForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,17})(\.[0-9]{1,2})?$`)

// messageForm is the form of a text for the customer.
var messageForm = regexp.MustCompile(`^[a-zA-Z0-9 ]{4,22}$`)

// deposit answers a deposit.
func (p *pawapay) deposit(c *call) {
	var b body
	if c.body(&b) {
		p.place(c, deposits, b.DepositID, b, b.Payer, sim.Order{Kind: sim.Collection}, testDeposits)
	}
}

// payout answers a payout.
func (p *pawapay) payout(c *call) {
	var b body
	if c.body(&b) {
		p.place(c, payouts, b.PayoutID, b, b.Recipient, sim.Order{Kind: sim.Payout}, testPayouts)
	}
}

// refund answers a refund. It accepts a refund of a deposit that is not completed, or of more than is left.
// Such a refund fails later.
func (p *pawapay) refund(c *call) {
	var b body
	if !c.body(&b) {
		return
	}
	of, known := p.s.Status(Name, b.DepositID)
	if !known || of.Resource != deposits {
		c.give(refused("refundId", "INVALID_INPUT", "The deposit was not found", b.RefundID))
		return
	}
	if b.Amount == "" {
		b.Amount = amountText(of.Amount)
	}
	to := &party{Type: "MMO"}
	to.Details.Phone, to.Details.Provider = of.Party, wired(of).provider
	b.Currency = currency
	p.place(c, refunds, b.RefundID, b, to, sim.Order{Kind: sim.Payout, Refunds: of.Reference}, nil)
}

// place checks a payment, enters it in the book and answers the request. o has the kind of the payment, and
// for a refund the deposit.
func (p *pawapay) place(c *call, resource, id string, b body, to *party, o sim.Order, numbers map[string]sim.Plan) {
	name := idName(resource)
	parsed, err := uuid.Parse(id)
	if err != nil || parsed.Version() != 4 || len(id) != 36 {
		c.Write(http.StatusBadRequest, jsonType, sim.Encode(refused(name, "INVALID_PARAMETER", "The id must be a UUIDv4", id)))
		return
	}
	number, amount, code := checked(b, to)
	if code != "" {
		c.give(refused(name, code, "The value is not valid", id))
		return
	}
	settings := p.setting()
	o.Provider, o.Resource, o.Reference, o.Amount, o.Party, o.CallbackURL = Name, resource, id, amount, number.International(), settings.CallbackURL
	o.Text, o.Wire = b.Message, to.Details.Provider+"\n"+b.Client
	if plan, documented := numbers[number.International()[3:]]; documented {
		o.Fixed = &plan
	}
	placed, ok := c.Order(o)
	switch {
	case !ok:
	case placed.Existed && settings.RejectRepeats:
		c.give(refused(name, "INVALID_INPUT", "The id was used before", id))
	case placed.Existed:
		c.give(map[string]any{name: id, "status": "DUPLICATE_IGNORED", "created": stamp(placed.Entry.At)})
	case placed.Refused == sim.FloatLow:
		c.give(refused(name, "PAWAPAY_WALLET_OUT_OF_FUNDS", "The balance is too low", id))
	case placed.Refused != "":
		c.Refusal(c.Hit.Of(sim.RefuseOutright).Answer, o)
	default:
		c.give(map[string]any{name: id, "status": "ACCEPTED", "created": stamp(placed.Entry.At)})
	}
}

// checked reads the wallet and the amount of a request, or returns the failure code.
func checked(b body, to *party) (number msisdn.MSISDN, amount money.Pesewas, code string) {
	switch {
	case to == nil || to.Type != "MMO":
		return "", 0, "MISSING_PARAMETER"
	case b.Currency != currency:
		return "", 0, "INVALID_CURRENCY"
	case networks[to.Details.Provider] == "":
		return "", 0, "INVALID_PROVIDER"
	case b.Message != "" && !messageForm.MatchString(b.Message):
		return "", 0, "INVALID_PARAMETER"
	}
	number, err := msisdn.Parse(to.Details.Phone)
	if err != nil || to.Details.Phone != number.International() {
		return "", 0, "INVALID_PHONE_NUMBER"
	}
	if amount, err = money.Parse(b.Amount); err != nil || !amountForm.MatchString(b.Amount) || amount <= 0 {
		return "", 0, "INVALID_AMOUNT"
	}
	return number, amount, ""
}

// status answers with a payment by its id.
func (p *pawapay) status(resource string) func(*call) {
	return func(c *call) {
		e, ok := p.s.Status(Name, c.Request.PathValue("id"))
		if !ok || e.Resource != resource || c.Hides(e) {
			c.give(map[string]any{"status": "NOT_FOUND"})
			return
		}
		c.Bends(&e)
		c.give(map[string]any{"status": "FOUND", "data": object(e)})
	}
}

// wire is what a payment's answers repeat of its request: the network and the client's reference, divided by a line break.
type wire struct{ provider, client string }

func wired(e sim.Entry) (w wire) {
	w.provider, w.client, _ = strings.Cut(e.Wire, "\n")
	return w
}

// object returns a payment as in status responses and callbacks.
func object(e sim.Entry) map[string]any {
	w := wired(e)
	wallet := map[string]any{"type": "MMO", "accountDetails": map[string]any{"phoneNumber": e.Party, "provider": w.provider}}
	o := map[string]any{idName(e.Resource): e.Reference, "status": statusOf(e), "amount": amountText(e.Amount), "currency": currency, "country": country,
		"created": stamp(e.At), "providerTransactionId": fmt.Sprint(7_100_000_000 + e.Number)}
	if e.Resource == deposits {
		o["payer"] = wallet
	} else {
		o["recipient"] = wallet
	}
	if e.Text != "" {
		o["customerMessage"] = e.Text
	}
	if w.client != "" {
		o["clientReferenceId"] = w.client
	}
	if e.Status == sim.Failed {
		o["failureReason"] = map[string]any{"failureCode": failureCode(e), "failureMessage": "The payment failed"}
	}
	return o
}

// statusOf returns pawaPay's status of a payment. A payout that is pending for long is "enqueued". A payout that never ends
// is "in reconciliation".
func statusOf(e sim.Entry) string {
	switch {
	case e.Status == sim.Success:
		return "COMPLETED"
	case e.Status == sim.Failed:
		return "FAILED"
	case e.Plan.Wait && e.Resource != deposits:
		return "IN_RECONCILIATION"
	}
	if code, _ := sim.Magic(e.Party); code == "002" && e.Resource != deposits {
		return "ENQUEUED"
	}
	return "PROCESSING"
}
