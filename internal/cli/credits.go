package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/smstext"
)

type creditsCommands struct {
	Sell   creditsSell   `cmd:"" help:"Give a customer SMS credits that it paid for outside of Makola."`
	Refund creditsRefund `cmd:"" help:"Take SMS credits back that were sold by mistake or returned."`
	Report creditsReport `cmd:"" help:"Credits, segments and encodings side by side, with cost, margin and deliveries."`
}

type creditsSell struct {
	common
	orderFlags
	writing
	Tenant  string `arg:"" help:"Id or unique name of the customer."`
	Credits int64  `arg:"" help:"How many."`
	Price   amount `name:"price" required:"" placeholder:"CEDIS" help:"What the customer paid, for the audit log; 0 for a gift."`
}

// Run sells credits.
func (c *creditsSell) Run(e *env) error {
	return c.sell(e, c.orderFlags, c.Tenant, c.Credits, 1, c.Price.or(0))
}

type creditsRefund struct {
	common
	orderFlags
	writing
	Tenant  string `arg:"" help:"Id or unique name of the customer."`
	Credits int64  `arg:"" help:"How many."`
	Price   amount `name:"price" required:"" placeholder:"CEDIS" help:"What the customer got back, for the audit log."`
}

// Run takes credits back.
func (c *creditsRefund) Run(e *env) error {
	return c.sell(e, c.orderFlags, c.Tenant, c.Credits, -1, c.Price.or(0))
}

// sell orders credits, or with the sign -1 takes them back, and notes their price.
func (c *common) sell(e *env, flags orderFlags, tenantID string, credits, sign int64, price money.Pesewas) error {
	if credits <= 0 {
		return problem.Field("credits", "must be above zero")
	}
	return c.withMessaging(e, func(o *opened, m *messaging.Messaging) error {
		t, err := o.tenant(e.ctx, tenantID)
		if err != nil {
			return err
		}
		key := t.SMSCredits()
		kind, request := changes.KindSellCredits, (*changes.Changes).SellCredits
		sentence := fmt.Sprintf("Give %s %s for %s", called(t), worth(key.Asset, credits), worth(ledger.GHS, int64(price)))
		if sign < 0 {
			kind, request = changes.KindRefundCredits, (*changes.Changes).RefundCredits
			sentence = fmt.Sprintf("Take %s from %s for %s", worth(key.Asset, credits), called(t), worth(ledger.GHS, int64(price)))
		}
		w, err := o.order(e, order{orderFlags: flags, kind: kind, tenant: t.ID, sentence: sentence, sides: []side{{"SMS credits of " + t.Name, key, sign * credits}}})
		if err != nil {
			return err
		}
		a := o.changes(config.Secret{})
		a.Messaging = m
		return w.do(e, c.Output, a, func(context.Context) error { return printWallet(e, o, c.Output, t.ID) }, func(id, reference string) (changes.Request, error) {
			return request(a, e.ctx, o.by, id, reference, t.ID, credits, price, flags.Reason)
		})
	})
}

type creditsReport struct {
	common
	Tenant  string          `name:"tenant" placeholder:"ID" help:"One customer; without it all."`
	Mode    string          `name:"mode" enum:"live,test" default:"live" help:"live or test."`
	From    day             `name:"from" placeholder:"DATE" help:"First day, in UTC; by default the first of this month."`
	To      day             `name:"to" placeholder:"DATE" help:"Last day, in UTC; by default today."`
	Credit  rate            `name:"credit" placeholder:"PESEWAS" help:"What a credit is sold for, such as 3.5 pesewas."`
	Segment rate            `name:"segment" placeholder:"PESEWAS" help:"What an operator takes for a segment, such as 2.25 pesewas."`
	Network map[string]rate `name:"network" placeholder:"NETWORK=PESEWAS" help:"What a segment to one network costs. May be repeated."`
}

