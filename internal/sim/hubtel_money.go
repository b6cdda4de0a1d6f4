package sim

import (
	"net/http"
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
		c.accepted(h, e)
	}
}

// accepted answers 0001, whatever happened since.
func (c *call) accepted(h *hubtel, e Entry) {
	e.Status = Pending
	code, message := hubtelTold(e)
	c.answer(http.StatusOK, "application/json", hubtelJSON(hubtelAnswer{message, code, h.data(e)}))
}

// collectStatus tells Paid, Unpaid or Refunded. Unpaid is said of what is open
// and of what failed; the code and message then carry what the callback said,
// which is our reading, not in Hubtel's documents (see HubtelPlainUnpaid).
func (h *hubtel) collectStatus(c *call) {
	e, ok := h.asked(c, Collection)
	if !ok {
		c.write(http.StatusNotFound, "application/json", hubtelJSON(hubtelSmallAnswer{"Transaction not found", "4004", nil}))
		return
	}
	code, message, status := "0000", "Successful", "Unpaid"
	switch {
	case e.Reversed:
		status = "Refunded"
	case e.Status == Success:
		status = "Paid"
	case e.Status == Failed && !h.s.opts.HubtelPlainUnpaid:
		code, message = hubtelTold(e)
	}
	var external any
	if id := e.hubtelExternal(); id != "" {
		external = id
	}
	c.answer(http.StatusOK, "application/json", hubtelJSON(hubtelSmallAnswer{message, code, map[string]any{
		"date": e.At.Format(time.RFC3339Nano), "status": status, "transactionId": e.hubtelID(), "externalTransactionId": external,
		"paymentMethod": "mobilemoney", "clientReference": e.Reference, "currencyCode": nil, "amount": cedis(e.Amount),
		"charges": cedis(e.Fee), "amountAfterCharges": cedis(e.Amount - e.Fee), "isFulfilled": nil,
	}}))
}

// asked finds the entry that a status query is about.
func (h *hubtel) asked(c *call, kinds ...Kind) (Entry, bool) {
	e, ok := h.s.status(Hubtel, c.r.URL.Query().Get("clientReference"))
	if !ok || c.hit.has(StatusNotFound) {
		return Entry{}, false
	}
	if c.hit.has(StatusWrongAmount) {
		e.Amount += e.Fee + 1 // more by the fee alone is right where the payer bears it
	}
	for _, k := range kinds {
		if e.Kind == k {
			return e, true
		}
	}
	return Entry{}, false
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
		c.accepted(h, e)
	}
}

// sendStatus tells success, pending or failed. Why it failed stands in the
// message, which is our reading, not in Hubtel's documents.
func (h *hubtel) sendStatus(c *call) {
	e, ok := h.asked(c, Payout)
	if !ok {
		c.hubtelSays(http.StatusNotFound, "failed", "Transaction not found", nil)
		return
	}
	message := ""
	if e.Status == Failed {
		_, message = hubtelTold(e)
	}
	c.answer(http.StatusOK, "application/json", hubtelJSON(hubtelAnswer{message, "success", map[string]any{
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
