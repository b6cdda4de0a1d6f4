package api

import (
	"context"
	"time"

	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/messaging/otp"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/senderid"
)

// requestSender requests a sender ID, which an operator reviews.
func requestSender(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	name, description, who := f.line("name", true, senderid.MaxName), f.short("desc", true, descriptionMax), c.asker(f)
	if name != "" && f.refused() {
		f.fields.Merge(senderid.CheckName(name))
	}
	if err := f.err(); err != nil {
		return err
	}
	s, replayed, err := c.api.Senders.Request(c.ctx, who, name, description)
	if err != nil {
		return blame(err, "name", "sender_id_exists")
	}
	c.replayed(replayed)
	w := c.success("Sender ID requested successfully")
	w.Object("data")
	w.sender(s)
	w.End()
	w.End()
	return nil
}

// senders lists the sender IDs, usable ones first.
func senders(c *call) error {
	all, err := c.api.Senders.List(c.ctx, c.caller.Tenant)
	if err != nil {
		return err
	}
	w := c.success("Sender IDs fetched successfully")
	w.List("data")
	for _, s := range all {
		w.Object("")
		w.sender(s)
		w.End()
	}
	w.End()
	w.End()
	return nil
}

// sender writes the members of a sender ID.
func (w *writer) sender(s senderid.Sender) {
	w.Text("id", s.ID)
	w.Text("name", s.Name)
	w.Text("desc", s.Description)
	w.Text("status", string(s.Status))
	w.Optional("reason", s.Reason)
	w.Time("created_at", s.CreatedAt)
}

// sendSMS sends one text to numbers and groups. Clients may also use GET. Such a request must not end when its client
// disconnects, because it spends credits.
func sendSMS(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	in := messaging.Send{
		SenderID:   f.ours("sender_id"),
		Message:    f.message("message"),
		Recipients: f.list("recipients", messaging.MaxRecipients),
		Groups:     f.list("group_id_list", messaging.MaxGroups),
	}
	for i, id := range in.Groups {
		in.Groups[i] = canonical(id)
	}
	who := c.asker(f)
	if f.refused() && len(in.Recipients)+len(in.Groups) == 0 && !f.fields.Has("recipients") && !f.fields.Has("group_id_list") {
		f.bad("recipients", "is required unless group_id_list is given")
	}
	if err := f.err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), ListWithin)
	defer cancel()
	campaign, replayed, err := c.api.Messaging.Send(ctx, who, in)
	if err != nil {
		return err
	}
	c.replayed(replayed)
	w := c.success("Request Sent")
	w.Object("data")
	w.Text("campaignId", campaign.ID)
	w.Text("campaign_id", campaign.ID) // some clients use one name, some the other
	w.Integer("recipients", campaign.Recipients)
	w.Integer("invalid", campaign.Invalid)
	w.Integer("excluded", campaign.Excluded)
	w.Integer("smsCost", campaign.Cost())
	w.End()
	w.End()
	return nil
}

// sendOTP creates a one-time code and sends it.
func sendOTP(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	in := messaging.OTP{
		Phone:    f.phone("phoneNumber"),
		SenderID: f.ours("senderId"),
		Message:  f.message("message"),
		Length:   f.number("length", otp.LeastLength, otp.LeastLength, otp.MostLength),
		Expiry: time.Minute * time.Duration(f.number("expiry", int(otp.DefaultExpiry/time.Minute),
			int(otp.LeastExpiry/time.Minute), int(otp.MostExpiry/time.Minute))),
	}
	who := c.asker(f)
	if f.refused() {
		f.fields.Merge(otp.CheckTemplate(in.Message))
	}
	if err := f.err(); err != nil {
		return err
	}
	sent, replayed, err := c.api.Messaging.SendOTP(c.ctx, who, in)
	if err != nil {
		return err
	}
	c.replayed(replayed)
	w := c.success("OTP sent")
	w.Object("data")
	w.Object("otp")
	w.Text("prefix", sent.Prefix)
	w.Text("requestId", sent.RequestID)
	w.Text("ussd_code", c.api.USSDCode)
	w.End()
	w.End()
	w.End()
	return nil
}

// verifyOTP checks a one-time code.
func verifyOTP(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	request, phone, code := f.ours("requestId"), f.phone("phoneNumber"), f.oneTimeCode("code")
	who := c.asker(f)
	if err := f.err(); err != nil {
		return err
	}
	replayed, err := c.api.Messaging.Codes.Verify(c.ctx, who, request, phone, code)
	if err != nil {
		return err
	}
	c.replayed(replayed)
	w := c.success("OTP verification successful")
	w.Null("data")
	w.End()
	return nil
}

// campaignMessages returns the messages of a campaign with the status of each recipient.
func campaignMessages(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	unknown := problem.New(problem.NotFound, "campaign_not_found", "Campaign not found")
	id, err := f.id("campaignId", unknown)
	number, size := f.number("page", 1, 1, maxPage), f.number("page_size", defaultPage, 1, maxPageSize)
	if bad := f.err(); bad != nil {
		return bad
	}
	if err != nil {
		return err
	}
	page, err := c.api.Messaging.CampaignMessages(c.ctx, c.caller.Tenant, id, int64(number), int64(size))
	if err != nil {
		return err
	}
	w := c.success("Messages fetched successfully")
	w.List("data")
	for _, m := range page.Messages {
		w.Object("")
		w.Text("recipient", m.Recipient)
		w.Text("status", string(m.Status))
		w.Integer("segments", m.Segments)
		w.Text("encoding", string(m.Encoding))
		w.Integer("credits", m.Credits)
		w.Moment("submitted_at", m.SubmittedAt)
		w.Moment("delivered_at", m.DeliveredAt)
		if m.Error == "" {
			w.Null("error")
		} else {
			w.Text("error", m.Error)
		}
		w.End()
	}
	w.End()
	c.pages(number, size, defaultPage, page.Total, len(page.Messages))
	w.End()
	return nil
}

// descriptionMax is the maximum length of a sender ID's description in characters. A longer description is
// cut.
const descriptionMax = 500
