package accounts

import (
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/messaging"
)

// Campaigns holds the commands of makola campaigns.
type Campaigns struct {
	List     campaignsList     `cmd:"" help:"List an account's campaigns and one-time passwords, newest first."`
	Messages campaignsMessages `cmd:"" help:"List the recipients of a campaign with their outcomes."`
	Stop     campaignsStop     `cmd:"" help:"Stop a campaign. Unsent messages fail and are refunded."`
}

func campaignColumns() []frame.Column[messaging.Campaign] {
	return []frame.Column[messaging.Campaign]{
		{Name: "id", Value: func(c messaging.Campaign) any { return c.ID }},
		{Name: "tenant", Value: func(c messaging.Campaign) any { return c.Tenant }},
		{Name: "mode", Value: func(c messaging.Campaign) any { return string(c.Mode) }},
		{Name: "kind", Value: func(c messaging.Campaign) any { return string(c.Kind) }},
		{Name: "status", Value: func(c messaging.Campaign) any { return string(c.Status) }},
		{Name: "sender", Value: func(c messaging.Campaign) any { return c.Sender }},
		{Name: "encoding", Value: func(c messaging.Campaign) any { return string(c.Encoding) }},
		{Name: "segments", Value: func(c messaging.Campaign) any { return c.Segments }},
		{Name: "credits", Value: func(c messaging.Campaign) any { return c.Credits }},
		{Name: "recipients", Value: func(c messaging.Campaign) any { return c.Recipients }},
		{Name: "invalid", Value: func(c messaging.Campaign) any { return c.Invalid }},
		{Name: "excluded", Value: func(c messaging.Campaign) any { return c.Excluded }},
		{Name: "refunded", Value: func(c messaging.Campaign) any { return c.Refunded }},
		{Name: "chunks_left", Value: func(c messaging.Campaign) any { return c.Left }},
		{Name: "created_at", Value: func(c messaging.Campaign) any { return c.CreatedAt }},
		{Name: "starts_at", Value: func(c messaging.Campaign) any { return c.StartsAt }},
		{Name: "promotional", Value: func(c messaging.Campaign) any { return c.Promotional }},
	}
}

type campaignsList struct {
	frame.Common
	Tenant string      `arg:"" name:"account" help:"Id or unique name of the account."`
	Before string      `name:"before" placeholder:"ID" help:"List campaigns older than the campaign with this id."`
	Limit  frame.Count `name:"limit" default:"50" help:"Maximum number of rows."`
}

// Run lists campaigns without their texts, which may hold personal data.
func (c *campaignsList) Run(e *frame.Env) error {
	return c.WithMessaging(e, func(o *frame.Opened, m *messaging.Messaging) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		list, err := m.Campaigns(e.Ctx, c.Tenant, c.Before, int(c.Limit))
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, campaignColumns(), list)
	})
}

type campaignsMessages struct {
	frame.Common
	Tenant   string `arg:"" name:"account" help:"Id or unique name of the account."`
	Campaign string `arg:"" help:"Id of the campaign."`
	Page     int64  `name:"page" default:"1" help:"Page, from 1."`
	Size     int64  `name:"page-size" default:"100" help:"Rows per page, 1 to 100."`
}

// Run lists messages.
func (c *campaignsMessages) Run(e *frame.Env) error {
	return c.WithMessaging(e, func(o *frame.Opened, m *messaging.Messaging) error {
		if err := o.Known(e.Ctx, &c.Tenant); err != nil {
			return err
		}
		page, err := m.CampaignMessages(e.Ctx, c.Tenant, c.Campaign, c.Page, c.Size)
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, []frame.Column[messaging.Message]{
			{Name: "recipient", Value: func(m messaging.Message) any { return m.Recipient }},
			{Name: "status", Value: func(m messaging.Message) any { return string(m.Status) }},
			{Name: "credits", Value: func(m messaging.Message) any { return m.Credits }},
			{Name: "submitted_at", Value: func(m messaging.Message) any { return m.SubmittedAt }},
			{Name: "delivered_at", Value: func(m messaging.Message) any { return m.DeliveredAt }},
			{Name: "error", Value: func(m messaging.Message) any { return m.Error }},
		}, page.Messages)
	})
}

type campaignsStop struct {
	frame.Common
	frame.Writing
	Campaign string `arg:"" help:"Id of the campaign."`
	Reason   string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// showCampaign prints the campaign of a change.
func showCampaign(q *frame.Ask) error {
	stopped, err := q.Changes.Messaging.CampaignOf(q.E.Ctx, q.Values["campaign"])
	if err != nil {
		return err
	}
	return frame.PrintOne(q.E.Stdout, q.Output, campaignColumns(), stopped)
}
