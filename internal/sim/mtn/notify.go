package mtn

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"

	"github.com/makola/makola/internal/sim"
)

// notify handles a delivery notification, which is a text to the other party of a successful movement. The text is in
// a header or in the body. Clients of the disbursement and remittance products send it to the path of requests to
// pay, so there resource is anyResource.
func (m *mtn) notify(c *call, resource, reference string) {
	raw, err := io.ReadAll(io.LimitReader(c.Request.Body, maxBody))
	var b struct {
		Text string `json:"notificationMessage"`
	}
	if err == nil && len(raw) > 0 {
		err = json.Unmarshal(raw, &b)
	}
	text := cmp.Or(b.Text, c.Request.Header.Get("notificationMessage"))
	if err != nil || text == "" || !noteFits(text) {
		c.Write(http.StatusBadRequest, "application/json", nil)
		return
	}
	e, ok := m.find(c, resource, reference)
	now := m.s.Clock().Now()
	switch {
	case !ok:
	case e.Status != sim.Success:
		c.Write(http.StatusConflict, "application/json", nil)
	case now.Sub(e.Settled) >= notifyFor:
		c.Write(http.StatusGone, "application/json", nil)
	case !m.notified.claim(c.product.name+" "+e.Provider+" "+sim.Plain(e.Reference), now):
		c.Write(http.StatusTooManyRequests, "application/json", nil)
	default:
		m.s.Deliver(e.Party, "MTN MoMo", text)
		c.Answer(http.StatusOK, "application/json", nil)
	}
}
