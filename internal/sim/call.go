package sim

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// call is one request on a provider's wire side: begin, then order or s.status,
// then answer. The faults armed for its operation strike on the way.
//
//	c, ok := s.begin(w, r, Hubtel, OpCollect)
//	if !ok {
//		return // answered by a fault
//	}
//	... read and check the request; c.answer(400, ...) for what the provider refuses ...
//	p, ok := c.order(Order{Provider: Hubtel, Kind: Collection, ...})
//	if !ok {
//		return
//	}
//	switch {
//	case p.Refused != "": c.answer(...)
//	case p.Existed: c.answer(... duplicate ...)
//	default: c.answer(... accepted, p.Entry ...)
//	}
type call struct {
	s        *Sim
	w        http.ResponseWriter
	r        *http.Request
	provider string
	op       string
	hit      hit
	plan     Plan  // of an order that this call entered
	ordered  Order // that order
}

// placed is what became of an order.
type placed struct {
	Entry   Entry
	Existed bool   // the provider had the reference before
	Refused Reason // not empty: nothing was entered
}

// begin takes the faults of this request and answers those that strike before
// anything is done; ok is false when it did.
func (s *Sim) begin(w http.ResponseWriter, r *http.Request, provider, op string) (c *call, ok bool) {
	c = &call{s: s, w: w, r: r, provider: provider, op: op, hit: s.faults.next(provider, op)}
	if c.hit == nil {
		return c, true
	}
	switch h := c.hit; {
	case h.has(RequestLost):
		c.drop()
	case h.has(Outage):
		c.unavailable()
	case h.has(ErrorBefore):
		c.write(http.StatusInternalServerError, "application/json", nil)
	case h.has(Throttle):
		w.Header().Set("Retry-After", "1")
		c.write(http.StatusTooManyRequests, "application/json", []byte(`{"statusCode":429,"message":"Rate limit is exceeded. Try again in 1 seconds."}`))
	case h.has(Unauthorized):
		c.write(http.StatusUnauthorized, "application/json", []byte(`{"statusCode":401,"message":"Unauthorized"}`))
	case h.has(Forbidden):
		c.write(http.StatusForbidden, "text/html", []byte("<html><head><title>403 Forbidden</title></head><body><h1>Forbidden</h1></body></html>"))
	case h.has(StatusHang):
		c.hang(h.of(StatusHang).Delay)
	case h.has(StatusAnswer):
		c.says(cmp.Or(h.of(StatusAnswer).Answer, "404:html"), Order{})
	default:
		return c, true
	}
	return c, false
}

// hang answers nothing until the client has gone, or for a while.
func (c *call) hang(most time.Duration) {
	t := c.s.clock.Timer(most)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.r.Context().Done():
	}
	c.drop()
}

// hides reports whether a question is answered as if the entry were not there.
func (c *call) hides(e Entry) bool {
	return c.hit.has(StatusNotFound) || c.hit.has(StatusLag) && c.s.clock.Since(e.At) < c.hit.of(StatusLag).Delay
}

// bends lets the faults of a question change what it is told of an entry.
func (c *call) bends(e *Entry) {
	if c.hit.has(StatusWrongAmount) {
		e.Amount += e.Fee + 1 // more by the fee alone is right where the payer bears it
	}
	if c.hit.has(StatusOther) {
		e.Amount += e.Fee + 1
		e.Reference, e.Party = others(e.Reference), others(e.Party)
	}
}

// others is a reference or party like this one of another party: the
// last character is another.
func others(s string) string {
	if s == "" {
		return s
	}
	last := byte('0')
	if s[len(s)-1] == last {
		last = '1'
	}
	return s[:len(s)-1] + string(last)
}

// splitAnswer reads a fault's Answer; the status is 0 where it names none.
func splitAnswer(s string) (status int, what string, ok bool) {
	head, tail, two := strings.Cut(s, ":")
	if !two {
		return 0, s, true
	}
	status, err := strconv.Atoi(head)
	return status, tail, err == nil && status >= 200 && status <= 599 && tail != ""
}

// says answers a fault's Answer about an order.
func (c *call) says(answer string, o Order) {
	status, what, _ := splitAnswer(answer)
	switch what {
	case "html":
		c.write(cmp.Or(status, http.StatusBadRequest), "text/html", []byte("<html><head><title>Error</title></head><body><h1>Error</h1></body></html>"))
	case "empty":
		c.write(cmp.Or(status, http.StatusBadRequest), "application/json", nil)
	default:
		code, body := c.s.wires[c.provider].says(c.op, what, o)
		c.write(cmp.Or(status, code), "application/json", body)
	}
}

