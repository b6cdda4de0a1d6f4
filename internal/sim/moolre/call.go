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

// maxConfirmed is the maximum number of payers that are remembered. Beyond it all are forgotten.
const maxConfirmed = 100_000

// setting returns the settings of the account.
func (m *moolre) setting() Options {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings
}

// body has the members of all requests. whole is false if it is no JSON.
type body struct {
	Type      json.Number `json:"type"`
	IDType    string      `json:"idtype"`
	ID        string      `json:"id"`
	Channel   string      `json:"channel"`
	Currency  string      `json:"currency"`
	Payer     string      `json:"payer"`
	Receiver  string      `json:"receiver"`
	Bank      string      `json:"sublistid"`
	Amount    any         `json:"amount"`
	Reference string      `json:"externalref"`
	OTP       string      `json:"otpcode"`
	Session   string      `json:"sessionid"`
	Text      string      `json:"reference"`
	Account   string      `json:"accountnumber"`
	Start     string      `json:"startdate"`
	End       string      `json:"enddate"`
	Limit     any         `json:"limit"`
	State     any         `json:"status"`
	Callback  *string     `json:"callback"`
	Title     string      `json:"accountname"`

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

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain values only
	}
	return b
}

// give answers with data.
func (c *call) give(code string, message, data any) {
	c.Answer(http.StatusOK, jsonType, encode(answer{1, code, message, data, nil}))
}

// refuse answers a request that no fault takes away.
func (c *call) refuse(status int, code string, message, data any) {
	c.Write(status, jsonType, encode(answer{0, code, message, data, nil}))
}

// used refuses a request whose reference is missing or was used before.
func (c *call) used() {
	c.Answer(http.StatusBadRequest, jsonType, encode(answer{"0", codeUsed, "External Reference is required and must be unique.", "externalref", nil}))
}

// notFound is the answer about an unknown transaction, and about a collection that its payer has not approved yet.
var notFound = answer{0, codeNotFound, "Transaction not found", map[string]any{"txstatus": 2}, nil}

// refusal renders a code for a fault's Answer. Most refusals come with HTTP 200.
func refusal(_, code string, _ sim.Order) (status int, body []byte) {
	code = cmp.Or(code, codeNotPaid)
	if code == codeNotFound {
		return http.StatusOK, encode(notFound)
	}
	return http.StatusOK, encode(answer{"0", code, []string{"The request was refused", "Contact support"}, "all", nil})
}
