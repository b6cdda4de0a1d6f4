package sim

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"
)

// MTN documents that a delivery notification is refused too late (410) and too
// soon after the one before (429), but no times. These are ours.
const (
	mtnNotifyFor   = 24 * time.Hour // after the movement succeeded
	mtnNotifyEvery = time.Minute    // for one movement, through one product
)

// notified keeps when each movement last had a delivery notification.
type notified struct {
	mu   sync.Mutex
	last map[string]time.Time // by product, account and reference
}

// claim reports whether a movement may have a notification at now, and records
// it. It forgets what has passed, so the map holds one minute of notifications.
func (n *notified) claim(movement string, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, at := range n.last {
		if now.Sub(at) >= mtnNotifyEvery {
			delete(n.last, key)
		}
	}
	if _, recent := n.last[movement]; recent {
		return false
	}
	n.last[movement] = now
	return true
}

// notify answers a delivery notification: a text to the other side of a movement
// that succeeded. The text is in a header or in the body. Clients of the
// disbursement and remittance products send it to the path of requests to pay,
// so there resource is anyResource.
func (m *mtn) notify(c *mtnCall, resource, reference string) {
	raw, err := io.ReadAll(io.LimitReader(c.r.Body, mtnMaxBody))
	var b struct {
		Text string `json:"notificationMessage"`
	}
	if err == nil && len(raw) > 0 {
		err = json.Unmarshal(raw, &b)
	}
	text := cmp.Or(b.Text, c.r.Header.Get("notificationMessage"))
	if err != nil || text == "" || !mtnNote(text) {
		c.write(http.StatusBadRequest, "application/json", nil)
		return
	}
	e, ok := m.find(c, resource, reference)
	now := m.s.clock.Now()
	switch {
	case !ok:
	case e.Status != Success:
		c.write(http.StatusConflict, "application/json", nil)
	case now.Sub(e.Settled) >= mtnNotifyFor:
		c.write(http.StatusGone, "application/json", nil)
	case !m.notified.claim(c.product.name+" "+e.Provider+" "+plain(e.Reference), now):
		c.write(http.StatusTooManyRequests, "application/json", nil)
	default:
		m.s.Deliver(e.Party, "MTN MoMo", text)
		c.answer(http.StatusOK, "application/json", nil)
	}
}