// order enters an order in the book by the plan of its number and the faults of
// this call. ok is false when the call has been answered.
func (c *call) order(o Order) (p placed, ok bool) {
	plan := o.plan()
	c.hit.bend(&plan)
	if plan.Down && c.s.isDown(o.Party) {
		c.unavailable()
		return p, false
	}
	if plan.Refuse != "" {
		if e, known := c.s.status(o.Provider, o.Reference); known {
			return placed{Entry: e, Existed: true}, true
		}
		return placed{Refused: plan.Refuse}, true
	}
	now := c.s.clock.Now()
	var err error
	p.Entry, p.Existed, p.Refused, err = c.s.book.create(o, plan, now, func(e Entry) {
		if !plan.Early && !e.dueBy(now) {
			c.s.await(e)
		}
	})
	if err != nil {
		c.s.log.Error("simulator's book does not take an order", "error", err)
		c.write(http.StatusInternalServerError, "application/json", nil)
		return p, false
	}
	if p.Existed || p.Refused != "" {
		return p, true
	}
	c.plan, c.ordered = plan, o
	switch e := p.Entry; {
	case plan.Early:
		if settled, did := c.s.settleByPlan(e); did && e.CallbackURL != "" && !plan.NoCallback {
			c.s.callbacks.sendNow(c.r.Context(), c.s.wires[e.Provider].callback(settled))
		}
	case e.dueBy(now):
		c.s.settleDueEntry(e)
	}
	return p, true
}

// bend lets the faults of a request change what its order comes to.
func (h hit) bend(p *Plan) {
	for _, f := range h {
		switch k := f.Kind; k {
		case CallbackDuplicate:
			p.Twice = true
		case CallbackEarly:
			p.Early, p.Wait = true, false
		case CallbackLate:
			p.CallAfter = h.of(k).Delay
		case CallbackMissing:
			p.NoCallback = true
		case CallbackForged:
			p.Forged = true
		case CallbackStale:
			p.Stale = true
		case Reverse:
			p.FlipAfter, p.Flips = h.of(k).Delay, 1
		case SuccessFailedSuccess:
			p.Then, p.Reason, p.FlipAfter, p.Flips = Success, "", h.of(k).Delay, 2
		case FailedSuccessFailed:
			p.Then, p.Reason, p.FlipAfter, p.Flips = Failed, Internal, h.of(k).Delay, 2
		case FailLater:
			p.Then, p.Reason = Failed, Internal
		case RefuseOutright:
			p.Refuse = Refused
		case Stuck:
			p.Wait, p.Delay = true, 0
		case StatementOmit:
			p.Omit = true
		case StatementOff:
			p.Off = 1
		}
	}
}

// answer gives the answer, unless a fault or the number's plan takes it away.
func (c *call) answer(status int, contentType string, body []byte) {
	switch {
	case c.plan.Lost || c.hit.has(AnswerLost):
		c.drop()
		return
	case c.hit.has(ErrorAfter):
		c.write(http.StatusInternalServerError, "application/json", nil)
		return
	case c.hit.has(RefuseAfter):
		c.says(c.hit.of(RefuseAfter).Answer, c.ordered)
		return
	case c.plan.Garbled || c.hit.has(Malformed):
		c.write(http.StatusOK, "application/json", []byte(`{"status":"SUCC<html>`))
		return
	case c.hit.has(Slow):
		t := c.s.clock.Timer(c.hit.of(Slow).Delay)
		select {
		case <-t.C:
		case <-c.r.Context().Done():
			t.Stop()
			return
		}
	}
	c.write(status, contentType, body)
}

func (c *call) write(status int, contentType string, body []byte) {
	h := c.w.Header()
	h["Content-Type"] = []string{contentType}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	c.w.WriteHeader(status)
	c.w.Write(body)
}

func (c *call) unavailable() {
	c.write(http.StatusServiceUnavailable, "text/html", []byte("<html><body><h1>503 Service Temporarily Unavailable</h1></body></html>"))
}

// drop closes the connection without an answer.
func (c *call) drop() {
	conn, _, err := http.NewResponseController(c.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // the standard way to drop a connection that cannot be taken over
	}
	conn.Close()
}

