package messaging

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/tenant"
)

// Send is a message to numbers, to contact groups, or to both.
type Send struct {
	SenderID   string
	Message    string
	Recipients []string
	Groups     []string
	At         time.Time // when the campaign begins; zero: at once
}

// mostAhead is how far ahead a campaign may begin.
const mostAhead = 90 * 24 * time.Hour

// Send accepts a campaign. It is charged and stored when Send returns, and delivered afterwards. replayed means that
// an earlier request with the caller's idempotency key created it.
//
// Errors: Invalid (sender_id, message, recipients, group_id_list, an idempotency key with another body), Forbidden (a
// group of another tenant), InsufficientCredits with Shortage as Data, Unavailable (no SMS rail).
func (m *Messaging) Send(ctx context.Context, caller idempotency.Caller, s Send) (c Campaign, replayed bool, err error) {
	t, err := m.tenants.Get(ctx, caller.Tenant)
	if err != nil {
		return Campaign{}, false, err
	}
	if c, replayed, err = m.delivery.Earlier(ctx, caller); replayed || err != nil {
		return c, replayed, err
	}
	if delayed, err := m.recovery.Delays(ctx, caller.Tenant); err != nil || delayed {
		return Campaign{}, false, cmp.Or[error](err, errRecovering())
	}
	var bad problem.Fields
	switch {
	case len(s.Recipients) == 0 && len(s.Groups) == 0:
		bad.Add("recipients", noRecipients)
	case len(s.Recipients) > MaxRecipients:
		bad.Merge(tooManyRecipients())
	case len(s.Groups) > MaxGroups:
		bad.Add("group_id_list", fmt.Sprintf("must have at most %d groups", MaxGroups))
	}
	now := m.clock.Now()
	if !s.At.IsZero() && (!s.At.After(now) || s.At.Sub(now) > mostAhead) {
		bad.Add("at", "must be a time in the next 90 days")
	}
	if c, err = m.newCampaign(ctx, t, caller, "sender_id", s.SenderID, s.Message, bad); err != nil {
		return Campaign{}, false, err
	}
	begin := now
	if c.StartsAt = s.At; !s.At.IsZero() {
		begin = s.At
	}
	if next := m.hours.Next(begin); c.Promotional && !next.Equal(begin) {
		c.StartsAt = next
	}
	list, err := m.recipients(ctx, t, s.Recipients, s.Groups, c.Credits)
	if err != nil {
		return Campaign{}, false, err
	}
	c.Recipients, c.Invalid, c.Excluded = int64(len(list.numbers)), int64(list.invalidCount), int64(list.excluded)
	if len(list.numbers) > delivery.SmallSize {
		if err := m.roomForCampaigns(ctx, t, 1); err != nil {
			return Campaign{}, false, err
		}
	}
	return m.delivery.Accept(ctx, delivery.Order{Tenant: t, Campaign: c, Numbers: list.numbers, Invalid: list.invalid})
}

// errRecovering refuses a campaign that a recovery delays.
func errRecovering() error {
	e := problem.New(problem.Unavailable, "recovering", "The service is being recovered, and campaigns wait until that is done. Nothing was sent.")
	e.RetryAfter = delivery.RecoveryPause
	return e
}

// errNoRail refuses messages of a mode without a rail.
func errNoRail() error {
	return problem.New(problem.Unavailable, "sms_unavailable", "SMS cannot be sent at the moment: no operator is connected")
}

// noRecipients is the contract's refusal of a request without recipients.
const noRecipients = "At least one of recipients or group must be present"

// newCampaign checks the text and the sender ID, which every message needs, and returns the campaign. Its error names
// all invalid fields, including those that the caller added to bad.
func (m *Messaging) newCampaign(ctx context.Context, t tenant.Tenant, caller idempotency.Caller, senderField, senderID, text string, bad problem.Fields) (Campaign, error) {
	encoding, segments := checkText(text, &bad)
	sender, err := m.senders.Usable(ctx, senderField, t.ID, senderID)
	if err != nil && !problem.Is(err, problem.Invalid) {
		return Campaign{}, err
	}
	if refused := bad.Err(); refused != nil {
		if bad.Merge(err) {
			refused = bad.Err()
		}
		return Campaign{}, oneSentence(refused)
	}
	if err != nil {
		return Campaign{}, err
	}
	if m.sms[t.Mode] == nil {
		return Campaign{}, errNoRail()
	}
	return Campaign{
		Tenant: t.ID, ID: uuid.Must(uuid.NewV7()).String(), Mode: t.Mode, Kind: delivery.KindCampaign, SenderID: sender.ID, Sender: sender.Name,
		Message: text, Encoding: encoding, Segments: segments, Credits: smstext.Credits(text), Status: CampaignActive,
		Promotional: sender.Class == senderid.Promotional, Key: caller.Key, IdempotencyKey: caller.IdempotencyKey, IdempotencyHash: caller.BodyHash, CreatedAt: m.clock.Now(),
	}, nil
}

// checkText adds to bad the reasons why a text cannot be sent.
func checkText(text string, bad *problem.Fields) (smstext.Encoding, int64) {
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' }
	switch {
	case strings.TrimSpace(text) == "":
		bad.Add("message", "is required")
	case !utf8.ValidString(text):
		bad.Add("message", "must be valid UTF-8 text")
	case strings.ContainsFunc(text, control):
		bad.Add("message", "must not contain control characters")
	default:
		encoding, segments := smstext.Count(text)
		if segments > smstext.MaxSegments {
			bad.Add("message", fmt.Sprintf("needs %d segments; the maximum is %d", segments, smstext.MaxSegments))
		}
		return encoding, int64(segments)
	}
	return "", 0
}

// oneSentence makes noRecipients the whole message of an error if no other field is invalid, because clients show the
// message.
func oneSentence(err error) error {
	p := problem.From(err)
	if texts := p.Fields["recipients"]; len(p.Fields) == 1 && len(texts) == 1 && texts[0] == noRecipients {
		p.Message = noRecipients
	}
	return p
}
