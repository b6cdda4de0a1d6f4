package paystack

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/sim"
)

// paystack is one business at Paystack.
type paystack struct {
	s   *sim.Sim
	mux *http.ServeMux

	mu         sync.Mutex
	otp        bool
	eventURL   string
	recipients map[string]recipient // by code
	vouched    map[string]bool      // charges whose voucher was given, by reference
	refunds    map[string][]string  // references of refunds, by that of the charge; nil: not read from the book
	made       int                  // references invented
}

// maxRecipients is the maximum number of stored recipients. Beyond it, any one is dropped.
const maxRecipients = 100_000

// call is one request.
type call struct{ *sim.Call }

// body reads a request; ok is false when it was answered.
func (c *call) body(into any) (ok bool) {
	raw, err := io.ReadAll(io.LimitReader(c.Request.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		c.refuse(http.StatusBadRequest, "The body is no JSON", "validation_error", "invalid_params")
	}
	return err == nil
}

// give answers with data.
func (c *call) give(status int, message string, data any) {
	c.Answer(status, "application/json", sim.Encode(answer{Status: true, Message: message, Data: data}))
}

// refuse answers a request with a refusal, unless a fault suppresses the response. Paystack's older refusals
// have neither type nor code.
func (c *call) refuse(status int, message, kind, code string) {
	c.Write(status, "application/json", sim.Encode(refused(message, kind, code)))
}

// setting returns whether transfers wait for an OTP, and where events go.
func (p *paystack) setting() (otp bool, eventURL string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.otp, p.eventURL
}

// set changes the dashboard settings of a business. A nil member stays unchanged.
func (p *paystack) set(otp *bool, eventURL *string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if otp != nil {
		p.otp = *otp
	}
	if eventURL != nil {
		p.eventURL = *eventURL
	}
}

func (p *paystack) recipient(code string) (recipient, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, known := p.recipients[code]
	return r, known
}

// keep stores a recipient. The same account always gets the same code.
func (p *paystack) keep(r recipient) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.recipients) >= maxRecipients {
		for code := range p.recipients {
			delete(p.recipients, code)
			break
		}
	}
	p.recipients[r.code] = r
}

// amountOf reads a whole number of pesewas, as number or text.
func amountOf(raw json.RawMessage) (money.Pesewas, bool) {
	n, err := strconv.ParseInt(strings.Trim(string(raw), `"`), 10, 64)
	return money.Pesewas(n), err == nil && n > 0
}

// referenceFits reports whether a text may be the reference of a transfer.
func referenceFits(s string) bool {
	return len(s) >= 16 && len(s) <= 50 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// digits reports whether a text is a number of from to to digits.
func digits(s string, from, to int) bool {
	return len(s) >= from && len(s) <= to && strings.Trim(s, "0123456789") == ""
}

// positive reads a positive number of at most 1000.
func positive(s string, otherwise int) int {
	if n, err := strconv.Atoi(s); err == nil && n > 0 && n <= 1000 {
		return n
	}
	return otherwise
}

// invented returns a reference for an order that has none.
func (p *paystack) invented() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	return fmt.Sprintf("sim-%d-%d", p.s.Clock().Now().UnixNano(), p.made)
}