// plan is what an order will come to, by its number unless it is fixed.
func (o Order) plan() Plan {
	p := PlanFor(o.Kind, o.Party)
	if o.fixed != nil {
		p = *o.fixed
	}
	if p.Then == "" {
		p.Then = Success
	}
	return p
}

// downFor is how long magic number 031 keeps answering 503.
const downFor = 60 * time.Second

// isDown reports whether the provider is still down for this number; the first
// question starts the time.
func (s *Sim) isDown(party string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	until, known := s.down[party]
	if !known {
		until = now.Add(downFor)
		s.down[party] = until
	}
	return now.Before(until)
}

// status gives an entry as the provider sees it now. A payment that is due has settled, whether or
// not the scheduler came around to it.
func (s *Sim) status(provider, reference string) (Entry, bool) {
	e, ok := s.book.get(provider, reference)
	if ok && e.dueBy(s.clock.Now()) {
		s.settleDueEntry(e)
		return s.book.get(provider, reference)
	}
	return e, ok
}

// await settles an entry when it is due.
func (s *Sim) await(e Entry) {
	if !e.Due.IsZero() {
		provider, reference := e.Provider, e.Reference
		s.schedule.at(e.Due, func() {
			if e, ok := s.book.get(provider, reference); ok && e.Status == Pending {
				s.settleDueEntry(e)
			}
		})
	}
}

// settleDueEntry settles an entry as its plan says and sends the callbacks.
func (s *Sim) settleDueEntry(e Entry) {
	if after, did := s.settleByPlan(e); did {
		s.announce(after)
	}
}

func (s *Sim) settleByPlan(e Entry) (Entry, bool) {
	at := e.Due
	if now := s.clock.Now(); at.IsZero() || at.After(now) {
		at = now
	}
	after, did, _ := s.book.settle(settleRecord{
		Provider: e.Provider, Reference: e.Reference, Status: e.Plan.Then, Reason: e.Plan.Reason, At: at,
	}, true)
	if did && after.Plan.FlipAfter > 0 {
		s.flip(after, after.Plan.Flips)
	}
	return after, did
}

// flip lets a final entry change its word so many times, FlipAfter apart.
func (s *Sim) flip(e Entry, times int) {
	if times < 1 {
		return
	}
	s.schedule.after(e.Plan.FlipAfter, func() {
		if after, did := s.turn(e); did {
			s.flip(after, times-1)
		}
	})
}

// turn makes a success of a failure, or takes a success back, and calls back.
func (s *Sim) turn(e Entry) (Entry, bool) {
	r := settleRecord{Provider: e.Provider, Reference: e.Reference, Status: Success, At: s.clock.Now(), Turned: true}
	if e.Status == Success {
		r.Status, r.Reason, r.Reversed = Failed, ReversedLater, true
	}
	after, did, err := s.book.settle(r, false)
	if err != nil || !did {
		return e, false
	}
	if after.CallbackURL != "" && !after.Plan.NoCallback {
		s.callbacks.send(s.wires[after.Provider].callback(after))
	}
	return after, true
}

// settleDue settles everything that is due, for who wants totals.
func (s *Sim) settleDue() {
	now := s.clock.Now()
	for _, e := range s.book.open() {
		if e.dueBy(now) {
			s.settleDueEntry(e)
		}
	}
}

// announce sends what the provider sends about an entry that has settled.
func (s *Sim) announce(e Entry) {
	p := e.Plan
	if e.CallbackURL == "" || p.NoCallback {
		return
	}
	render := s.wires[e.Provider].callback
	truth := render(e)
	lie := e
	lie.Status, lie.Reason = Failed, Internal
	if e.Status == Failed {
		lie.Status, lie.Reason = Success, ""
	}
	if p.Forged {
		s.callbacks.send(render(lie))
	}
	send := func() {
		s.callbacks.send(truth)
		if p.Twice {
			s.callbacks.send(truth)
		}
		if p.Stale {
			s.schedule.after(time.Second, func() { s.callbacks.send(render(lie)) })
		}
	}
	if p.CallAfter > 0 {
		s.schedule.after(p.CallAfter, send)
		return
	}
	send()
}

// ReverseEntry takes a success back, as a provider does on a complaint, and
// reports whether there was one.
func (s *Sim) ReverseEntry(provider, reference string) bool {
	e, known := s.status(provider, reference)
	if !known || e.Status != Success {
		return false
	}
	_, did := s.turn(e)
	return did
}
