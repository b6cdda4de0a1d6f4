package cli

import (
	"context"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/messaging"
)

type campaignsCommands struct {
	List     campaignsList     `cmd:"" help:"List a customer's campaigns and one-time passwords, newest first."`
	Messages campaignsMessages `cmd:"" help:"List what became of a campaign's recipients."`
	Stop     campaignsStop     `cmd:"" help:"Stop a campaign: what is unsent fails and is refunded."`
}

func campaignColumns() []column[messaging.Campaign] {
	return []column[messaging.Campaign]{
		{"id", func(c messaging.Campaign) any { return c.ID }},
		{"tenant", func(c messaging.Campaign) any { return c.Tenant }},
		{"mode", func(c messaging.Campaign) any { return string(c.Mode) }},
		{"kind", func(c messaging.Campaign) any { return string(c.Kind) }},
		{"status", func(c messaging.Campaign) any { return string(c.Status) }},
		{"sender", func(c messaging.Campaign) any { return c.Sender }},
		{"encoding", func(c messaging.Campaign) any { return string(c.Encoding) }},
		{"segments", func(c messaging.Campaign) any { return c.Segments }},
		{"credits", func(c messaging.Campaign) any { return c.Credits }},
		{"recipients", func(c messaging.Campaign) any { return c.Recipients }},
		{"invalid", func(c messaging.Campaign) any { return c.Invalid }},
		{"excluded", func(c messaging.Campaign) any { return c.Excluded }},
		{"refunded", func(c messaging.Campaign) any { return c.Refunded }},
		{"chunks_left", func(c messaging.Campaign) any { return c.Left }},
		{"created_at", func(c messaging.Campaign) any { return c.CreatedAt }},
	}
}

type campaignsList struct {
	common
	Tenant string `arg:"" help:"Id or unique name of the customer."`
	Before string `name:"before" placeholder:"ID" help:"Only those that are older than this campaign."`
	Limit  count  `name:"limit" default:"50" help:"Most that are listed."`
}

// Run lists campaigns. Texts are not shown: they may hold what is between a customer and its own.
func (c *campaignsList) Run(e *env) error {
	return c.withMessaging(e, func(o *opened, m *messaging.Messaging) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		list, err := m.Campaigns(e.ctx, c.Tenant, c.Before, int(c.Limit))
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, campaignColumns(), list)
	})
}

type campaignsMessages struct {
	common
	Tenant   string `arg:"" help:"Id or unique name of the customer."`
	Campaign string `arg:"" help:"Id of the campaign."`
	Page     int64  `name:"page" default:"1" help:"Page, from 1."`
	Size     int64  `name:"page-size" default:"100" help:"Rows of a page, 1 to 100."`
}

// Run lists messages.
func (c *campaignsMessages) Run(e *env) error {
	return c.withMessaging(e, func(o *opened, m *messaging.Messaging) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		page, err := m.CampaignMessages(e.ctx, c.Tenant, c.Campaign, c.Page, c.Size)
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, []column[messaging.Message]{
			{"recipient", func(m messaging.Message) any { return m.Recipient }},
			{"status", func(m messaging.Message) any { return string(m.Status) }},
			{"credits", func(m messaging.Message) any { return m.Credits }},
			{"submitted_at", func(m messaging.Message) any { return m.SubmittedAt }},
			{"delivered_at", func(m messaging.Message) any { return m.DeliveredAt }},
			{"error", func(m messaging.Message) any { return m.Error }},
		}, page.Messages)
	})
}

type campaignsStop struct {
	common
	writing
	Campaign string `arg:"" help:"Id of the campaign."`
	Reason   string `name:"reason" required:"" placeholder:"TEXT" help:"Why, for the audit log."`
}

// Run stops a campaign. The server that delivers it sees so within a second, or before its next slice.
func (c *campaignsStop) Run(e *env) error {
	return c.withMessaging(e, func(o *opened, m *messaging.Messaging) error {
		a := o.changes(config.Secret{})
		a.Messaging = m
		r, err := a.StopCampaign(e.ctx, o.by, newID(), c.Campaign, c.Reason)
		return o.asked(e, c.Output, r, err, func(ctx context.Context) error {
			stopped, err := m.CampaignOf(ctx, c.Campaign)
			if err != nil {
				return err
			}
			return printOne(e.stdout, c.Output, campaignColumns(), stopped)
		})
	})
}
