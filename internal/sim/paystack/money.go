package paystack

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/sim"
)

// fee is Paystack's charge of a successful transfer: GHS 1 to a wallet, GHS 8 to a bank.
func fee(kind string) money.Pesewas {
	if kind == mobileMoney {
		return money.Cedi
	}
	return 8 * money.Cedi
}

// createRecipient answers with the recipient of an account, which is the same each time.
func (p *paystack) createRecipient(c *call) {
	var b struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Account  string `json:"account_number"`
		BankCode string `json:"bank_code"`
		Currency string `json:"currency"`
	}
	if !c.body(&b) {
		return
	}
	at, known := bankOf(strings.ToUpper(b.BankCode))
	fits := at.kind == ghipss && accountFits(b.Account) || at.kind == mobileMoney && digits(b.Account, 10, 10)
	if !known || at.kind != b.Type || !fits || strings.TrimSpace(b.Name) == "" || b.Currency != currency {
		c.refuse(http.StatusBadRequest, "Account details are invalid", "validation_error", "invalid_params")
		return
	}
	h := fnv.New64a()
	fmt.Fprint(h, at.code, "/", b.Account)
	r := recipient{code: fmt.Sprintf("RCP_%015x", h.Sum64()>>4), kind: b.Type, name: b.Name, account: b.Account, bank: at.code}
	p.keep(r)
	c.give(http.StatusCreated, "Transfer recipient created successfully", recipientObject(r, p.s.Clock().Now()))
}

// transferBody is the body of a transfer, and of each transfer in a bulk request.
type transferBody struct {
	Source    string          `json:"source"`
	Amount    json.RawMessage `json:"amount"`
	Recipient string          `json:"recipient"`
	Reference string          `json:"reference"`
	Reason    string          `json:"reason"`
	Currency  string          `json:"currency"`
}

// transfer answers a transfer.
func (p *paystack) transfer(c *call) {
	var b transferBody
	if !c.body(&b) {
		return
	}
	to, known := p.recipient(b.Recipient)
	amount, fits := amountOf(b.Amount)
	if b.Reference == "" { // optional, as in the clients of Paystack
		b.Reference = p.invented()
	}
	switch {
	case !known:
		c.refuse(http.StatusBadRequest, "Recipient specified is invalid", "validation_error", "invalid_transfer_recipient")
	case !fits || b.Source != "balance" || b.Currency != "" && b.Currency != currency:
		c.refuse(http.StatusBadRequest, "Amount, source or currency is invalid", "validation_error", "invalid_params")
	case !referenceFits(b.Reference):
		c.refuse(http.StatusBadRequest, "Reference is invalid", "validation_error", "invalid_params")
	default:
		p.place(c, p.order(b, to, amount))
	}
}

// order returns the order of a transfer. While OTPs are on, the transfer waits until somebody enters one.
func (p *paystack) order(b transferBody, to recipient, amount money.Pesewas) sim.Order {
	otp, eventURL := p.setting()
	o := sim.Order{Provider: Name, Kind: sim.Payout, Reference: b.Reference, Amount: amount, Party: to.account, CallbackURL: eventURL,
		Text: b.Reason, Fee: fee(to.kind), Wire: string(sim.Encode(wired{to.kind, to.bank, to.name, to.code, otp}))}
	if to.kind == mobileMoney {
		o.Party = sim.Party(to.account)
	}
	if otp {
		o.Fixed = &sim.Plan{Wait: true}
	}
	return o
}

// place enters a transfer and answers it.
func (p *paystack) place(c *call, o sim.Order) {
	placed, ok := c.Order(o)
	switch {
	case !ok:
	case placed.Existed:
		c.refuse(http.StatusBadRequest, "Please provide a unique reference. Reference already exists on a transfer", "validation_error", "duplicate_transfer_reference")
	case placed.Refused == sim.FloatLow:
		c.refuse(http.StatusBadRequest, "Your balance is not enough to fulfil this request", "", "")
	case placed.Refused != "":
		c.Refusal(c.Hit.Of(sim.RefuseOutright).Answer, o)
	default:
		e := placed.Entry
		e.Status = sim.Pending // whatever happened since
		if wireOf(e).OTP {
			c.give(http.StatusOK, "Transfer requires OTP to continue", otpObject(e))
			return
		}
		c.give(http.StatusOK, "Transfer has been queued", queuedObject(e))
	}
}

