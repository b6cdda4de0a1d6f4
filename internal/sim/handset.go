package sim

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// Message is a text that arrived on a handset.
type Message struct {
	From       string
	Text       string
	ReceivedAt time.Time
}

// Prompt is a request for approval on a handset. Payouts that the simulator
// holds back (magic 003) show here as well, so that a person can let them go.
type Prompt struct {
	ID       string
	Entry    Entry
	Text     string
	Status   string // pending, approved, declined, wrong_pin, expired, failed
	Provider string
}

const (
	// handsetHistory is how many messages and prompts a handset shows.
	handsetHistory = 200
	// handsetTotal is how many messages all handsets keep together: a
	// campaign to a million of them must not fill the memory.
	handsetTotal = 50_000
)

// handsets keeps the messages of each number, in memory: they are no money.
type handsets struct {
	mu       sync.Mutex
	messages map[string][]inboxItem
	oldest   []arrival // a ring of all that arrived, to find the oldest
	count    int       // how many arrived
}

// inboxItem is a message as it arrived: its text is made when it is read.
type inboxItem struct {
	from   string
	parts  []content
	at     time.Time
	number int
}

// arrival says which message to drop when it is the oldest.
type arrival struct {
	to     string
	number int
}

func newHandsets() *handsets { return &handsets{messages: map[string][]inboxItem{}} }

// Deliver puts a whole message on a handset.
func (s *Sim) Deliver(to, from, text string) {
	s.handsets.put(party(to), inboxItem{from: from, parts: []content{plainText(text)}, at: s.clock.Now()})
}

// put adds a message, and drops the oldest of this handset or of all.
func (h *handsets) put(to string, item inboxItem) {
	h.mu.Lock()
	defer h.mu.Unlock()
	item.number = h.count
	h.count++
	list := append(h.messages[to], item)
	h.messages[to] = list[max(0, len(list)-handsetHistory):]
	if len(h.oldest) < handsetTotal {
		h.oldest = append(h.oldest, arrival{to, item.number})
		return
	}
	place := &h.oldest[item.number%handsetTotal]
	if rest := h.messages[place.to]; len(rest) > 0 && rest[0].number == place.number {
		if len(rest) == 1 {
			delete(h.messages, place.to)
		} else {
			h.messages[place.to] = rest[1:]
		}
	}
	*place = arrival{to, item.number}
}

// Messages gives the messages on a handset, newest last.
func (s *Sim) Messages(number string) []Message {
	h := s.handsets
	h.mu.Lock()
	list := append([]inboxItem{}, h.messages[party(number)]...)
	h.mu.Unlock()
	messages := make([]Message, len(list))
	for i, item := range list {
		var text strings.Builder
		for _, part := range item.parts {
			text.WriteString(part.text())
		}
		messages[i] = Message{item.from, text.String(), item.at}
	}
	return messages
}

// Prompts gives the requests for approval on a handset, newest last.
func (s *Sim) Prompts(number string) []Prompt {
	list := []Prompt{}
	for _, e := range s.book.of(party(number), handsetHistory) {
		if e.Kind != Collection && !e.Plan.Wait {
			continue
		}
		if current, ok := s.status(e.Provider, e.Reference); ok {
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

// Answer answers a prompt: approve, decline or wrong_pin.
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

// party writes a number as the book does; a bank account stays as it is.
func party(number string) string {
	if m, err := msisdn.Parse(number); err == nil {
		return m.International()
	}
	return strings.TrimSpace(number)
}
