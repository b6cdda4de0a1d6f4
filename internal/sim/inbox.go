package sim

import (
	"sync"
	"time"
)

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
	text   func() string
	at     time.Time
	number int
}

// arrival identifies a message in order of arrival, to drop the oldest first.
type arrival struct {
	to     string
	number int
}

func newHandsets() *handsets { return &handsets{messages: map[string][]inboxItem{}} }

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
