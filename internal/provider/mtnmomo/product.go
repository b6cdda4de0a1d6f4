package mtnmomo

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/provider"
)

// mtnProduct is one of MTN's products, with its credentials and its token.
type mtnProduct struct {
	adapter      *Adapter
	clock        *clock.Clock
	name         string // "collection"
	url          string // base URL including the product
	path         string // the resource of its own movements: "requesttopay"
	basic        string // Authorization header of the token call
	subscription string

	mu     sync.Mutex
	token  string
	renew  time.Duration // time of the token's replacement, by Elapsed
	flight *flight       // the token call in progress, or nil
}

// flight is a token call that several requests wait for.
type flight struct {
	done    chan struct{}
	token   string
	outcome *provider.Outcome // reason why there is no token
}

// create submits a movement of a resource and returns its outcome.
func (p *mtnProduct) create(ctx context.Context, resource, reference, callback string, m movement) provider.Outcome {
	body, err := json.Marshal(m)
	if err != nil {
		return refusedHere("the request cannot be written: " + err.Error())
	}
	h := http.Header{"Content-Type": {"application/json"}, "X-Reference-Id": {reference}}
	if callback != "" { // MTN refuses a header that is present but empty
		h["X-Callback-Url"] = []string{callback}
	}
	ans, early := p.do(ctx, provider.Request{
		Method: http.MethodPost, URL: p.url + "/v1_0/" + resource, Header: h, Body: body, Operation: resource, Reference: reference,
	})
	if early != nil {
		return *early
	}
	return submitted(p.name, ans)
}

// query queries the status of a movement of a resource by our reference.
func (p *mtnProduct) query(ctx context.Context, resource, reference string) provider.Outcome {
	ans, early := p.do(ctx, provider.Request{
		Method: http.MethodGet, URL: p.url + "/v1_0/" + resource + "/" + reference, Operation: resource + "_status", Reference: reference,
		Timeout: 10 * time.Second,
	})
	if early != nil {
		return provider.Outcome{Class: provider.Unknown, Reason: early.Reason, Code: early.Code, Message: early.Message, RetryAfter: early.RetryAfter}
	}
	return p.answered(ans)
}

// do makes a call with a token. MTN answers 401 when it no longer accepts the token. A query is then repeated once
// with a new token. A POST is not repeated here, because the caller counts submissions. The next POST gets a new
// token. If there was no token, the request was not made, and early has the outcome.
func (p *mtnProduct) do(ctx context.Context, r provider.Request) (ans provider.Answer, early *provider.Outcome) {
	refused := ""
	for {
		token, o := p.bearer(ctx, refused)
		if o != nil {
			return provider.Answer{}, o
		}
		h := http.Header{
			"Authorization":             {"Bearer " + token},
			"X-Target-Environment":      {p.adapter.config.Environment},
			"Ocp-Apim-Subscription-Key": {p.subscription},
		}
		for k, v := range r.Header {
			h[k] = v
		}
		try := r
		try.Header = h
		ans = p.adapter.client.Do(ctx, try)
		if ans.Status != http.StatusUnauthorized || refused != "" {
			return ans, nil
		}
		refused = token
		if r.Method == http.MethodPost {
			p.drop(token)
			return ans, nil
		}
	}
}

// drop deletes a token that MTN no longer accepts.
func (p *mtnProduct) drop(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.token == token {
		p.token = ""
	}
}

// bearer returns a token other than the refused one. Concurrent callers share one token call, which continues when
// one of them gives up.
func (p *mtnProduct) bearer(ctx context.Context, refused string) (string, *provider.Outcome) {
	p.mu.Lock()
	if p.token != "" && p.token != refused && p.clock.Elapsed() < p.renew {
		token := p.token
		p.mu.Unlock()
		return token, nil
	}
	f := p.flight
	if f == nil {
		f = &flight{done: make(chan struct{})}
		p.flight = f
		go p.fetch(context.WithoutCancel(ctx), f)
	}
	p.mu.Unlock()
	select {
	case <-f.done:
		if f.outcome != nil {
			o := *f.outcome
			return "", &o
		}
		return f.token, nil
	case <-ctx.Done():
		return "", &provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Message: "no token in time"}
	}
}

// fetch makes the token call and ends the wait of its callers.
func (p *mtnProduct) fetch(ctx context.Context, f *flight) {
	ans := p.adapter.client.Do(ctx, provider.Request{
		Method: http.MethodPost, URL: p.url + "/token/", Operation: "token", Timeout: 10 * time.Second,
		Header: http.Header{"Authorization": {p.basic}, "Ocp-Apim-Subscription-Key": {p.subscription}},
	})
	var t struct {
		Token string      `json:"access_token"`
		Life  json.Number `json:"expires_in"`
	}
	now := p.clock.Elapsed()
	err := json.Unmarshal(ans.Body, &t)
	p.mu.Lock()
	defer p.mu.Unlock()
	if ans.Err == nil && ans.Status == http.StatusOK && err == nil && t.Token != "" {
		f.token = t.Token
		p.token, p.renew = t.Token, now+useFor(t.Life)
	} else {
		o := noToken(ans)
		f.outcome = &o
	}
	p.flight = nil
	close(f.done)
}

// noToken returns the outcome of a request without a token. No byte of the request itself was written, even if the
// token call was.
func noToken(ans provider.Answer) provider.Outcome {
	o, _ := provider.StatusUnanswered(ans)
	if o.Message == "" {
		o.Message = "MTN gave no token"
	}
	o.Class, o.Reason = provider.NotSent, provider.ReasonUnavailable
	return o
}

// useFor returns how long a token is used: a minute less than its lifetime, or nine tenths of a short lifetime.
func useFor(life json.Number) time.Duration {
	s, err := life.Int64()
	if err != nil || s <= 0 || s > 24*3600 {
		s = 300
	}
	d := time.Duration(s) * time.Second
	return max(d-time.Minute, d*9/10)
}
