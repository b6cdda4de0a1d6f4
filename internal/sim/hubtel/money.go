package hubtel

import (
	"net/http"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/sim"
)

// fee returns Hubtel's charge for a collection or payout: half a percent.
func fee(amount money.Pesewas) money.Pesewas { return money.Percent(amount, 50) }

// collect handles a request for a payer's money.
func (h *hubtel) collect(c *call) {
	b, amount, ok := c.body()
	if !ok {
		return
	}
	payer, err := msisdn.Parse(b.CustomerMsisdn)
	if _, known := channels[b.Channel]; err != nil || !known || b.Description == "" {
		c.invalid("CustomerMsisdn, Channel and Description are required")
		return
	}
	e, ok := h.place(c, sim.Order{
		Provider: Name, Kind: sim.Collection, Reference: b.ClientReference, Amount: amount, Party: payer.International(),
		CallbackURL: b.CallbackURL, Text: b.Description, Fee: min(fee(amount), amount), Wire: b.Channel,
	})
	if ok {
		c.accepted(e)
	}
}

// transactionStatus reports Paid, Unpaid or Refunded for a collection or sale, always with the code 0000. Open and
// failed ones are Unpaid. A sale that the network accepted and did not deliver is Refunded. Only sales have
// isFulfilled.
func (h *hubtel) transactionStatus(c *call) {
	e, ok := h.asked(c, sim.Collection, sim.TopUp, sim.Bundle)
	if !ok {
		h.notKnown(c)
		return
	}
	sale := e.Kind != sim.Collection
	status := "Unpaid"
	switch {
	case e.Reversed, sale && e.Status == sim.Failed && (e.Reason == sim.OverLimit || e.Reason == sim.Internal):
		status = "Refunded"
	case e.Status == sim.Success:
		status = "Paid"
	}
	data := map[string]any{
		"date": e.At.Format(time.RFC3339Nano), "status": status, "transactionId": orderID(e), "externalTransactionId": nil,
		"paymentMethod": "mobilemoney", "clientReference": e.Reference, "currencyCode": nil, "amount": cedis(e.Amount),
		"charges": cedis(e.Fee), "amountAfterCharges": cedis(e.Amount - e.Fee), "isFulfilled": nil,
	}
	if id := networkID(e); id != "" {
		data["externalTransactionId"] = id
	}
	if sale {
		data["paymentMethod"], data["amountAfterCharges"] = "cash", cedis(e.Amount)
		data["isFulfilled"] = e.Status == sim.Success && !c.Hit.Has(sim.StatusUnfulfilled)
	}
	c.Answer(http.StatusOK, "application/json", sim.Encode(smallAnswer{"Successful", "0000", data}))
}

// sendWallet handles a payout to a wallet.
func (h *hubtel) sendWallet(c *call) {
	b, amount, ok := c.body()
	if !ok {
		return
	}
	payee, err := msisdn.Parse(b.RecipientMsisdn)
	if _, known := channels[b.Channel]; err != nil || !known || b.RecipientName == "" || b.Description == "" {
		c.invalid("RecipientMsisdn, RecipientName, Channel and Description are required")
		return
	}
	h.send(c, b, amount, payee.International(), b.Channel)
}

// sendBank handles a payout to a bank account.
func (h *hubtel) sendBank(c *call) {
	b, amount, ok := c.body()
	if !ok {
		return
	}
	if !banks[c.Request.PathValue("bank")] || !accountFits(b.BankAccountNumber) || b.Description == "" {
		c.invalid("BankCode, BankAccountNumber and Description are required")
		return
	}
	h.send(c, b, amount, b.BankAccountNumber, "gip-gh")
}

func (h *hubtel) send(c *call, b request, amount money.Pesewas, party, channel string) {
	e, ok := h.place(c, sim.Order{
		Provider: Name, Kind: sim.Payout, Reference: b.ClientReference, Amount: amount, Party: party,
		CallbackURL: b.CallbackURL, Text: b.Description, Fee: fee(amount), Wire: channel,
	})
	if ok {
		c.accepted(e)
	}
}

// sendStatus reports success, pending or failed, without the cause of a failure.
func (h *hubtel) sendStatus(c *call) {
	e, ok := h.asked(c, sim.Payout)
	if !ok {
		h.notKnown(c)
		return
	}
	c.Answer(http.StatusOK, "application/json", sim.Encode(plainAnswer{"success", map[string]any{
		"TransactionId": orderID(e), "networkTransactionId": networkID(e), "Amount": cedis(e.Amount), "Fees": cedis(e.Fee),
		"ClientReference": e.Reference, "Channel": e.Wire, "CustomerNumber": e.Party, "transactionStatus": string(e.Status),
		"CreatedAt": e.At.Format(time.DateTime),
	}}))
}

// balance returns the balance of an account. The POS sales account receives collections, and the prepaid account pays
// everything else.
func (h *hubtel) balance(c *call) {
	in, out := h.s.Accounts(Name)
	if c.Request.PathValue("account") == posSales {
		out = in
	}
	c.Answer(http.StatusOK, "application/json", sim.Encode(smallAnswer{"Success", "0000", map[string]any{"amount": cedis(out)}}))
}
