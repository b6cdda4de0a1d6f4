package moolre

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"sync"

	"github.com/makola/makola/internal/sim"
)

// moolre is one account with Moolre.
type moolre struct {
	s   *sim.Sim
	mux *http.ServeMux

	mu        sync.Mutex
	settings  Options
	confirmed map[string]bool // payers that confirmed their number
}

// maxConfirmed is the maximum number of payers that are remembered. Above it, the simulator forgets all of them.
const maxConfirmed = 100_000

// setting returns the settings of the account.
func (m *moolre) setting() Options {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings
}

// text is a member of a request. Clients may send a number for a text, and a text for a number.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var s *string
	if json.Unmarshal(b, &s) == nil {
		if s != nil {
			*t = text(*s)
		}
		return nil
	}
	var n json.Number
	err := json.Unmarshal(b, &n)
	*t = text(n)
	return err
}

// body has the members of all requests. whole is false if the body is not JSON.
type body struct {
	Type      text    `json:"type"`
	IDType    text    `json:"idtype"`
	ID        text    `json:"id"`
	Channel   text    `json:"channel"`
	Currency  text    `json:"currency"`
	Payer     text    `json:"payer"`
	Receiver  text    `json:"receiver"`
	Bank      text    `json:"sublistid"`
	Amount    text    `json:"amount"`
	Reference text    `json:"externalref"`
	OTP       text    `json:"otpcode"`
	Session   text    `json:"sessionid"`
	Text      text    `json:"reference"`
	Account   text    `json:"accountnumber"`
	Start     text    `json:"startdate"`
	End       text    `json:"enddate"`
	Limit     text    `json:"limit"`
	State     text    `json:"status"`
	Callback  *string `json:"callback"`

	whole bool
}

// read reads a request. A GET request has no body.
func read(r *http.Request) (b body) {
	if r.Method == http.MethodGet {
		return body{whole: true}
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	b.whole = err == nil && json.Unmarshal(raw, &b) == nil
	return b
}

// call is one request.
type call struct {
	*sim.Call
	body body
}

// answer is the envelope of every answer.
type answer struct {
	Status  any    `json:"status"` // 1 or 0, as number or text
	Code    string `json:"code"`
	Message any    `json:"message"`
	Data    any    `json:"data"`
	Go      any    `json:"go"`
}

// give answers with data.
func (c *call) give(code string, message, data any) {
	c.Answer(http.StatusOK, jsonType, sim.Encode(answer{1, code, message, data, nil}))
}

// refuse answers a request with a refusal, unless a fault suppresses the answer.
func (c *call) refuse(status int, code string, message, data any) {
	c.Write(status, jsonType, sim.Encode(answer{0, code, message, data, nil}))
}

// used refuses a request whose reference is missing or was used before.
func (c *call) used() {
	c.Answer(http.StatusBadRequest, jsonType, sim.Encode(answer{"0", codeUsed, "External Reference is required and must be unique.", "externalref", nil}))
}

// notFound is the answer about an unknown transaction, and about a collection that its payer has not approved yet.
var notFound = answer{0, codeNotFound, "Transaction not found", map[string]any{"txstatus": 2}, nil}

// refusal renders a code for a fault's Answer. Most refusals come with HTTP 200.
func refusal(_, code string, _ sim.Order) (status int, body []byte) {
	code = cmp.Or(code, codeNotPaid)
	if code == codeNotFound {
		return http.StatusOK, sim.Encode(notFound)
	}
	return http.StatusOK, sim.Encode(answer{"0", code, []string{"The request was refused", "Contact support"}, "all", nil})
}
