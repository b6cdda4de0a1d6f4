package mtn

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/sim"
)

// agreed returns the operation and handler of a path of these resources.
func (m *mtn) agreed(method, resource string, rest []string) (op string, serve func(*call)) {
	own := "collection/" + resource
	one := len(rest) == 1 && agreedStatus[own] != nil
	switch {
	case len(rest) == 0 && method == http.MethodPost && own == invoices:
		return sim.OpCollect, m.invoice
	case len(rest) == 0 && method == http.MethodPost && own == preapprovals:
		return sim.OpCollect, m.preapprove
	case len(rest) == 0 && method == http.MethodPost && own == bills:
		return sim.OpDisburse, m.payBill
	case one && method == http.MethodGet && own == bills:
		return sim.OpDisburseStatus, func(c *call) { m.agreement(c, own, rest[0]) }
	case one && method == http.MethodGet:
		return sim.OpCollectStatus, func(c *call) { m.agreement(c, own, rest[0]) }
	case one && method == http.MethodDelete && own == invoices:
		return sim.OpCollectStatus, func(c *call) { m.cancelInvoice(c, rest[0]) }
	case one && method == http.MethodDelete && own == preapprovals:
		return sim.OpCollectStatus, func(c *call) { m.cancelPreapproval(c, rest[0]) }
	case resource == "preapprovals" && len(rest) == 2 && method == http.MethodGet:
		return sim.OpCollectStatus, func(c *call) { m.preapproved(c, rest[0], rest[1]) }
	}
	return "", nil
}

func (m *mtn) invoice(c *call) {
	var b invoice
	o, ok := m.started(c, "invoice", &b)
	if !ok {
		return
	}
	validity, invalid := strconv.ParseUint(cmp.Or(b.Validity, "0"), 10, 31)
	amount, err := money.Parse(b.Amount)
	if invalid != nil || err != nil || amount <= 0 || !b.Payer.isNumber() {
		c.Write(http.StatusBadRequest, "application/json", nil)
		return
	}
	o.Amount = amount
	o.Party, o.Text = b.Payer.ID, strings.TrimSpace("Pay the invoice of "+b.Currency+" "+b.Amount+"? "+b.Description)
	m.placeAgreed(c, o, b.Currency, time.Duration(validity)*time.Second, b)
}

// placeAgreed enters an order that the customer can approve until its validity ends.
func (m *mtn) placeAgreed(c *call, o sim.Order, currency string, validity time.Duration, body any) {
	if currency != c.account.currency {
		c.fail(http.StatusInternalServerError, "INVALID_CURRENCY")
		return
	}
	if o.Fixed = fixture(o.Resource, o.Party); o.Fixed == nil {
		plan := sim.PlanFor(o.Kind, o.Party)
		if plan.Wait && validity > 0 {
			plan.Delay, plan.Then, plan.Reason = validity, sim.Failed, sim.Expired
		}
		o.Fixed = &plan
	}
	wire, _ := json.Marshal(body)
	o.Wire = string(wire)
	m.place(c, o)
}

// cancelInvoice answers 200 for an invoice in any state, as MTN documents. A paid invoice stays paid.
func (m *mtn) cancelInvoice(c *call, reference string) {
	raw, err := io.ReadAll(io.LimitReader(c.Request.Body, maxBody))
	var b struct {
		External string `json:"externalId"`
	}
	if err != nil || !uuid4(c.Request.Header.Get("X-Reference-Id")) || json.Unmarshal(raw, &b) != nil {
		c.Write(http.StatusBadRequest, "application/json", nil)
		return
	}
	if e, ok := m.agreementOf(c, invoices, reference); ok {
		m.s.Resolve(e.Provider, e.Reference, sim.Failed, "CANCELED")
		body, _ := json.Marshal(b)
		c.Answer(http.StatusOK, "application/json", body)
	}
}

func (m *mtn) preapprove(c *call) {
	var b preapproval
	o, ok := m.started(c, "preapproval", &b)
	if !ok {
		return
	}
	if !b.Payer.isNumber() || !noteFits(b.Message) || b.Validity <= 0 || b.Validity > 1<<31 {
		c.Write(http.StatusBadRequest, "application/json", nil)
		return
	}
	o.Party, o.Text = b.Payer.ID, strings.TrimSpace("Let this merchant debit your wallet? "+b.Message)
	m.placeAgreed(c, o, b.Currency, 0, b)
}

// preapproved lists the valid pre-approvals of a customer.
func (m *mtn) preapproved(c *call, kind, number string) {
	if !strings.EqualFold(kind, "MSISDN") || !digits(number) {
		c.Write(http.StatusBadRequest, "application/json", nil)
		return
	}
	type approved struct {
		ID       string `json:"preApprovalId"`
		From     string `json:"fromFri"`
		Currency string `json:"fromCurrency"`
		Created  string `json:"createdTime"`
		Approved string `json:"approvedTime"`
		Expires  string `json:"expiryTime"`
		Status   string `json:"status"`
		Message  string `json:"message"`
	}
	now, list := m.s.Clock().Now(), []approved{}
	for _, e := range m.s.All() {
		var b preapproval
		if e.Provider != c.account.provider || e.Resource != preapprovals || e.Party != number || e.Status != sim.Success ||
			json.Unmarshal([]byte(e.Wire), &b) != nil || !now.Before(b.ends(e)) {
			continue
		}
		stamp := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
		list = append(list, approved{e.Reference, "FRI:" + number + "/MSISDN", b.Currency, stamp(e.At), stamp(e.Settled), stamp(b.ends(e)), "APPROVED", b.Message})
	}
	slices.Reverse(list) // newest first
	body, _ := json.Marshal(list)
	c.Answer(http.StatusOK, "application/json", body)
}

// cancelPreapproval ends an approved pre-approval. MTN documents that no other can be cancelled.
func (m *mtn) cancelPreapproval(c *call, reference string) {
	e, ok := m.agreementOf(c, preapprovals, reference)
	if !ok {
		return
	}
	if !m.s.ReverseEntry(e.Provider, e.Reference) {
		c.fail(http.StatusNotFound, "RESOURCE_NOT_FOUND")
		return
	}
	c.Answer(http.StatusOK, "application/json", nil)
}

func (m *mtn) payBill(c *call) {
	var b bill
	o, ok := m.started(c, "payment", &b)
	if !ok {
		return
	}
	var err error
	o.Amount, err = money.Parse(b.Money.Amount)
	if err != nil || o.Amount <= 0 || b.Customer == "" || len(b.Customer) > 50 || b.Company == "" {
		c.Write(http.StatusBadRequest, "application/json", nil)
		return
	}
	o.Kind, o.Party = sim.Payout, b.Customer
	m.placeAgreed(c, o, b.Money.Currency, 0, b)
}

// agreement answers a status query.
func (m *mtn) agreement(c *call, resource, reference string) {
	if e, ok := m.agreementOf(c, resource, reference); ok {
		c.Bends(&e)
		c.Answer(http.StatusOK, "application/json", m.render(e))
	}
}

// agreementOf returns the entry of the resource in a path. If there is none, it answers the request.
func (m *mtn) agreementOf(c *call, resource, reference string) (sim.Entry, bool) {
	e, ok := m.find(c, anyResource, reference)
	if ok && e.Resource != resource {
		c.fail(http.StatusNotFound, "RESOURCE_NOT_FOUND")
		return sim.Entry{}, false
	}
	return e, ok
}
