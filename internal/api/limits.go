package api

import (
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/tenant"
)

// limits says what bounds the account and the key that asks, and how much of each bound is left.
func limits(c *call) error {
	w := c.success("Limits fetched successfully")
	w.object("data")
	w.text("mode", string(c.tenant.Mode))
	w.text("currency", currency)
	c.writeSwitches(w)
	for _, write := range []func(*writer) error{c.writeTransferLimits, c.writeAddresses, c.writeRates, c.writeQuotas} {
		if err := write(w); err != nil {
			return err
		}
	}
	w.end()
	w.end()
	return nil
}

// writeSwitches writes what an operator has switched on and off.
func (c *call) writeSwitches(w *writer) {
	w.flag("collections", c.tenant.CollectionsEnabled)
	w.flag("payouts", !c.tenant.PayoutsStopped)
	w.text("duplicates", string(c.tenant.Duplicates))
}

// writeTransferLimits writes the most that one transfer may move, and what the key may still spend today.
func (c *call) writeTransferLimits(w *writer) error {
	w.object("transfers")
	w.cedis("mobile_money", c.tenant.PayoutLimitWallet)
	w.cedis("bank", c.tenant.PayoutLimitBank)
	w.end()
	if c.caller.Daily == 0 {
		w.null("key_spending")
		return nil
	}
	spent, err := c.api.Payments.SpentToday(c.ctx, c.tenant.ID, c.caller.KeyID)
	if err != nil {
		return err
	}
	now := c.api.Clock.Now()
	w.object("key_spending")
	w.cedis("limit", c.caller.Daily)
	w.cedis("remaining", max(c.caller.Daily-spent, 0))
	w.integer("reset_seconds", wholeSeconds(now.Truncate(24*time.Hour).Add(24*time.Hour).Sub(now)))
	w.end()
	return nil
}

// writeAddresses writes from where payouts, or whatever spends, may be asked for. No address means none.
func (c *call) writeAddresses(w *writer) error {
	list, err := c.api.Access.PayoutIPs(c.ctx, c.tenant.ID)
	if err != nil {
		return err
	}
	w.object("addresses")
	w.text("needed_for", string(c.tenant.Listed))
	w.list("allowed")
	for _, prefix := range list {
		w.text("", prefix.String())
	}
	w.end()
	w.end()
	return nil
}

// writeRates writes the limits of requests, the general one first.
func (c *call) writeRates(w *writer) error {
	w.list("rates")
	if general := c.api.general; general.Max > 0 {
		if err := c.writeRate(w, general, []string{"*"}); err != nil {
			return err
		}
	}
	for _, rated := range ratedRoutes() {
		if err := c.writeRate(w, rated.limit, rated.paths); err != nil {
			return err
		}
	}
	w.end()
	return nil
}

// ratedPaths are the endpoints that share one limit.
type ratedPaths struct {
	limit access.Limit
	paths []string
}

func ratedRoutes() (all []ratedPaths) {
	at := map[string]int{}
	for _, r := range Routes() {
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

// writeRate writes one limit: of the account, and where a key has a smaller part, that part.
func (c *call) writeRate(w *writer, l access.Limit, paths []string) error {
	left, err := c.api.Access.Left(c.ctx, c.tenant.ID, l)
	if err != nil {
		return err
	}
	ofKey, err := c.api.Access.Left(c.ctx, c.tenant.ID, l.ForKey(c.caller.KeyID))
	if err != nil {
		return err
	}
	w.object("")
	w.text("name", l.Name)
	w.list("endpoints")
	for _, path := range paths {
		w.text("", path)
	}
	w.end()
	w.integer("limit", left.Max)
	if ofKey.Max > 0 {
		w.integer("key_limit", ofKey.Max)
		left.Remaining = min(left.Remaining, ofKey.Remaining)
	}
	w.integer("remaining", left.Remaining)
	w.integer("window_seconds", wholeSeconds(left.Window))
	w.integer("reset_seconds", wholeSeconds(left.ResetAfter))
	w.end()
	return nil
}

// writeQuotas writes how much the account may store; null stands for no bound.
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
	w.object("quotas")
	for _, quota := range []struct {
		name   string
		stored tenant.Stored
	}{{"contacts", contacts}, {"groups", groups}, {"sender_ids", senders}, {"campaigns_under_way", campaigns}} {
		w.object(quota.name)
		if quota.stored.Most == 0 {
			w.null("limit")
		} else {
			w.integer("limit", quota.stored.Most)
		}
		w.integer("used", quota.stored.Used)
		w.end()
	}
	w.end()
	return nil
}

// wholeSeconds rounds up: who waits so long has waited enough.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
