package paystack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/sim"
)

// refundsOf returns the refunds of a charge, oldest first. An empty reference means all charges.
func (p *paystack) refundsOf(reference string) (list []sim.Entry) {
	p.mu.Lock()
	if p.refunds == nil { // the book may already have refunds when it is opened
		p.refunds = map[string][]string{}
		for _, e := range p.s.All() {
			if e.Provider == Name && isRefund(e) {
				p.refunds[sim.Plain(e.Refunds)] = append(p.refunds[sim.Plain(e.Refunds)], e.Reference)
			}
		}
	}
	var names []string
	for of, each := range p.refunds {
		if reference == "" || of == sim.Plain(reference) {
			names = append(names, each...)
		}
	}
	p.mu.Unlock()
	for _, name := range names {
		if e, ok := p.s.Status(Name, name); ok {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b sim.Entry) int { return int(a.Number - b.Number) })
	return list
}

// givenBack is how much of a charge was refunded.
func (p *paystack) givenBack(of sim.Entry) (sum money.Pesewas) {
	for _, e := range p.refundsOf(of.Reference) {
		if e.Status == sim.Success {
			sum += e.Amount
		}
	}
	return sum
}

// charged finds a charge by its reference or number.
func (p *paystack) charged(name string) (sim.Entry, bool) {
	if e, ok := p.s.Status(Name, name); ok && e.Kind == sim.Collection {
		return e, true
	}
	id, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return sim.Entry{}, false
	}
	all := p.s.All()
	at := slices.IndexFunc(all, func(e sim.Entry) bool {
		return e.Provider == Name && e.Kind == sim.Collection && transactionID(e) == id
	})
	if at < 0 {
		return sim.Entry{}, false
	}
	return all[at], true
}

// refund answers a refund. The same request again makes another refund. A refund of an unpaid charge, or of more than is left,
// is accepted and fails later.
func (p *paystack) refund(c *call) {
	var b struct {
		Transaction json.RawMessage `json:"transaction"`
		Amount      json.RawMessage `json:"amount"`
		Currency    string          `json:"currency"`
		Customer    string          `json:"customer_note"`
		Merchant    string          `json:"merchant_note"`
	}
	if !c.body(&b) {
		return
	}
	of, known := p.charged(strings.Trim(string(b.Transaction), `"`))
	amount, fits := of.Amount, true
	if len(b.Amount) > 0 && string(b.Amount) != "null" {
		amount, fits = amountOf(b.Amount)
	}
	if !known || !fits || b.Currency != "" && b.Currency != currency {
		c.refuse(http.StatusBadRequest, "Transaction, amount or currency is invalid", "validation_error", "invalid_params")
		return
	}
	if b.Merchant == "" {
		b.Merchant = "Refund for transaction " + of.Reference + " by merchant@example.com"
	}
	if b.Customer == "" {
		b.Customer = "Refund for transaction " + of.Reference
	}
	_, eventURL := p.setting()
	o := sim.Order{Provider: Name, Kind: sim.Payout, Reference: p.refundReference(b.Merchant), Amount: amount, Party: of.Party, CallbackURL: eventURL,
		Text: b.Customer, Refunds: of.Reference, Wire: string(sim.Encode(wired{Kind: refundKind, Name: b.Merchant}))}
	placed, ok := c.Order(o)
	switch {
	case !ok:
	case placed.Refused == sim.FloatLow:
		c.refuse(http.StatusBadRequest, "Your balance is not enough to fulfil this request", "", "")
	case placed.Refused != "":
		c.Refusal(c.Hit.Of(sim.RefuseOutright).Answer, o)
	default:
		p.refundsOf(of.Reference) // reads the refunds that the book already has
		p.mu.Lock()
		if list := p.refunds[sim.Plain(of.Reference)]; !slices.Contains(list, o.Reference) {
			p.refunds[sim.Plain(of.Reference)] = append(list, o.Reference)
		}
		p.mu.Unlock()
		c.give(http.StatusOK, "Refund has been queued for processing", queuedRefund(placed.Entry, of))
	}
}

