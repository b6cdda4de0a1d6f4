package messaging

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/tenant"
)

// Answer is an answer to a text from a handset. It is sent from the number that the text came to.
type Answer struct {
	Tenant string
	ID     string // id of the text that is answered, so that the same answer is sent once
	From   string
	To     msisdn.MSISDN
	Text   string
}

// Answer charges and sends an answer. A number that opted out gets it, too, because it confirms the opt-out.
//
// Errors: Forbidden (the account is blocked), Invalid, InsufficientCredits, Unavailable (no SMS rail, a recovery).
func (m *Messaging) Answer(ctx context.Context, a Answer) error {
	t, err := m.tenants.Get(ctx, a.Tenant)
	if err != nil {
		return err
	}
	switch delayed, err := m.recovery.Delays(ctx, t.ID); {
	case err != nil:
		return err
	case delayed:
		return errRecovering()
	case t.Blocked:
		return tenant.Blocked()
	case m.sms[t.Mode] == nil:
		return errNoRail()
	}
	var bad problem.Fields
	encoding, segments := checkText(a.Text, &bad)
	if err := bad.Err(); err != nil {
		return err
	}
	key := "answer/" + a.ID
	c := Campaign{Tenant: t.ID, ID: uuid.Must(uuid.NewV7()).String(), Mode: t.Mode, Kind: delivery.KindCampaign, Sender: strings.TrimSpace(a.From),
		Message: a.Text, Encoding: encoding, Segments: segments, Credits: smstext.Credits(a.Text), Status: CampaignActive, Recipients: 1,
		IdempotencyKey: key, IdempotencyHash: key, CreatedAt: m.clock.Now()}
	if _, replayed, err := m.delivery.Earlier(ctx, idempotency.Caller{Tenant: t.ID, IdempotencyKey: key, BodyHash: key}); replayed || err != nil {
		return err
	}
	_, _, err = m.delivery.Accept(ctx, delivery.Order{Tenant: t, Campaign: c, Numbers: []msisdn.MSISDN{a.To}})
	return err
}
