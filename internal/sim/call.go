package sim

import (
	"cmp"
	"net/http"
	"strconv"
	"time"
)

// Call is one request at a provider: Begin, then Order or Sim.Status, then Answer. The faults armed for its operation
// take effect on the way.
//
//	c, ok := s.Begin(w, r, Name, sim.OpCollect)
//	if !ok {
//		return // answered by a fault
//	}
//	... read and check the request; c.Write(400, ...) for the provider's refusals ...
//	p, ok := c.Order(sim.Order{Provider: Name, Kind: sim.Collection, ...})
//	if !ok {
//		return
//	}
//	switch {
//	case p.Refused != "": c.Answer(...)
//	case p.Existed: c.Answer(... duplicate ...)
//	default: c.Answer(... accepted, p.Entry ...)
//	}
type Call struct {
	Request  *http.Request
	Op       string // operation, named as in faults
	Hit      Hit    // the faults that affect this request
	s        *Sim
	w        http.ResponseWriter
	provider string
	plan     Plan  // plan of the order of this call
	ordered  Order // the order of this call
}

// Placed is the result of an order.
type Placed struct {
	Entry   Entry
	Existed bool   // the provider had the reference before
	Refused Reason // not empty: the order was not entered
}

// Begin begins a request. It selects the request's faults and answers those that apply before anything is done. ok is
// false if it has answered.
func (s *Sim) Begin(w http.ResponseWriter, r *http.Request, provider, op string) (c *Call, ok bool) {
	c = &Call{Request: r, Op: op, Hit: s.faults.next(provider, op), s: s, w: w, provider: provider}
	if c.Hit == nil {
		return c, true
	}
	switch h := c.Hit; {
	case h.Has(RequestLost):
		c.drop()
	case h.Has(Outage):
		c.unavailable()
	case h.Has(ErrorBefore):
		c.Write(http.StatusInternalServerError, "application/json", nil)
	case h.Has(Throttle):
		w.Header().Set("Retry-After", "1")
		c.Write(http.StatusTooManyRequests, "application/json", []byte(`{"statusCode":429,"message":"Rate limit is exceeded. Try again in 1 seconds."}`))
	case h.Has(Unauthorized):
		c.Write(http.StatusUnauthorized, "application/json", []byte(`{"statusCode":401,"message":"Unauthorized"}`))
	case h.Has(Forbidden):
		c.Write(http.StatusForbidden, "text/html", []byte("<html><head><title>403 Forbidden</title></head><body><h1>Forbidden</h1></body></html>"))
	case h.Has(StatusHang):
		c.hang(h.Of(StatusHang).Delay)
	case h.Has(StatusAnswer):
		c.Refusal(cmp.Or(h.Of(StatusAnswer).Answer, "404:html"), Order{})
	default:
		return c, true
	}
	return c, false
}

// hang waits without answering until the client disconnects, or for at most most.
func (c *Call) hang(most time.Duration) {
	t := c.s.clock.Timer(most)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.Request.Context().Done():
	}
	c.drop()
}

// Hides reports whether a status query is answered as if the entry did not exist.
func (c *Call) Hides(e Entry) bool {
	return c.Hit.Has(StatusNotFound) || c.Hit.Has(StatusLag) && c.s.clock.Since(e.At) < c.Hit.Of(StatusLag).Delay
}

// Bends applies the faults of a status query to the entry with which it is answered.
func (c *Call) Bends(e *Entry) {
	if c.Hit.Has(StatusWrongAmount) {
		e.Amount += e.Fee + 1 // an excess by the fee alone would be correct if the payer pays the fee
	}
	if c.Hit.Has(StatusOther) {
		e.Amount += e.Fee + 1
		e.Reference, e.Party = Others(e.Reference), Others(e.Party)
	}
}

// Refusal answers an order with a fault's Answer.
func (c *Call) Refusal(answer string, o Order) {
	status, what, _ := splitAnswer(answer)
	switch what {
	case "html":
		c.Write(cmp.Or(status, http.StatusBadRequest), "text/html", []byte("<html><head><title>Error</title></head><body><h1>Error</h1></body></html>"))
	case "empty":
		c.Write(cmp.Or(status, http.StatusBadRequest), "application/json", nil)
	default:
		code, body := c.s.providers[c.provider].Refusal(c.Op, what, o)
		c.Write(cmp.Or(status, code), "application/json", body)
	}
}

// Order enters an order in the book, with the plan of its number and the faults of this call. ok is false if the call
// was answered.
func (c *Call) Order(o Order) (p Placed, ok bool) {
	plan := o.plan()
	c.Hit.Bend(&plan)
	if plan.Down && c.s.IsDown(o.Party) {
		c.unavailable()
		return p, false
	}
	if plan.Refuse != "" {
		if e, known := c.s.Status(o.Provider, o.Reference); known {
			return Placed{Entry: e, Existed: true}, true
		}
		return Placed{Refused: plan.Refuse}, true
	}
	now := c.s.clock.Now()
	var err error
	p.Entry, p.Existed, p.Refused, err = c.s.book.create(o, plan, now, func(e Entry) {
		if !plan.Early && !e.dueBy(now) {
			c.s.await(e)
		}
	})
	if err != nil {
		c.s.log.Error("simulator failed to store order", "error", err)
		c.Write(http.StatusInternalServerError, "application/json", nil)
		return p, false
	}
	if p.Existed || p.Refused != "" {
		return p, true
	}
	c.plan, c.ordered = plan, o
	switch e := p.Entry; {
	case plan.Early:
		if settled, did := c.s.settleByPlan(e); did && e.CallbackURL != "" && !plan.NoCallback {
			c.s.callbacks.sendNow(c.Request.Context(), c.s.keeps[e.Provider].Callback(settled))
		}
	case e.dueBy(now):
		c.s.settleDueEntry(e)
	}
	return p, true
}

// Answer sends the response, unless a fault or the number's plan suppresses or replaces it.
func (c *Call) Answer(status int, contentType string, body []byte) {
	switch {
	case c.plan.Lost || c.Hit.Has(AnswerLost):
		c.drop()
		return
	case c.Hit.Has(ErrorAfter):
		c.Write(http.StatusInternalServerError, "application/json", nil)
		return
	case c.Hit.Has(RefuseAfter):
		c.Refusal(c.Hit.Of(RefuseAfter).Answer, c.ordered)
		return
	case c.plan.Garbled || c.Hit.Has(Malformed):
		c.Write(http.StatusOK, "application/json", []byte(`{"status":"SUCC<html>`))
		return
	case c.Hit.Has(Slow):
		t := c.s.clock.Timer(c.Hit.Of(Slow).Delay)
		select {
		case <-t.C:
		case <-c.Request.Context().Done():
			t.Stop()
			return
		}
	}
	c.Write(status, contentType, body)
}

// Write sends a response regardless of faults.
func (c *Call) Write(status int, contentType string, body []byte) {
	h := c.w.Header()
	h["Content-Type"] = []string{contentType}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	c.w.WriteHeader(status)
	c.w.Write(body)
}

func (c *Call) unavailable() {
	c.Write(http.StatusServiceUnavailable, "text/html", []byte("<html><body><h1>503 Service Temporarily Unavailable</h1></body></html>"))
}

// drop closes the connection without a response.
func (c *Call) drop() {
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the standard way to close a connection that cannot be hijacked
	}
	conn.Close()
}