func useColumns() []column[messaging.UseLine] {
	return []column[messaging.UseLine]{
		{"network", func(l messaging.UseLine) any { return l.Network }},
		{"encoding", func(l messaging.UseLine) any { return string(l.Encoding) }},
		{"messages", func(l messaging.UseLine) any { return l.Messages }},
		{"accepted", func(l messaging.UseLine) any { return l.Accepted }},
		{"delivered", func(l messaging.UseLine) any { return l.Delivered }},
		{"failed", func(l messaging.UseLine) any { return l.Failed }},
		{"unknown", func(l messaging.UseLine) any { return l.Unsure + l.Undecided }},
		{"refused", func(l messaging.UseLine) any { return l.Refused }},
		{"delivery_rate", func(l messaging.UseLine) any {
			if r := l.DeliveryRate(); r >= 0 {
				return fmt.Sprintf("%d.%02d %%", r/100, r%100)
			}
			return ""
		}},
		{"credits", func(l messaging.UseLine) any { return l.Credits }},
		{"segments", func(l messaging.UseLine) any { return l.Segments }},
		{"paid", func(l messaging.UseLine) any { return l.Paid }},
		{"cost", func(l messaging.UseLine) any { return l.Cost }},
		{"margin", func(l messaging.UseLine) any { return l.Margin() }},
	}
}

// Run reports.
func (c *creditsReport) Run(e *env) error {
	prices := messaging.Prices{Credit: c.Credit.value, Segment: c.Segment.value, Networks: map[msisdn.Network]messaging.Rate{}}
	for name, r := range c.Network {
		n, ok := msisdn.ParseNetwork(name)
		if !ok {
			return problem.Field("network", msisdn.ErrNetwork.Error())
		}
		prices.Networks[n] = r.value
	}
	return c.withMessaging(e, func(o *opened, m *messaging.Messaging) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		now := o.clock.Now()
		from, to := c.From.or(now.AddDate(0, 0, 1-now.Day())), c.To.or(now).AddDate(0, 0, 1)
		lines, err := m.Use(e.ctx, c.Tenant, c.Mode, from, to, prices)
		if err != nil {
			return err
		}
		if len(lines) > 1 {
			lines = append(lines, totalOf(lines))
		}
		return printAll(e.stdout, c.Output, useColumns(), lines)
	})
}

// totalOf adds lines up.
func totalOf(lines []messaging.UseLine) messaging.UseLine {
	total := messaging.UseLine{Network: "all", Encoding: smstext.Encoding("all")}
	for _, l := range lines {
		total.Messages += l.Messages
		total.Accepted += l.Accepted
		total.Delivered += l.Delivered
		total.Failed += l.Failed
		total.Unsure += l.Unsure
		total.Refused += l.Refused
		total.Undecided += l.Undecided
		total.Credits += l.Credits
		total.Segments += l.Segments
		total.Paid += l.Paid
		total.Cost += l.Cost
	}
	return total
}

// day is a flag with a date, or nothing.
type day struct{ value time.Time }

// UnmarshalText reads the flag.
func (d *day) UnmarshalText(text []byte) (err error) {
	if d.value, err = time.Parse(time.DateOnly, string(text)); err != nil {
		return fmt.Errorf("must be a date such as 2026-01-31")
	}
	return nil
}

// or gives the beginning of the day that was said, or else of the other.
func (d day) or(otherwise time.Time) time.Time {
	if !d.value.IsZero() {
		otherwise = d.value
	}
	return otherwise.UTC().Truncate(24 * time.Hour)
}

// rate is a flag with a price in pesewas with at most two decimals.
type rate struct{ value messaging.Rate }

// UnmarshalText reads the flag.
func (r *rate) UnmarshalText(text []byte) error {
	p, err := money.Parse(string(text)) // hundredths, of a pesewa here
	if err != nil {
		return fmt.Errorf("must be pesewas with at most two decimals, such as %s", strconv.Quote("2.25"))
	}
	r.value = messaging.Rate(p)
	return nil
}
