package sim

import (
	"slices"
	"sync"
	"time"
)

// HeldBack is the minimum delay of a receipt at which the handset counts as unreachable until then. The text then
// arrives with the receipt and not before.
const HeldBack = 5 * time.Second

// TextPlan returns the plan of a message to a number. For a message, the fields of a Plan have other meanings. Refuse
// is a refusal in the response. Down is a full queue for 60 s. Delay is the time until the receipt. Success is a
// delivery. Wait and NoCallback mean no receipt. Lost means no response, while the connection stays open. Garbled is
// a response without a readable id. A callback is a receipt.
func TextPlan(number string) Plan {
	code, _ := Magic(number)
	p := planOf(code)
	switch code {
	case "003":
		p.Wait = true
	case "020":
		p.Refuse = Refused
	case "021":
		p.Delay = 10 * time.Second
		return p.failing(Expired)
	}
	return p
}

// Text is a message that a provider over HTTP accepted.
type Text struct {
	ID        string    `json:"id"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	Text      string    `json:"text"`
	At        time.Time `json:"at"`
	UpdatedAt time.Time `json:"updated_at"`
	State     TextState `json:"state"`
}

// TextState is the state of a text at its provider.
type TextState string

// The states of a text. A pending text becomes one of the others.
const (
	TextPending   TextState = "pending"
	TextDelivered TextState = "delivered"
	TextFailed    TextState = "failed"
	TextExpired   TextState = "expired"
	TextBarred    TextState = "barred"
)

// maxTexts is the maximum number of texts at one provider. Beyond it the oldest is dropped.
const maxTexts = 100_000

// Texts are the texts of one provider over HTTP.
type Texts struct {
	s     *Sim
	mu    sync.Mutex
	byID  map[string]*Text
	order []string
}

// NewTexts returns an empty list of texts.
func (s *Sim) NewTexts() *Texts { return &Texts{s: s, byID: map[string]*Text{}} }

// Notify sends a callback of a provider.
func (s *Sim) Notify(b Callback) { s.callbacks.send(b) }

// Text returns the plan of a text to a number, changed by the faults of this call. ok is false if the call was
// answered.
func (c *Call) Text(to string) (p Plan, ok bool) {
	p = TextPlan(to)
	c.Hit.Bend(&p)
	if p.Down && c.s.IsDown(to) {
		c.unavailable()
		return p, false
	}
	c.plan = p
	return p, true
}

// Take stores a text, delivers it to its handset, and ends it according to its plan. It calls report for each report
// when it is due.
func (t *Texts) Take(x Text, p Plan, report func(Text)) {
	x.At = t.s.Clock().Now()
	x.UpdatedAt, x.State = x.At, TextPending
	t.add(x)
	end := x
	end.State = stateOf(p)
	if end.State == TextDelivered && (p.Delay < HeldBack || p.Wait || p.Early) {
		t.s.Deliver(x.To, x.From, x.Text)
	}
	if p.Wait {
		return
	}
	settle := func() {
		t.settle(&end)
		if end.State == TextDelivered && p.Delay >= HeldBack && !p.Early {
			t.s.Deliver(x.To, x.From, x.Text)
		}
	}
	tell := func() { t.report(end, p, report) }
	if p.Early {
		settle()
		tell()
		return
	}
	t.s.At(x.At.Add(p.Delay), settle)
	t.s.At(x.At.Add(p.Delay+p.CallAfter), tell)
}

// report sends a report, and the additional ones that a plan requires.
func (t *Texts) report(x Text, p Plan, report func(Text)) {
	if p.NoCallback || report == nil {
		return
	}
	lie := x
	lie.State = TextFailed
	if x.State != TextDelivered {
		lie.State = TextDelivered
	}
	if p.Forged {
		stranger := lie
		stranger.ID = Others(x.ID)
		report(stranger)
	}
	report(x)
	if p.Twice {
		report(x)
	}
	if p.Stale {
		t.s.At(t.s.Clock().Now().Add(time.Second), func() { report(lie) })
	}
}

// stateOf returns the final state of a text with a plan.
func stateOf(p Plan) TextState {
	switch {
	case p.Then == Success || p.Then == "":
		return TextDelivered
	case p.Reason == Expired:
		return TextExpired
	case p.Reason == Barred:
		return TextBarred
	}
	return TextFailed
}

func (t *Texts) add(x Text) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[x.ID] = &x
	t.order = append(t.order, x.ID)
	if len(t.order) > maxTexts {
		delete(t.byID, t.order[0])
		t.order = t.order[1:]
	}
}

func (t *Texts) settle(end *Text) {
	t.mu.Lock()
	defer t.mu.Unlock()
	end.UpdatedAt = t.s.Clock().Now()
	if x := t.byID[end.ID]; x != nil {
		*x = *end
	}
}

// Find returns a text by its id.
func (t *Texts) Find(id string) (Text, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.byID[id]; x != nil {
		return *x, true
	}
	return Text{}, false
}

// All returns the texts in the order in which they were taken.
func (t *Texts) All() []Text {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Text, 0, len(t.order))
	for _, id := range t.order {
		all = append(all, *t.byID[id])
	}
	return slices.Clip(all)
}
