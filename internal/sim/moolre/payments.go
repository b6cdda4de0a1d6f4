package moolre

import (
	"net/http"
	"slices"
	"strings"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/sim"
)

// amount reads the amount of a request, which is a text or a number.
func (b body) amount() (money.Pesewas, bool) {
	amount, err := money.Parse(string(b.Amount))
	return amount, err == nil && amount > 0
}

// collect answers a collection. If the account requires it, a new payer first confirms the number.
func (m *moolre) collect(c *call) {
	b := c.body
	amount, fits := b.amount()
	payer, err := msisdn.Parse(string(b.Payer))
	switch {
	case b.Type != "1" || payers[string(b.Channel)] == "" || b.Currency != currency || !fits || err != nil:
		c.refuse(http.StatusBadRequest, codeInvalid, []string{"Type, channel, currency, amount or payer is invalid"}, "all")
	case b.Reference == "" || m.known(string(b.Reference)):
		c.used()
	case m.setting().Confirm && b.Session == "" && !m.confirms(c, payer.International()):
	default:
		o := sim.Order{Provider: Name, Kind: sim.Collection, Reference: string(b.Reference), Amount: amount, Party: payer.International(), CallbackURL: m.setting().CallbackURL}
		m.place(c, o, func(e sim.Entry) { c.give(codePrompted, nil, promptID(e)) })
	}
}

// known reports whether Moolre has a reference.
func (m *moolre) known(reference string) bool {
	_, known := m.s.Status(Name, reference)
	return known
}

// confirms reports whether a payer has confirmed the number before. If not, it answers the request: it sends a code, or checks the
// code of the request.
func (m *moolre) confirms(c *call, payer string) bool {
	m.mu.Lock()
	done := m.confirmed[payer]
	if !done && c.body.OTP == goodCode {
		if len(m.confirmed) >= maxConfirmed {
			clear(m.confirmed)
		}
		m.confirmed[payer] = true
	}
	m.mu.Unlock()
	switch {
	case done:
		return true
	case c.body.OTP == goodCode:
		c.give(codeConfirmed, "Phone number verified. Send the request again.", nil)
	case c.body.OTP != "":
		c.refuse(http.StatusBadRequest, codeWrong, "The code is invalid", "otpcode")
	default:
		m.s.Deliver(payer, "Moolre", "Your code is "+goodCode+".")
		c.give(codeConfirm, "Please complete the verification process sent to you via SMS and try again.", "all")
	}
	return false
}

// transfer answers a payout to a wallet or a bank.
func (m *moolre) transfer(c *call) {
	b := c.body
	amount, fits := b.amount()
	party, valid := strings.TrimSpace(string(b.Receiver)), knownBank(string(b.Bank)) && len(b.Receiver) >= 7
	if b.Channel != bankChannel {
		number, err := msisdn.Parse(string(b.Receiver))
		party, valid = number.International(), err == nil && channels[string(b.Channel)] != ""
	}
	switch {
	case b.Type != "1" || b.Currency != currency || !fits || !valid:
		c.refuse(http.StatusBadRequest, codeInvalid, []string{"Type, channel, currency, amount or receiver is invalid"}, "all")
	case b.Reference == "":
		c.used()
	default:
		o := sim.Order{Provider: Name, Kind: sim.Payout, Reference: string(b.Reference), Amount: amount, Party: party, Text: string(b.Text)}
		m.place(c, o, func(e sim.Entry) {
			c.Answer(http.StatusOK, jsonType, sim.Encode(answer{"1", codePaidOut, []string{"Pay out Successful", "Click close to view transactions."}, transferObject(e), nil}))
		})
	}
}

// place enters an order in the book. taken answers the request if the order was entered.
func (m *moolre) place(c *call, o sim.Order, taken func(sim.Entry)) {
	placed, ok := c.Order(o)
	switch {
	case !ok:
	case placed.Existed:
		c.used()
	case placed.Refused == sim.FloatLow:
		c.refuse(http.StatusOK, codeNoBalance, []string{"Insufficient balance"}, "all")
	case placed.Refused != "":
		c.Refusal(c.Hit.Of(sim.RefuseOutright).Answer, o)
	default:
		taken(placed.Entry)
	}
}

// named finds the transaction that a status query names, by our reference or Moolre's id.
func (m *moolre) named(b body) (sim.Entry, bool) {
	if b.IDType != "2" && b.IDType != "transactionid" {
		return m.s.Status(Name, string(b.ID))
	}
	all := m.s.All()
	at := slices.IndexFunc(all, func(e sim.Entry) bool { return e.Provider == Name && transactionID(e) == string(b.ID) })
	if at < 0 {
		return sim.Entry{}, false
	}
	return all[at], true
}

// status answers with a transaction. A collection that its payer has not approved yet is not found.
func (m *moolre) status(c *call) {
	e, ok := m.named(c.body)
	if !ok || c.Hides(e) || e.Kind == sim.Collection && e.Status == sim.Pending {
		c.Answer(http.StatusOK, jsonType, sim.Encode(notFound))
		return
	}
	c.Bends(&e)
	code, message := codePending, "Transaction Pending"
	switch e.Status {
	case sim.Success:
		code, message = codeFound, "Transaction Successful"
	case sim.Failed:
		code, message = codeFailed, "Transaction Failed"
	}
	c.give(code, message, transactionObject(e))
}

// name answers with the holder of a wallet or a bank account.
func (m *moolre) name(c *call) {
	b := c.body
	party, valid := string(b.Receiver), b.Channel == bankChannel && knownBank(string(b.Bank))
	if b.Channel != bankChannel {
		number, err := msisdn.Parse(string(b.Receiver))
		party, valid = number.International(), err == nil && channels[string(b.Channel)] != ""
	}
	given, family, has := sim.Name(party)
	if !valid || !has {
		c.refuse(http.StatusBadRequest, codeNoName, "Phone No. not found", "Phone No. not found")
		return
	}
	c.give(codeName, "Successful", given+" "+family)
}
