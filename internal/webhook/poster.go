package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Poster sends single requests to a host that the operator configured. The rules of webhooks apply: HTTPS to public
// addresses, no redirects, and only a part of the response is read.
type Poster struct {
	client      *client
	development bool
}

// NewPoster returns a Poster. It uses only the options Development, Timeout, RootCAs and Proxy.
func NewPoster(o Options) *Poster {
	o.Timeout = cmp.Or(o.Timeout, postWithin)
	return &Poster{newClient(o), o.Development}
}

const postWithin = 15 * time.Second

// Post makes one attempt. It returns nil after a 2xx response. key signs the body by the Standard Webhooks scheme. If
// it is nil, the request has no signature.
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
