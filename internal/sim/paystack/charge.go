package paystack

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/sim"
)

// promptTime is the time that a payer has.
const promptTime = 180 * time.Second

// chargeFee is Paystack's fee of a charge: 1.95 percent.
func chargeFee(amount money.Pesewas) money.Pesewas { return min(money.Percent(amount, 195), amount) }

// charge answers a charge of a wallet. On Telecel's network it waits for the payer's voucher.
func (p *paystack) charge(c *call) {
	var b struct {
		Email       string          `json:"email"`
		Amount      json.RawMessage `json:"amount"`
		Currency    string          `json:"currency"`
		Reference   string          `json:"reference"`
		MobileMoney struct {
			Phone    string `json:"phone"`
			Provider string `json:"provider"`
		} `json:"mobile_money"`
	}
	if !c.body(&b) {
		return
	}
	amount, fits := amountOf(b.Amount)
	wallet := strings.ToLower(b.MobileMoney.Provider)
	payer, err := msisdn.Parse(b.MobileMoney.Phone)
	b.Reference = cmp.Or(b.Reference, p.invented())
	switch {
	case !strings.Contains(b.Email, "@"):
		c.refuse(http.StatusBadRequest, "Email address is required for association with card", "", "")
	case !fits || b.Currency != "" && b.Currency != currency || err != nil || wallets[wallet] == "" || !chargeReferenceFits(b.Reference):
		c.refuse(http.StatusBadRequest, "Amount, currency, reference or mobile money is invalid", "validation_error", "invalid_params")
	default:
		_, eventURL := p.setting()
		o := sim.Order{Provider: Name, Kind: sim.Collection, Reference: b.Reference, Amount: amount, Party: payer.International(), CallbackURL: eventURL,
			Fee: chargeFee(amount), Wire: string(sim.Encode(wired{Kind: wallet, Name: b.Email}))}
		if wallet == "vod" {
			o.Text = "Dial *110# for a voucher. The voucher of the simulator is " + goodOTP + "."
			o.Fixed = &sim.Plan{Wait: true, Delay: promptTime, Then: sim.Failed, Reason: sim.Expired}
		}
		p.placeCharge(c, o)
	}
}

// placeCharge enters a charge and answers it.
func (p *paystack) placeCharge(c *call, o sim.Order) {
	placed, ok := c.Order(o)
	switch {
	case !ok:
	case placed.Existed:
		c.refuse(http.StatusBadRequest, "Duplicate Transaction Reference", "", "")
	case placed.Refused != "":
		c.Refusal(c.Hit.Of(sim.RefuseOutright).Answer, o)
	default:
		e, _ := p.s.Status(Name, o.Reference)
		c.give(http.StatusOK, "Charge attempted", p.chargeAnswer(e))
	}
}

// chargeAnswer is the answer to a new charge.
func (p *paystack) chargeAnswer(e sim.Entry) map[string]any {
	code, _ := sim.Magic(e.Party)
	switch {
	case e.Status == sim.Success:
		return chargedObject(e)
	case wireOf(e).Kind == "vod":
		return map[string]any{"reference": e.Reference, "status": "send_otp", "display_text": "Please dial *110# to generate a voucher code. Then input the voucher"}
	case code == "002":
		return map[string]any{"reference": e.Reference, "status": "pending"}
	}
	return map[string]any{"reference": e.Reference, "status": "pay_offline", "display_text": "Please complete authorization process on your mobile phone"}
}

// awaits reports whether a charge waits for its payer's voucher.
func (p *paystack) awaits(e sim.Entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return e.Kind == sim.Collection && e.Status == sim.Pending && wireOf(e).Kind == "vod" && !p.vouched[e.Reference]
}

// submitVoucher receives a payer's voucher. After it, the charge continues like one of another network, or it
// fails.
func (p *paystack) submitVoucher(c *call) {
	var b struct {
		OTP       string `json:"otp"`
		Reference string `json:"reference"`
	}
	if !c.body(&b) {
		return
	}
	e, known := p.s.Status(Name, b.Reference)
	if !known || !p.awaits(e) {
		c.refuse(http.StatusBadRequest, "Transaction reference is invalid", "", "")
		return
	}
	if b.OTP != goodOTP {
		p.s.Resolve(Name, e.Reference, sim.Failed, sim.WrongPIN)
		c.give(http.StatusOK, "Charge attempted", map[string]any{"reference": e.Reference, "status": "failed", "message": "Error occured while enrolling you for OTP!"})
		return
	}
	p.mu.Lock()
	if len(p.vouched) >= maxRecipients {
		clear(p.vouched)
	}
	p.vouched[e.Reference] = true
	p.mu.Unlock()
	if plan := sim.PlanFor(sim.Collection, e.Party); !plan.Wait {
		p.s.At(p.s.Clock().Now().Add(plan.Delay), func() { p.s.Resolve(Name, e.Reference, plan.Then, plan.Reason) })
	}
	c.give(http.StatusOK, "Charge attempted", map[string]any{"reference": e.Reference, "status": "pending"})
}

// transaction returns the charge whose reference is in the path.
func (p *paystack) transaction(c *call) (sim.Entry, bool) {
	e, ok := p.s.Status(Name, c.Request.PathValue("reference"))
	if !ok || e.Kind != sim.Collection || c.Hides(e) {
		return sim.Entry{}, false
	}
	c.Bends(&e)
	return e, true
}

// check answers with a charge by its reference.
func (p *paystack) check(c *call) {
	e, ok := p.transaction(c)
	if !ok {
		c.Answer(http.StatusBadRequest, "application/json", sim.Encode(refused("Transaction reference is invalid", "", "")))
		return
	}
	state := map[string]any{"reference": e.Reference, "status": p.chargeStatus(e)}
	switch {
	case e.Status == sim.Success:
		c.give(http.StatusOK, "Charge attempted", chargedObject(e))
	case p.awaits(e):
		c.give(http.StatusOK, "Charge attempted", p.chargeAnswer(e))
	case e.Status == sim.Failed:
		state["message"] = failure(e)
		fallthrough
	default:
		c.give(http.StatusOK, "Reference check successful", state)
	}
}

// verifyTransaction answers with a transaction by its reference.
func (p *paystack) verifyTransaction(c *call) {
	e, ok := p.transaction(c)
	if !ok {
		c.Answer(http.StatusBadRequest, "application/json", sim.Encode(refused("Transaction reference not found", "", "")))
		return
	}
	c.give(http.StatusOK, "Verification successful", transactionObject(e, p.chargeStatus(e)))
}

// chargeStatus returns Paystack's status of a charge. A charge that was refunded in full is "reversed".
func (p *paystack) chargeStatus(e sim.Entry) string {
	switch {
	case e.Reversed, e.Status == sim.Success && p.givenBack(e) >= e.Amount:
		return "reversed"
	case p.awaits(e):
		return "ongoing"
	case e.Status == sim.Failed && e.Reason == sim.Expired:
		return "abandoned"
	default:
		return string(e.Status)
	}
}

// chargeReferenceFits reports whether a text may be the reference of a charge.
func chargeReferenceFits(s string) bool {
	return s != "" && len(s) <= 100 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.=") == ""
}
