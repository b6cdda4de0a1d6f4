package pawapay

import (
	"cmp"
	"crypto/ecdsa"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/makola/makola/internal/sim"
)

// pawapay is one account with pawaPay.
type pawapay struct {
	s   *sim.Sim
	mux *http.ServeMux
	key *ecdsa.PrivateKey // key that signs callbacks

	mu       sync.Mutex
	settings Options
}

// setting returns the settings of the account.
func (p *pawapay) setting() Options {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.settings
}

// call is one request.
type call struct{ *sim.Call }

// body reads a request. ok is false if body has already answered it.
func (c *call) body(into any) (ok bool) {
	raw, err := io.ReadAll(io.LimitReader(c.Request.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		c.Write(http.StatusBadRequest, jsonType, sim.Encode(refused("", "INVALID_INPUT", "We were unable to parse the payload of the request")))
	}
	return err == nil
}

// give answers with HTTP 200, as pawaPay does for every request that it understands.
func (c *call) give(v any) { c.Answer(http.StatusOK, jsonType, sim.Encode(v)) }

// refused is the body of a rejection. idName is the name of the member with the payment's id. If it is empty,
// there is no such member.
func refused(idName, code, message string, id ...string) map[string]any {
	body := map[string]any{"status": "REJECTED", "failureReason": map[string]any{"failureCode": code, "failureMessage": message}}
	if idName != "" && len(id) == 1 {
		body[idName] = id[0]
	}
	return body
}

// refusal returns the response for the code in a fault's Answer.
func refusal(_, code string, o sim.Order) (status int, body []byte) {
	code = cmp.Or(code, "INVALID_PHONE_NUMBER")
	answer := refused("", code, "The request was rejected")
	if o.Reference != "" {
		answer[idName(o.Resource)] = o.Reference
	}
	if code == "UNKNOWN_ERROR" { // under HTTP 500 there is no status
		delete(answer, "status")
		return http.StatusInternalServerError, sim.Encode(answer)
	}
	return http.StatusOK, sim.Encode(answer)
}

// The resources. The book stores the resource of each order.
const (
	deposits = "deposits"
	payouts  = "payouts"
	refunds  = "refunds"
)

// idName is the member with the id of a payment.
func idName(resource string) string {
	switch resource {
	case deposits:
		return "depositId"
	case refunds:
		return "refundId"
	}
	return "payoutId"
}

// stamp formats a time as pawaPay does.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
