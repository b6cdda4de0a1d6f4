package api

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/guides"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
)

// status returns the HTTP status of a kind of error. No other function maps kinds to statuses.
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

// retryAfter is the Retry-After of a 409, 429 or 503 whose error has none.
const retryAfter = 2 * time.Second

// tooLate returns the error of a request that exceeded AnswerWithin. Most likely the database did not respond in
// time.
func tooLate(err error) *problem.Error {
	return problem.Wrap(err, problem.Unavailable, "outcome_unknown",
		"The service did not answer in time and does not know whether the request was recorded. Ask for its status, or send it again with the same reference.")
}

// StatusLeft is a status for metrics only. It means that the client disconnected, which ended its request. Only a
// GET ends in this way.
const StatusLeft = 499

// refuse replaces the response that was written so far by the response of an error.
func (c *call) refuse(err error) {
	e := problem.From(err)
	if e.Kind == problem.Internal && errors.Is(err, context.DeadlineExceeded) {
		e = tooLate(err)
	}
	c.status = status(e.Kind)
	if errors.Is(err, context.Canceled) && c.r.Context().Err() != nil {
		c.status = StatusLeft
	}
	c.failure, c.cause = e, err
	switch wait := e.RetryAfter; c.status {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if wait <= 0 {
			wait = retryAfter
		}
		c.header("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	message, fields := c.blamed(e)
	w := &c.out
	w.Reset()
	c.shared = nil
	w.Object("")
	w.Text("message", message)
	w.Text("code", e.Code)
	c.refusalData(e.Data)
	if c.status == http.StatusUnprocessableEntity {
		w.Object("errors")
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			w.Texts(name, fields[name])
		}
		w.End()
	}
	w.Text("request_id", c.id)
	w.Text("doc_url", guides.DocURL(c.api.PublicURL, e.Code))
	w.End()
}

// blamed returns the message and the fields of an error. It adds the field of a duplicate reference, whose name the
// domain does not know.
func (c *call) blamed(e *problem.Error) (message string, fields map[string][]string) {
	name := ""
	switch {
	case len(e.Fields) > 0 || c.route == nil:
		return e.Message, e.Fields
	case e.Kind == problem.Duplicate:
		name = c.route.Reference
	case e.Code == "idempotency_key_mismatch":
		name = idempotencyHeader
	}
	if name == "" {
		return e.Message, nil
	}
	if e.Kind == problem.Duplicate {
		const taken = "has already been taken"
		return "The " + strings.ReplaceAll(name, "_", " ") + " " + taken, map[string][]string{name: {taken}}
	}
	return e.Message, map[string][]string{name: {e.Message}}
}

// refusalData writes the data member of an error. It writes an existing payment as its own endpoint does, and other
// data unchanged. Without data it writes no member, because some clients call a method on data and would fail on
// null.
func (c *call) refusalData(data any) {
	switch d := data.(type) {
	case nil:
	case book.Payment:
		c.out.Object("data")
		c.out.existing(d)
		c.out.End()
	case messaging.Shortage:
		c.out.Object("data")
		c.out.Integer("balance", d.Balance)
		c.out.Integer("smsCost", d.Cost)
		c.out.End()
	case batch.Batch:
		c.out.Object("data")
		c.out.batch(d)
		c.out.End()
	case book.Shortfall:
		c.out.Object("data")
		c.out.Cedis("balance", d.Balance)
		c.out.Cedis("amount", d.Amount)
		c.out.Cedis("charges", d.Charges)
		c.out.End()
	default:
		text, err := json.Marshal(d)
		if err != nil || len(text) == 0 || text[0] != '{' {
			c.api.log.Error("error data is not a JSON object", "request_id", c.id, "error", err)
			return
		}
		c.out.JSON("data", text)
	}
}

// blame adds the field's name in the interface to an error of the domain with this code.
func blame(err error, field, code string) error {
	e := problem.From(err)
	if e == nil || e.Code != code || len(e.Fields) > 0 {
		return err
	}
	blamed := *e
	blamed.Fields = map[string][]string{field: {e.Message}}
	return &blamed
}

func noEndpoint() error {
	return problem.New(problem.NotFound, "endpoint_not_found", "No such endpoint")
}

// wrongMethod responds with 405. No kind of error maps to this status.
func (c *call) wrongMethod(allow string) error {
	c.header("Allow", allow)
	c.refuse(problem.New(problem.NotFound, "method_not_allowed", "This endpoint takes "+allow))
	c.status = http.StatusMethodNotAllowed
	return nil
}