// refundReference returns the reference of a refund in the book. Paystack has none, so it is the last word of the merchant's
// note, if that is free. A test can therefore find a refund by Makola's own reference.
func (p *paystack) refundReference(note string) string {
	words := strings.Fields(note)
	name := words[len(words)-1]
	if _, taken := p.s.Status(Name, name); taken || len(name) < 32 {
		return p.invented()
	}
	return name
}

// queuedRefund is the answer to a refund.
func queuedRefund(e, of sim.Entry) map[string]any {
	o := refundObject(e, of)
	for _, absent := range []string{"dispute", "settlement", "refunded_at"} {
		delete(o, absent)
	}
	paid := stamp(latest(of))
	o["status"], o["deducted_amount"], o["fully_deducted"] = "pending", 0, false
	o["channel"], o["expected_at"], o["updatedAt"] = nil, stamp(e.At), stamp(e.At)
	o["transaction"] = map[string]any{
		"id": transactionID(of), "domain": "test", "reference": of.Reference, "amount": int64(of.Amount), "paid_at": paid, "channel": mobileMoney, "currency": currency,
		"authorization": map[string]any{"exp_month": nil, "exp_year": nil, "account_name": nil}, "customer": map[string]any{"international_format_phone": nil},
		"plan": map[string]any{}, "subaccount": map[string]any{"currency": nil}, "split": map[string]any{}, "order_id": nil, "paidAt": paid,
		"pos_transaction_data": nil, "source": nil, "fees_breakdown": nil,
	}
	return o
}

// listRefunds answers with the refunds of a transaction, or all, newest first.
func (p *paystack) listRefunds(c *call) {
	q := c.Request.URL.Query()
	of := sim.Entry{}
	if name := q.Get("transaction"); name != "" {
		var known bool
		if of, known = p.charged(name); !known {
			of.Reference = name
		}
	}
	rows := []map[string]any{}
	for _, e := range slices.Backward(p.refundsOf(of.Reference)) {
		if c.Hides(e) {
			continue
		}
		c.Bends(&e)
		collected, _ := p.s.Status(Name, e.Refunds)
		rows = append(rows, refundObject(e, collected))
	}
	perPage, page := positive(q.Get("perPage"), 50), positive(q.Get("page"), 1)
	from := min((page-1)*perPage, len(rows))
	c.Answer(http.StatusOK, "application/json", sim.Encode(answer{Status: true, Message: "Refunds retrieved", Data: rows[from:min(from+perPage, len(rows))], Meta: map[string]any{
		"total": len(rows), "skipped": from, "perPage": perPage, "page": page, "pageCount": (len(rows) + perPage - 1) / perPage,
	}}))
}

// numbered returns the refund whose number is in the path.
func (p *paystack) numbered(c *call) (sim.Entry, bool) {
	all := p.refundsOf("")
	at := slices.IndexFunc(all, func(e sim.Entry) bool { return fmt.Sprint(refundID(e)) == c.Request.PathValue("id") })
	if at < 0 {
		c.refuse(http.StatusNotFound, "Refund not found", "", "")
		return sim.Entry{}, false
	}
	return all[at], true
}

// fetchRefund answers with one refund.
func (p *paystack) fetchRefund(c *call) {
	if e, ok := p.numbered(c); ok {
		of, _ := p.s.Status(Name, e.Refunds)
		o := refundObject(e, of)
		o["channel"], o["expected_at"], o["updatedAt"] = nil, stamp(e.At), stamp(latest(e))
		c.give(http.StatusOK, "Refund retrieved", o)
	}
}

// retryRefund pays a refund that needs the payer's bank account.
func (p *paystack) retryRefund(c *call) {
	e, ok := p.numbered(c)
	if !ok {
		return
	}
	if refundStatus(e) != "needs-attention" || !p.s.Resolve(Name, e.Reference, sim.Success, "") {
		c.Write(http.StatusUnprocessableEntity, "application/json", sim.Encode(answer{Message: `Invalid Refund state, refund status should be "needs-attention"`,
			Type: "validation_error", Code: "invalid_params", Meta: map[string]any{"nextStep": "Ensure that the value(s) you're passing are valid."}}))
		return
	}
	of, _ := p.s.Status(Name, e.Refunds)
	c.give(http.StatusOK, "Refund retried and has been queued for processing", refundObject(e, of))
}
