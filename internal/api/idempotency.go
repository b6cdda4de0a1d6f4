package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/trace"
)

const idempotencyHeader = "Idempotency-Key"

// asker returns the caller for the domain. For a request with an Idempotency-Key, the caller includes a hash of the
// request. With the hash the domain checks whether a later request with the same key is the same request.
func (c *call) asker(f *form) idempotency.Caller {
	who := idempotency.Caller{Tenant: c.caller.Tenant, Key: c.caller.KeyID, Trace: trace.From(c.ctx), Daily: c.caller.Daily}
	key, one := c.once(idempotencyHeader)
	switch {
	case !one:
		f.bad(idempotencyHeader, "is given more than once")
	case key == "":
		return who
	}
	if len(key) > textMax {
		f.bad(idempotencyHeader, "must be at most 255 characters")
	}
	for i := range len(key) {
		if key[i] < 0x21 || key[i] > 0x7e {
			f.bad(idempotencyHeader, "must consist of visible ASCII characters")
			break
		}
	}
	h := sha256.New()
	h.Write([]byte(c.route.Path + "\n"))
	for _, param := range c.params {
		h.Write([]byte(param + "\n"))
	}
	if c.r.Method == http.MethodGet {
		h.Write([]byte(c.r.URL.RawQuery))
	} else {
		h.Write(c.body)
	}
	who.IdempotencyKey, who.BodyHash = key, hex.EncodeToString(h.Sum(nil)[:16])
	return who
}

// replayed sets a header if the response repeats the result of an earlier request.
func (c *call) replayed(yes bool) {
	if yes {
		c.header("Idempotent-Replayed", "true")
	}
}