// bulk answers several transfers. One duplicate refuses all of them.
func (p *paystack) bulk(c *call) {
	var b struct {
		Source    string         `json:"source"`
		Currency  string         `json:"currency"`
		Transfers []transferBody `json:"transfers"`
	}
	if !c.body(&b) {
		return
	}
	orders, known := []sim.Order{}, []string{}
	for _, t := range b.Transfers {
		to, there := p.recipient(t.Recipient)
		amount, fits := amountOf(t.Amount)
		if !there || !fits || !referenceFits(t.Reference) {
			c.refuse(http.StatusBadRequest, "Recipient specified is invalid", "validation_error", "invalid_transfer_recipient")
			return
		}
		if _, exists := p.s.Status(Name, t.Reference); exists {
			known = append(known, t.Reference)
		}
		orders = append(orders, p.order(t, to, amount))
	}
	if otp, _ := p.setting(); otp || len(orders) == 0 {
		c.refuse(http.StatusBadRequest, "OTP must be disabled to use this feature", "", "")
		return
	}
	if len(known) > 0 {
		c.refuse(http.StatusNotFound, "Duplicate reference(s) found: "+strings.Join(known, ","), "api_error", "unknown")
		return
	}
	rows := []map[string]any{}
	for _, o := range orders {
		placed, ok := c.Order(o)
		if !ok {
			return
		}
		if placed.Refused == "" {
			w := wireOf(placed.Entry)
			rows = append(rows, map[string]any{"reference": o.Reference, "recipient": w.Code, "amount": int64(o.Amount),
				"transfer_code": transferCode(placed.Entry), "currency": currency, "status": "pending"})
		}
	}
	c.give(http.StatusOK, fmt.Sprintf("%d transfers queued.", len(rows)), rows)
}

// finalize pays a transfer that waits for an OTP.
func (p *paystack) finalize(c *call) {
	var b struct {
		Code string `json:"transfer_code"`
		OTP  string `json:"otp"`
	}
	if !c.body(&b) {
		return
	}
	number, ok := numberOf(b.Code)
	all := p.s.All()
	at := slices.IndexFunc(all, func(e sim.Entry) bool { return e.Provider == Name && e.Number == number })
	if !ok || at < 0 || b.OTP != goodOTP || !p.s.Resolve(Name, all[at].Reference, sim.Success, "") {
		c.refuse(http.StatusBadRequest, "Transfer code is invalid", "", "")
		return
	}
	paid, _ := p.s.Status(Name, all[at].Reference)
	c.give(http.StatusOK, "Transfer has been queued", queuedObject(paid))
}

// verify answers with a transfer by its reference.
func (p *paystack) verify(c *call) {
	e, ok := p.s.Status(Name, c.Request.PathValue("reference"))
	if !ok || e.Kind != sim.Payout || isRefund(e) || c.Hides(e) {
		c.Answer(http.StatusNotFound, "application/json", sim.Encode(refused("Transfer not found", "", "")))
		return
	}
	c.Bends(&e)
	c.give(http.StatusOK, "Transfer retrieved", verifiedObject(e))
}

// fetch answers with a transfer by its number or code.
func (p *paystack) fetch(c *call) {
	name := c.Request.PathValue("id")
	all := p.s.All()
	at := slices.IndexFunc(all, func(e sim.Entry) bool {
		return e.Provider == Name && e.Kind == sim.Payout && !isRefund(e) && (fmt.Sprint(transferID(e)) == name || transferCode(e) == name)
	})
	if at < 0 {
		c.refuse(http.StatusNotFound, "Transfer not found", "", "")
		return
	}
	c.give(http.StatusOK, "Transfer retrieved", verifiedObject(all[at]))
}

// balance answers with the one balance of the business.
func (p *paystack) balance(c *call) {
	c.give(http.StatusOK, "Balances retrieved", []map[string]any{{"currency": currency, "balance": int64(p.s.Float(Name))}})
}

// movements returns the rows of the balance ledger, newest first. A reversed movement has two rows.
func (p *paystack) movements() []map[string]any {
	rows, balance := []map[string]any{}, p.s.Opening(Name)
	add := func(e sim.Entry, difference money.Pesewas) {
		balance += difference
		at, model, row := stamp(latest(e)), "Transfer", transferID(e)
		switch {
		case e.Kind == sim.Collection:
			model, row = "Transaction", transactionID(e)
		case isRefund(e):
			model, row = "Refund", refundID(e)
		}
		rows = append(rows, map[string]any{
			"integration": integration, "domain": "test", "balance": int64(balance), "currency": currency, "difference": int64(difference),
			"reason": e.Text, "model_responsible": model, "model_row": row, "id": 149_000_000 + int64(len(rows)), "createdAt": at, "updatedAt": at,
		})
	}
	settled := slices.DeleteFunc(p.s.All(), func(e sim.Entry) bool { return e.Provider != Name || e.Status != sim.Success && !e.Reversed })
	slices.SortStableFunc(settled, func(a, b sim.Entry) int { return a.Settled.Compare(b.Settled) })
	for _, e := range settled {
		moved := -e.Amount - e.Fee
		if e.Kind == sim.Collection {
			moved = e.Amount - e.Fee
		}
		add(e, moved)
		if e.Reversed {
			add(e, -moved)
		}
	}
	slices.Reverse(rows)
	return rows
}

// accountFits reports whether a text may be the number of a bank account.
func accountFits(s string) bool {
	return len(s) >= 7 && len(s) <= 16 && strings.Trim(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
}
