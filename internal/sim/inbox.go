package sim

import (
	"sync"
	"time"
)

const (
	// handsetHistory is the maximum number of messages and prompts that a handset shows.
	handsetHistory = 200
	// handsetTotal is the maximum number of messages on all handsets together, so that a campaign to a million
	// handsets does not fill the memory.
	handsetTotal = 50_000
)

// handsets stores the messages of each number in memory only, because they are not money.
type handsets struct {
	mu       sync.Mutex
	messages map[string][]inboxItem
	oldest   []arrival // all messages in a ring, to find the oldest
	count    int       // number of messages that have arrived
}

// inboxItem is a message whose text is computed when it is read.
type inboxItem struct {
	from   string
	text   func() string
	at     time.Time
	number int
}

// arrival identifies a message in the order of arrival.
type arrival struct {
	to     string
	number int
}

func newHandsets() *handsets { return &handsets{messages: map[string][]inboxItem{}} }

// put adds a message. If there are too many, it drops the oldest of this handset or of all handsets.
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
