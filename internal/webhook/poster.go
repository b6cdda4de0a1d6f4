package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Poster sends single requests to a host that the operator chose, by the rules of webhooks: HTTPS to public addresses, no redirects,
// a part of the response alone.
type Poster struct {
	client      *client
	development bool
}

// NewPoster makes a Poster. Of the options Development, Timeout, RootCAs and Proxy count.
func NewPoster(o Options) *Poster {
	o.Timeout = cmp.Or(o.Timeout, postWithin)
	return &Poster{newClient(o), o.Development}
}

const postWithin = 15 * time.Second

// Post makes one attempt. It returns nil after a 2xx response. key signs the body by the Standard Webhooks scheme; nil: the request has
// no signature.
func (p *Poster) Post(ctx context.Context, id, url string, body, key []byte) error {
	var keys [][]byte
	if key != nil {
		keys = [][]byte{key}
	}
	a := p.client.send(ctx, &event{id: id, url: url, body: body}, keys, p.development, time.Now())
	switch {
	case a.ok():
		return nil
	case a.err != nil && ctx.Err() != nil:
		return fmt.Errorf("%s: %w", a.why, ctx.Err())
	}
	return errors.New(a.text())
}
