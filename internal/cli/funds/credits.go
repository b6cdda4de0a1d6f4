package funds

import (
	"fmt"
	"strconv"

	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/smstext"
)

// Credits holds the commands of makola credits.
type Credits struct {
	Sell   creditsSell   `cmd:"" help:"Sell SMS credits to an account that paid for them outside of Makola."`
	Refund creditsRefund `cmd:"" help:"Take back SMS credits that were sold by mistake or returned."`
	Report creditsReport `cmd:"" help:"Report credits, segments and encodings, with cost, margin and deliveries."`
}

type creditsSell struct {
	frame.Common
	frame.OrderFlags
	frame.Writing
	Tenant  string       `arg:"" name:"account" help:"Id or unique name of the account."`
	Credits int64        `arg:"" help:"Number of credits."`
	Price   frame.Amount `name:"price" required:"" placeholder:"CEDIS" help:"Price that the account paid, for the audit log. 0 for a gift."`
}

type creditsRefund struct {
	frame.Common
	frame.OrderFlags
	frame.Writing
	Tenant  string       `arg:"" name:"account" help:"Id or unique name of the account."`
	Credits int64        `arg:"" help:"Number of credits."`
	Price   frame.Amount `name:"price" required:"" placeholder:"CEDIS" help:"Price that was paid back to the account, for the audit log."`
}

type creditsReport struct {
	frame.Common
	Tenant  string          `name:"account" aliases:"tenant" placeholder:"ID" help:"Id or unique name of the account. Default: all accounts."`
	Mode    string          `name:"mode" enum:"live,test" default:"live" help:"live or test."`
	From    frame.Day       `name:"from" placeholder:"DATE" help:"First day, in UTC; by default the first of this month."`
	To      frame.Day       `name:"to" placeholder:"DATE" help:"Last day, in UTC; by default today."`
	Credit  rate            `name:"credit" placeholder:"PESEWAS" help:"Price of a credit, such as 3.5 pesewas."`
	Segment rate            `name:"segment" placeholder:"PESEWAS" help:"Cost of a segment, such as 2.25 pesewas."`
	Network map[string]rate `name:"network" placeholder:"NETWORK=PESEWAS" help:"Cost of a segment to one network. May be repeated."`
}

func useColumns() []frame.Column[messaging.UseLine] {
	return []frame.Column[messaging.UseLine]{
		{Name: "network", Value: func(l messaging.UseLine) any { return l.Network }},
		{Name: "encoding", Value: func(l messaging.UseLine) any { return string(l.Encoding) }},
		{Name: "messages", Value: func(l messaging.UseLine) any { return l.Messages }},
		{Name: "accepted", Value: func(l messaging.UseLine) any { return l.Accepted }},
		{Name: "delivered", Value: func(l messaging.UseLine) any { return l.Delivered }},
		{Name: "failed", Value: func(l messaging.UseLine) any { return l.Failed }},
		{Name: "unknown", Value: func(l messaging.UseLine) any { return l.Unsure + l.Undecided }},
		{Name: "refused", Value: func(l messaging.UseLine) any { return l.Refused }},
		{Name: "delivery_rate", Value: func(l messaging.UseLine) any {
			if r := l.DeliveryRate(); r >= 0 {
				return fmt.Sprintf("%d.%02d %%", r/100, r%100)
			}
			return ""
		}},
		{Name: "credits", Value: func(l messaging.UseLine) any { return l.Credits }},
		{Name: "segments", Value: func(l messaging.UseLine) any { return l.Segments }},
		{Name: "paid", Value: func(l messaging.UseLine) any { return l.Paid }},
		{Name: "cost", Value: func(l messaging.UseLine) any { return l.Cost }},
		{Name: "margin", Value: func(l messaging.UseLine) any { return l.Margin() }},
	}
}

// Run reports.
func (c *creditsReport) Run(e *frame.Env) error {
	prices := messaging.Prices{Credit: c.Credit.value, Segment: c.Segment.value, Networks: map[msisdn.Network]messaging.Rate{}}
	for name, r := range c.Network {
		n, ok := msisdn.ParseNetwork(name)
		if !ok {
			return problem.Field("network", msisdn.ErrNetwork.Error())
		}
		prices.Networks[n] = r.value
	}
	return c.WithMessaging(e, func(o *frame.Opened, m *messaging.Messaging) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		now := o.Clock.Now()
		from, to := c.From.Or(now.AddDate(0, 0, 1-now.Day())), c.To.Or(now).AddDate(0, 0, 1)
		lines, err := m.Use(e.Ctx, c.Tenant, c.Mode, from, to, prices)
		if err != nil {
			return err
		}
		if len(lines) > 1 {
			lines = append(lines, totalOf(lines))
		}
		return frame.PrintAll(e.Stdout, c.Output, useColumns(), lines)
	})
}

// totalOf returns the sum of lines.
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

// rate is a flag with a price in pesewas with at most two decimals.
type rate struct{ value messaging.Rate }

// UnmarshalText reads the flag.
func (r *rate) UnmarshalText(text []byte) error {
	p, err := money.Parse(string(text)) // hundredths of a pesewa
	if err != nil {
		return fmt.Errorf("must be pesewas with at most two decimals, such as %s", strconv.Quote("2.25"))
	}
	r.value = messaging.Rate(p)
	return nil
}
