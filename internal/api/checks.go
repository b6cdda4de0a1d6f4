package api

import (
	"context"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/ratelimit"
	"github.com/makola/makola/internal/tenant"
)

// recovering refuses requests of customers during the closed part of a recovery. During this time operators
// repeat the changes that the restore lost.
func (c *call) recovering() error {
	s, err := c.api.Recovery.State(c.ctx)
	if err != nil || !s.Closed() {
		return err
	}
	e := problem.New(problem.Unavailable, "recovering", "The service is being recovered. Nothing was sent; try again shortly, with the same reference.")
	e.RetryAfter = recoveringPause
	return e
}

// recoveringPause is the Retry-After of requests that a recovery refuses.
const recoveringPause = 30 * time.Second

// rated counts the request against the endpoint's limit and the general one.
func (c *call) rated() error {
	if c.api.general.Max > 0 && !c.route.Open {
		if err := c.counted(); err != nil {
			return err
		}
	}
	if l := c.route.Limit; l.Max > 0 {
		return c.take(c.ctx, windowName(l.Window), l.ForKey(c.caller.KeyID), l)
	}
	return nil
}

// countTime is the maximum time for counting a request that only reads.
const countTime = 500 * time.Millisecond

// counted counts the request against the general limit. If the database accepts no writes, requests that only read
// continue without being counted.
func (c *call) counted() error {
	if c.r.Method != http.MethodGet || c.route.Spends || c.route.Stores {
		return c.take(c.ctx, "general", c.api.general)
	}
	ctx, cancel := context.WithTimeout(c.ctx, countTime)
	defer cancel()
	if err := c.take(ctx, "general", c.api.general); problem.Is(err, problem.RateLimited) || c.ctx.Err() != nil {
		return err
	}
	return nil
}

func windowName(window time.Duration) string {
	switch window {
	case time.Hour:
		return "hourly"
	case time.Minute:
		return "minutely"
	}
	return window.String()
}

// take counts one request against the limits in turn, and stops at the first that refuses it. The response's headers
// show the limit with the fewest remaining requests.
func (c *call) take(ctx context.Context, name string, limits ...ratelimit.Limit) error {
	d := ratelimit.Decision{Allowed: true}
	for _, l := range limits {
		if l.Max <= 0 || !d.Allowed {
			continue
		}
		one, err := c.api.Limits.Take(ctx, c.caller.Tenant, l)
		if err != nil {
			return err
		}
		if d.Max == 0 || !one.Allowed || one.Remaining < d.Remaining {
			d = one
		}
	}
	seconds := func(d time.Duration) string { return strconv.FormatInt(wholeSeconds(d), 10) }
	most, left := strconv.FormatInt(d.Max, 10), strconv.FormatInt(d.Remaining, 10)
	c.header("RateLimit-Policy", `"`+name+`";q=`+most+`;w=`+seconds(d.Window))
	c.header("RateLimit", `"`+name+`";r=`+left+`;t=`+seconds(d.ResetAfter))
	c.header("X-RateLimit-Limit", most)
	c.header("X-RateLimit-Remaining", left)
	if d.Allowed {
		return nil
	}
	e := problem.New(problem.RateLimited, "rate_limited", "Too many requests. At most "+most+" are allowed in "+seconds(d.Window)+" seconds")
	e.RetryAfter = max(d.ResetAfter, time.Second)
	return e
}

// permitted checks whether this tenant, this key and this address may call the endpoint.
func (c *call) permitted() error {
	var err error
	if c.tenant, err = c.api.Tenants.Get(c.ctx, c.caller.Tenant); err != nil {
		return err
	}
	if c.tenant.Blocked && !c.route.Open {
		return tenant.Blocked()
	}
	if !c.caller.Can(c.route.Scope) {
		return problem.New(problem.Forbidden, "scope_missing", "This API key does not have the scope "+string(c.route.Scope))
	}
	if c.route.Listed || c.route.Spends && c.tenant.Listed == tenant.ListedSpending {
		from := c.address()
		ok, err := c.api.Access.PayoutIPAllowed(c.ctx, c.caller.Tenant, from)
		if err != nil {
			return err
		}
		if !ok {
			return notListed(from)
		}
	}
	if c.route.Collects && !c.tenant.CollectionsEnabled {
		return tenant.NoCollections()
	}
	if c.route.Stores && c.api.Short != nil && c.api.Short() {
		e := problem.New(problem.Unavailable, "storage_low", "This cannot be stored at the moment. Try again later")
		e.RetryAfter = time.Minute
		return e
	}
	return nil
}

func notListed(from netip.Addr) error {
	seen := "unknown"
	if from.IsValid() {
		seen = from.String()
	}
	return problem.New(problem.Forbidden, "ip_not_whitelisted", "Access denied. Your IP address("+seen+") is not whitelisted.")
}

// wholeSeconds rounds d up to whole seconds, so that a client that waits this long has waited at least d.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
