package mtn

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/sim"
)

type request struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	External string `json:"externalId"`
	Payer    *party `json:"payer,omitempty"`
	Payee    *party `json:"payee,omitempty"`
	Message  string `json:"payerMessage"`
	Note     string `json:"payeeNote"`
	Refund   string `json:"referenceIdToRefund,omitempty"`
}

// echoed is the part of a request that status responses repeat. The amount is the first member, as it was received
// (see amountOf).
type echoed struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	External string `json:"externalId"`
	Payer    *party `json:"payer,omitempty"`
	Payee    *party `json:"payee,omitempty"`
	Message  string `json:"payerMessage"`
	Note     string `json:"payeeNote"`
}

// move handles the creation of a request to pay or withdraw, a transfer, a cash transfer, a deposit or a refund.
func (m *mtn) move(c *call, resource string) {
	if o, ok := m.order(c, resource); ok {
		m.place(c, o)
	}
}

// place enters an order in the book and answers the request.
func (m *mtn) place(c *call, o sim.Order) {
	placed, ok := c.Order(o)
	switch {
	case !ok:
	case placed.Existed:
		c.fail(http.StatusConflict, "RESOURCE_ALREADY_EXIST")
	case c.Hit.Of(sim.RefuseOutright).Answer != "" && placed.Refused != "":
		c.Refusal(c.Hit.Of(sim.RefuseOutright).Answer, o)
	case placed.Refused == sim.FloatLow:
		c.fail(http.StatusInternalServerError, "NOT_ENOUGH_FUNDS")
	case placed.Refused != "":
		c.fail(http.StatusBadRequest, "PAYEE_NOT_ALLOWED_TO_RECEIVE")
	default:
		c.Answer(http.StatusAccepted, "application/json", nil)
	}
}

// started reads the data that all creations have: the reference, the body and the callback address. ok is false if
// the request was answered.
func (m *mtn) started(c *call, resource string, body any) (o sim.Order, ok bool) {
	o = sim.Order{Provider: c.account.provider, Kind: c.product.kind, Reference: c.Request.Header.Get("X-Reference-Id"), Resource: c.product.name + "/" + resource}
	raw, err := io.ReadAll(io.LimitReader(c.Request.Body, maxBody))
	if err != nil || !uuid4(o.Reference) || json.Unmarshal(raw, body) != nil {
		c.Write(http.StatusBadRequest, "application/json", nil)
		return o, false
	}
	if callback, has := c.Request.Header["X-Callback-Url"]; has {
		u, err := url.Parse(callback[0])
		if err != nil || u.Host == "" || !mayCall(c.user, u) {
			c.fail(http.StatusBadRequest, "INVALID_CALLBACK_URL_HOST")
			return o, false
		}
		o.CallbackURL = callback[0]
	}
	return o, true
}

// order reads the order of a request. ok is false if the request was answered.
func (m *mtn) order(c *call, resource string) (o sim.Order, ok bool) {
	var b request
	if o, ok = m.started(c, resource, &b); !ok {
		return o, false
	}
	if resource == "refund" {
		b.Payee, o.Fixed = m.refund(c, b.Refund)
		if o.Fixed == nil {
			o.Refunds = b.Refund
		}
	}
	other := b.Payer
	if c.product.party == "payee" {
		other = b.Payee
	}
	var err error
	o.Amount, err = money.Parse(b.Amount)
	if err != nil || o.Amount <= 0 || !other.isNumber() ||
		!noteFits(b.Message) || !noteFits(b.Note) {
		c.Write(http.StatusBadRequest, "application/json", nil)
		return o, false
	}
	if b.Currency != c.account.currency {
		c.fail(http.StatusInternalServerError, "INVALID_CURRENCY")
		return o, false
	}
	o.Party, o.Text = other.ID, b.Message
	if o.Text == "" && o.Kind == sim.Collection {
		o.Text = "Pay " + b.Currency + " " + b.Amount + "? Enter your PIN to approve."
	}
	if o.Fixed == nil {
		o.Fixed = fixture(resource, other.ID)
	}
	echo, _ := json.Marshal(echoed{b.Amount, b.Currency, b.External, b.Payer, b.Payee, b.Message, b.Note})
	o.Wire = string(echo[1 : len(echo)-1])
	return o, true
}

// refund returns the payee of a refund, and its plan if that differs from the payee's own. The payee is nil if
// reference is neither a UUID nor one of MTN's test references. A refund of anything but a paid collection is
// accepted and fails later. This is inferred from the test suites of MTN's SDKs; the reason is our invention.
func (m *mtn) refund(c *call, reference string) (payee *party, plan *sim.Plan) {
	if plan = refundFixture(reference); plan != nil {
		return &party{"MSISDN", somebody}, plan
	}
	if !uuid4(reference) {
		return nil, nil
	}
	original, known := m.s.Status(c.account.provider, reference)
	if !known || original.Kind != sim.Collection || original.Status != sim.Success {
		return &party{"MSISDN", somebody}, &sim.Plan{Delay: sim.SettleSoon, Then: sim.Failed, Reason: "RESOURCE_NOT_FOUND"}
	}
	return &party{"MSISDN", original.Party}, nil
}

// anyResource makes find accept a movement of any product.
const anyResource = ""

// find returns the movement of a resource in a path. If there is none, it answers the request.
func (m *mtn) find(c *call, resource, reference string) (sim.Entry, bool) {
	if !uuid4(reference) {
		c.Write(http.StatusBadRequest, "application/json", nil)
		return sim.Entry{}, false
	}
	e, ok := m.s.Status(c.account.provider, reference)
	if !ok || resource != anyResource && (e.Kind != c.product.kind || e.Resource != "" && e.Resource != c.product.name+"/"+resource) || c.Hides(e) {
		c.fail(http.StatusNotFound, "RESOURCE_NOT_FOUND")
		return sim.Entry{}, false
	}
	return e, true
}

// query answers a status query.
func (m *mtn) query(c *call, resource, reference string) {
	e, ok := m.find(c, resource, reference)
	if !ok {
		return
	}
	if c.Hit.Has(sim.StatusOther) {
		// The echo is repeated as it was received. It contains the reference as externalId.
		e.Wire = strings.NewReplacer(e.Reference, sim.Others(e.Reference), e.Party, sim.Others(e.Party)).Replace(e.Wire)
	}
	c.Bends(&e)
	c.Answer(http.StatusOK, "application/json", m.render(e))
}
