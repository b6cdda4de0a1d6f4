package sim

import (
	"net/http"
	"slices"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
)

// hubtelChannels are Hubtel's names of the networks.
var hubtelChannels = map[string]msisdn.Network{"mtn-gh": msisdn.MTN, "vodafone-gh": msisdn.Telecel, "tigo-gh": msisdn.AirtelTigo}

// hubtelBanks are the GIP codes of the banks that can be paid.
var hubtelBanks = map[string]bool{
	"300302": true, "300303": true, "300304": true, "300305": true, "300306": true, "300307": true, "300309": true, "300310": true,
	"300311": true, "300312": true, "300313": true, "300316": true, "300317": true, "300318": true, "300319": true, "300320": true,
	"300322": true, "300323": true, "300324": true, "300325": true, "300329": true, "300331": true, "300334": true, "300362": true,
}

// hubtelFee is what Hubtel charges for a collection or payout: half a percent.
func hubtelFee(amount money.Pesewas) money.Pesewas { return money.Percent(amount, 50) }

// collect answers a request for a payer's money.
func (h *hubtel) collect(c *call) {
	b, amount, ok := c.hubtelBody()
	if !ok {
		return
	}
	payer, err := msisdn.Parse(b.CustomerMsisdn)
	if _, known := hubtelChannels[b.Channel]; err != nil || !known || b.Description == "" {
		c.hubtelInvalid("CustomerMsisdn, Channel and Description are required")
		return
	}
	e, ok := h.place(c, Order{
		Provider: Hubtel, Kind: Collection, Reference: b.ClientReference, Amount: amount, Party: payer.International(),
		CallbackURL: b.CallbackURL, Text: b.Description, Fee: min(hubtelFee(amount), amount), Wire: b.Channel,
	})
	if ok {
		c.accepted(e)
	}
}

// accepted answers 0001, whatever happened since.
func (c *call) accepted(e Entry) {
	e.Status = Pending
	code, message := hubtelTold(e)
	c.answer(http.StatusOK, "application/json", hubtelJSON(hubtelEnvelope(c.op, message, code, hubtelData(e))))
}

// transactionStatus tells Paid, Unpaid or Refunded of a collection or a sale,
// under the code 0000 always. Unpaid is said of what is open and of what failed.
// A sale that the network took and did not deliver was given back: Refunded.
// isFulfilled is said of sales alone.
func (h *hubtel) transactionStatus(c *call) {
	e, ok := h.asked(c, Collection, TopUp, Bundle)
	if !ok {
		h.notKnown(c)
		return
	}
	sale := e.Kind != Collection
	status := "Unpaid"
	switch {
	case e.Reversed, sale && e.Status == Failed && (e.Reason == OverLimit || e.Reason == Internal):
		status = "Refunded"
	case e.Status == Success:
		status = "Paid"
	}
	data := map[string]any{
		"date": e.At.Format(time.RFC3339Nano), "status": status, "transactionId": e.hubtelID(), "externalTransactionId": nil,
		"paymentMethod": "mobilemoney", "clientReference": e.Reference, "currencyCode": nil, "amount": cedis(e.Amount),
		"charges": cedis(e.Fee), "amountAfterCharges": cedis(e.Amount - e.Fee), "isFulfilled": nil,
	}
	if id := e.hubtelExternal(); id != "" {
		data["externalTransactionId"] = id
	}
	if sale {
		data["paymentMethod"], data["amountAfterCharges"] = "cash", cedis(e.Amount)
		data["isFulfilled"] = e.Status == Success && !c.hit.has(StatusUnfulfilled)
	}
	c.answer(http.StatusOK, "application/json", hubtelJSON(hubtelSmallAnswer{"Successful", "0000", data}))
}

// notKnown answers a question about a reference that Hubtel does not have.
func (h *hubtel) notKnown(c *call) {
	reply := hubtelNotKnown[0]
	c.answer(reply.Status, "application/json", hubtelJSON(hubtelEnvelope(c.op, "Not found", reply.Code, nil)))
}

// asked finds the entry that a status query is about.
func (h *hubtel) asked(c *call, kinds ...Kind) (Entry, bool) {
	e, ok := h.s.status(Hubtel, c.r.URL.Query().Get("clientReference"))
	if !ok || c.hides(e) || !slices.Contains(kinds, e.Kind) {
		return Entry{}, false
	}
	c.bends(&e)
	return e, true
}

// sendWallet answers a payout to a wallet.
func (h *hubtel) sendWallet(c *call) {
	b, amount, ok := c.hubtelBody()
	if !ok {
		return
	}
	payee, err := msisdn.Parse(b.RecipientMsisdn)
	if _, known := hubtelChannels[b.Channel]; err != nil || !known || b.RecipientName == "" || b.Description == "" {
		c.hubtelInvalid("RecipientMsisdn, RecipientName, Channel and Description are required")
		return
	}
	h.send(c, b, amount, payee.International(), b.Channel)
}

// sendBank answers a payout to a bank account.
func (h *hubtel) sendBank(c *call) {
	b, amount, ok := c.hubtelBody()
	if !ok {
		return
	}
	if !hubtelBanks[c.r.PathValue("bank")] || !hubtelAccount(b.BankAccountNumber) || b.Description == "" {
		c.hubtelInvalid("BankCode, BankAccountNumber and Description are required")
		return
	}
	h.send(c, b, amount, b.BankAccountNumber, "gip-gh")
}

func hubtelAccount(s string) bool { return len(s) >= 7 && len(s) <= 16 && alphanumeric(s) }

func (h *hubtel) send(c *call, b hubtelBody, amount money.Pesewas, party, channel string) {
	e, ok := h.place(c, Order{
		Provider: Hubtel, Kind: Payout, Reference: b.ClientReference, Amount: amount, Party: party,
		CallbackURL: b.CallbackURL, Text: b.Description, Fee: hubtelFee(amount), Wire: channel,
	})
	if ok {
		c.accepted(e)
	}
}

// sendStatus tells success, pending or failed, and not why it failed.
func (h *hubtel) sendStatus(c *call) {
	e, ok := h.asked(c, Payout)
	if !ok {
		h.notKnown(c)
		return
	}
	c.answer(http.StatusOK, "application/json", hubtelJSON(hubtelPlainAnswer{"success", map[string]any{
		"TransactionId": e.hubtelID(), "networkTransactionId": e.hubtelExternal(), "Amount": cedis(e.Amount), "Fees": cedis(e.Fee),
		"ClientReference": e.Reference, "Channel": e.Wire, "CustomerNumber": e.Party, "transactionStatus": string(e.Status),
		"CreatedAt": e.At.Format(time.DateTime),
	}}))
}

// balance tells what an account holds: collections come into the POS sales
// account, everything else goes out of the prepaid one.
func (h *hubtel) balance(c *call) {
	h.s.settleDue()
	in, out := h.s.book.accounts(Hubtel)
	if c.r.PathValue("account") == hubtelPOS {
		out = in
	}
	c.answer(http.StatusOK, "application/json", hubtelJSON(hubtelSmallAnswer{"Success", "0000", map[string]any{"amount": cedis(out)}}))
}
