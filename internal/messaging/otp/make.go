package otp

import (
	"context"
	"errors"
	"strings"
)

// errNoSecret is returned if a code is requested from Codes without a secret, which is a bug.
var errNoSecret = errors.New("otp: one-time passwords need the installation's secret")

// Make returns a code with length digits for the request, number and times in code. It stores nothing; Batch.DeferAll
// does.
func (c *Codes) Make(code Code, length int) (*Code, error) {
	if len(c.keys) == 0 {
		return nil, errNoSecret
	}
	active := c.keys[0]
	code.length, code.Prefix, code.hash = length, letters(), active.hashed(code.ID, active.of(code.ID, length))
	return &code, nil
}

// Text returns a message with the code in its place. known is false if the code's row was deleted or its key is no
// longer in the ring.
func (c *Codes) Text(template string, code *Code) (text string, known bool) {
	for _, k := range c.keys {
		if digits := k.of(code.ID, code.length); code.hash != "" && k.hashed(code.ID, digits) == code.hash {
			return strings.ReplaceAll(template, Placeholder, digits), true
		}
	}
	return "", false
}

// CountSent counts a code that was accepted.
func (c *Codes) CountSent(code *Code) { c.metrics.sent.WithLabelValues(networkOf(code.Number)).Inc() }

const selectPrefix = `SELECT prefix FROM otps WHERE tenant = $1 AND id = $2`

// Prefix returns the prefix of an earlier request.
func (c *Codes) Prefix(ctx context.Context, tenant, id string) (prefix string, err error) {
	_, err = c.db.ReadOne(ctx, selectPrefix, []any{tenant, id}, &prefix)
	return prefix, err
}
