package api

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/problem"
)

// status is the one place where a kind of refusal becomes an HTTP status.
func status(k problem.Kind) int {
	switch k {
	case problem.Malformed, problem.InsufficientFunds, problem.Refused:
		return http.StatusBadRequest
	case problem.Unauthenticated:
		return http.StatusUnauthorized
	case problem.InsufficientCredits:
		return http.StatusPaymentRequired
	case problem.Forbidden:
		return http.StatusForbidden
	case problem.NotFound:
		return http.StatusNotFound
	case problem.InProgress:
		return http.StatusConflict
	case problem.Gone:
		return http.StatusGone
	case problem.TooLarge:
		return http.StatusRequestEntityTooLarge
	case problem.Invalid, problem.Duplicate:
		return http.StatusUnprocessableEntity
	case problem.RateLimited:
		return http.StatusTooManyRequests
	case problem.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// retryAfter is what a 409, 429 or 503 says when the domain did not.
const retryAfter = 2 * time.Second

// refuse replaces whatever the call has written by the answer of an error.
func (c *call) refuse(err error) {
	e := problem.From(err)
	c.status = status(e.Kind)
	c.failure, c.cause = e, err
	switch wait := e.RetryAfter; c.status {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if wait <= 0 {
			wait = retryAfter
		}
		c.header("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	w := &c.out
	w.buf, w.stack = w.buf[:0], w.stack[:0]
	w.object("")
	w.text("message", e.Message)
	w.text("code", e.Code)
	c.refusalData(e.Data)
	if len(e.Fields) > 0 {
		w.object("errors")
		for _, name := range e.FieldNames() {
			w.next("")
			w.buf = append(appendText(w.buf, name), ':', '[')
			for i, text := range e.Fields[name] {
				if i > 0 {
					w.buf = append(w.buf, ',')
				}
				w.buf = appendText(w.buf, text)
			}
			w.buf = append(w.buf, ']')
		}
		w.end()
	}
	w.text("request_id", c.id)
	w.end()
}

// refusalData writes the data member of a refusal: an existing payment as its
// endpoint shows it, anything else as it is, else null.
func (c *call) refusalData(data any) {
	switch d := data.(type) {
	case nil:
		c.out.null("data")
	case payments.Payment:
		c.out.object("data")
		c.out.existing(d)
		c.out.end()
	case payments.Shortfall:
		c.out.object("data")
		c.out.cedis("balance", d.Balance)
		c.out.cedis("amount", d.Amount)
		c.out.cedis("charges", d.Charges)
		c.out.end()
	default:
		text, err := json.Marshal(d)
		if err != nil || len(text) == 0 || text[0] != '{' {
			c.api.log.Error("the data of a refusal is no object", "request_id", c.id, "error", err)
			c.out.null("data")
			return
		}
		c.out.json("data", text)
	}
}
