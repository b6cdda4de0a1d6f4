package sim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/makola/makola/internal/problem"
)

// Message is a text that arrived on a handset.
type Message struct {
	From       string
	Text       string
	ReceivedAt time.Time
}

// Prompt is a request for approval on a handset. It is also used for payouts that the simulator holds back (magic
// 003), so that a person can release them.
type Prompt struct {
	ID       string
	Entry    Entry
	Text     string
	Status   string // pending, approved, declined, wrong_pin, expired, failed
	Provider string
}

// Deliver delivers a whole message to a handset.
func (s *Sim) Deliver(to, from, text string) {
	s.Receive(to, from, func() string { return text })
}

// Receive delivers a message to a handset. Its text is computed when somebody reads it.
func (s *Sim) Receive(to, from string, text func() string) {
	s.handsets.put(Party(to), inboxItem{from: from, text: text, at: s.clock.Now()})
}

// Messages returns the messages on a handset, newest last.
func (s *Sim) Messages(number string) []Message {
	h := s.handsets
	h.mu.Lock()
	list := append([]inboxItem{}, h.messages[Party(number)]...)
	h.mu.Unlock()
	messages := make([]Message, len(list))
	for i, item := range list {
		messages[i] = Message{item.from, item.text(), item.at}
	}
	return messages
}

// Prompts returns the prompts on a handset, newest last.
func (s *Sim) Prompts(number string) []Prompt {
	list := []Prompt{}
	for _, e := range s.book.of(Party(number), handsetHistory) {
		if e.Kind != Collection && !e.Plan.Wait {
			continue
		}
		if current, ok := s.Status(e.Provider, e.Reference); ok {
			list = append(list, promptOf(current))
		}
	}
	return list
}

func promptOf(e Entry) Prompt {
	p := Prompt{ID: strconv.FormatInt(e.Number, 10), Entry: e, Provider: e.Provider, Status: string(Pending), Text: e.Text}
	switch {
	case p.Text != "":
	case e.Kind == Collection:
		p.Text = fmt.Sprintf("Pay GHS %s? Enter your PIN to approve.", e.Amount)
	default:
		p.Text = fmt.Sprintf("A %s of GHS %s is held by the simulator.", e.Kind, e.Amount)
	}
	switch {
	case e.Status == Pending:
	case e.Answer != "":
		p.Status = e.Answer
	case e.Reason == Declined, e.Reason == Expired, e.Reason == WrongPIN:
		p.Status = string(e.Reason)
	case e.Status == Success || e.Reversed:
		p.Status = "approved"
	default:
		p.Status = string(Failed)
	}
	return p
}

// Answer answers a prompt. action is approve, decline or wrong_pin.
func (s *Sim) Answer(number, id, action string) (Prompt, error) {
	var e Entry
	found := false
	for _, p := range s.Prompts(number) {
		if p.ID == id {
			e, found = p.Entry, true
		}
	}
	if !found {
		return Prompt{}, problem.New(problem.NotFound, "no_prompt", "No such prompt on this handset")
	}
	r := settleRecord{Provider: e.Provider, Reference: e.Reference, At: s.clock.Now()}
	switch action {
	case "approve":
		r.Status, r.Answer = Success, "approved"
	case "decline":
		r.Status, r.Reason, r.Answer = Failed, Declined, "declined"
	case "wrong_pin":
		r.Status, r.Reason, r.Answer = Failed, WrongPIN, "wrong_pin"
	default:
		return Prompt{}, problem.Field("action", "must be approve, decline or wrong_pin")
	}
	if e.Kind != Collection && r.Status == Failed {
		r.Reason = Internal
	}
	after, did, err := s.book.settle(r, false)
	if err != nil {
		return Prompt{}, err
	}
	if !did {
		return Prompt{}, problem.New(problem.InProgress, "prompt_over", "The prompt is over")
	}
	s.announce(after)
	return promptOf(after), nil
}
