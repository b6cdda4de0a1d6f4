package api

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/makola/makola/internal/problem"
)

// resize reserves n bytes of memory for the call's body. If a body turns out to be large, its memory moves to the
// large room.
func (c *call) resize(n int64) error {
	want, of := c.api.small, c.caller.Tenant
	if n > moneyBody {
		want, n = c.api.large, bulkBody
	}
	if c.held.room == want && n <= c.held.bytes {
		want.give(of, c.held.bytes-n)
		c.held.bytes = n
		return nil
	}
	c.release()
	if err := want.take(c.ctx, of, n); err != nil {
		return err
	}
	c.held = held{want, of, n}
	return nil
}

// release returns the memory that is reserved for the body.
func (c *call) release() {
	if c.held.room != nil {
		c.held.room.give(c.held.of, c.held.bytes)
	}
	c.held = held{}
}

// readPast reads the body of a request that is refused for its size. Some clients write the whole body before they
// read. Closing the connection earlier would reset it, and such a client would lose the refusal.
func (c *call) readPast() {
	waits := c.r.Header.Get("Expect") != "" // the client waits for "100 Continue", and the first read would send it
	if c.r.ProtoMajor != 1 || c.r.ContentLength > pastBody || waits {
		return
	}
	if http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(pastTime)) == nil {
		_, _ = io.Copy(io.Discard, c.r.Body) // net/http does not read beyond the declared length
	}
}

// read reads the body once, into memory that the call uses until it ends.
func (c *call) read(limit int64) error {
	if c.r.Body == nil || c.r.ContentLength == 0 || len(c.body) > 0 {
		return nil
	}
	expected := c.r.ContentLength
	if expected < 0 {
		expected = min(limit, moneyBody)
	}
	if err := c.resize(expected); err != nil {
		return err
	}
	if n := c.r.ContentLength; n > int64(cap(c.body)) {
		c.body = make([]byte, 0, n)
	}
	in := io.LimitReader(c.r.Body, limit+1)
	for {
		if len(c.body) == cap(c.body) {
			c.body = slices.Grow(c.body, 512)
		}
		n, err := in.Read(c.body[len(c.body):cap(c.body)])
		c.body = c.body[:len(c.body)+n]
		switch size := int64(len(c.body)); {
		case size > limit:
			return tooLarge(limit)
		case errors.Is(err, io.EOF):
			return c.resize(size)
		case err != nil:
			return problem.Wrap(err, problem.Malformed, "body_incomplete", "The request body did not arrive whole")
		case size > moneyBody:
			if err := c.resize(size); err != nil {
				return err
			}
		}
	}
}

func tooLarge(limit int64) error {
	return problem.New(problem.TooLarge, "body_too_large", "The request body is larger than "+strconv.FormatInt(limit>>10, 10)+" KB")
}

// Limits of a body that readPast reads.
const (
	pastBody = 16 << 20
	pastTime = 5 * time.Second
)
