package api

import (
	"time"

	"github.com/makola/makola/internal/ratelimit"
	"github.com/makola/makola/internal/tenant"
)

// limits returns the limits of the account and of the calling key, and the remaining amount of each.
func limits(c *call) error {
	w := c.success("Limits fetched successfully")
	w.Object("data")
	w.Text("mode", string(c.tenant.Mode))
	w.Text("currency", currency)
	c.writeSwitches(w)
	for _, write := range []func(*writer) error{c.writeTransferLimits, c.writeAddresses, c.writeRates, c.writeQuotas} {
		if err := write(w); err != nil {
			return err
		}
	}
	w.End()
	w.End()
	return nil
}

// writeSwitches writes the permissions of the account that an operator controls.
func (c *call) writeSwitches(w *writer) {
	w.Flag("collections", c.tenant.CollectionsEnabled)
	w.Flag("payouts", !c.tenant.PayoutsStopped)
	w.Text("duplicates", string(c.tenant.Duplicates))
}

// writeTransferLimits writes the limits of one transfer, and the remainder of the key's daily limit.
func (c *call) writeTransferLimits(w *writer) error {
	w.Object("transfers")
	w.Cedis("mobile_money", c.tenant.PayoutLimitWallet)
	w.Cedis("bank", c.tenant.PayoutLimitBank)
	w.End()
	if c.caller.Daily == 0 {
		w.Null("key_spending")
		return nil
	}
	spent, err := c.api.Payments.SpentToday(c.ctx, c.tenant.ID, c.caller.KeyID)
	if err != nil {
		return err
	}
	now := c.api.Clock.Now()
	w.Object("key_spending")
	w.Cedis("limit", c.caller.Daily)
	w.Cedis("remaining", max(c.caller.Daily-spent, 0))
	w.Integer("reset_seconds", wholeSeconds(now.Truncate(24*time.Hour).Add(24*time.Hour).Sub(now)))
	w.End()
	return nil
}

// writeAddresses writes the addresses from which the account may request payouts, or all spending. An empty list
// means that no address is allowed.
func (c *call) writeAddresses(w *writer) error {
	list, err := c.api.Access.PayoutIPs(c.ctx, c.tenant.ID)
	if err != nil {
		return err
	}
	w.Object("addresses")
	w.Text("needed_for", string(c.tenant.Listed))
	w.List("allowed")
	for _, prefix := range list {
		w.Text("", prefix.String())
	}
	w.End()
	w.End()
	return nil
}

// writeRates writes the rate limits, the general one first.
func (c *call) writeRates(w *writer) error {
	w.List("rates")
	if general := c.api.general; general.Max > 0 {
		if err := c.writeRate(w, general, []string{"*"}); err != nil {
			return err
		}
	}
	for _, rated := range limitsOf(c.api.routes) {
		if err := c.writeRate(w, rated.limit, rated.paths); err != nil {
			return err
		}
	}
	w.End()
	return nil
}

// ratedPaths is a limit and the endpoints that share it.
type ratedPaths struct {
	limit ratelimit.Limit
	paths []string
}

// limitsOf returns the limits of routes, each with its paths.
func limitsOf(routes []*Route) (all []ratedPaths) {
	at := map[string]int{}
	for _, r := range routes {
		if r.Limit.Max == 0 {
			continue
		}
		i, known := at[r.Limit.Name]
		if !known {
			i = len(all)
			at[r.Limit.Name], all = i, append(all, ratedPaths{limit: r.Limit})
		}
		all[i].paths = append(all[i].paths, r.Path)
	}
	return all
}

// writeRate writes one limit of the account. If a single key has a lower limit, it also writes that limit.
func (c *call) writeRate(w *writer, l ratelimit.Limit, paths []string) error {
	left, err := c.api.Limits.Left(c.ctx, c.tenant.ID, l)
	if err != nil {
		return err
	}
	ofKey, err := c.api.Limits.Left(c.ctx, c.tenant.ID, l.ForKey(c.caller.KeyID))
	if err != nil {
		return err
	}
	w.Object("")
	w.Text("name", l.Name)
	w.List("endpoints")
	for _, path := range paths {
		w.Text("", path)
	}
	w.End()
	w.Integer("limit", left.Max)
	if ofKey.Max > 0 {
		w.Integer("key_limit", ofKey.Max)
		left.Remaining = min(left.Remaining, ofKey.Remaining)
	}
	w.Integer("remaining", left.Remaining)
	w.Integer("window_seconds", wholeSeconds(left.Window))
	w.Integer("reset_seconds", wholeSeconds(left.ResetAfter))
	w.End()
	return nil
}

// writeQuotas writes the storage limits of the account; null means unlimited.
func (c *call) writeQuotas(w *writer) error {
	contacts, groups, err := c.api.Contacts.Stored(c.ctx, c.tenant.ID)
	if err != nil {
		return err
	}
	senders, err := c.api.Senders.Stored(c.ctx, c.tenant.ID)
	if err != nil {
		return err
	}
	campaigns, err := c.api.Messaging.UnderWay(c.ctx, c.tenant)
	if err != nil {
		return err
	}
	w.Object("quotas")
	for _, quota := range []struct {
		name   string
		stored tenant.Stored
	}{{"contacts", contacts}, {"groups", groups}, {"sender_ids", senders}, {"campaigns_under_way", campaigns}} {
		w.Object(quota.name)
		if quota.stored.Most == 0 {
			w.Null("limit")
		} else {
			w.Integer("limit", quota.stored.Most)
		}
		w.Integer("used", quota.stored.Used)
		w.End()
	}
	w.End()
	return nil
}
