package messaging

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/tenant"
)

// Composed is a campaign with the texts of its recipients, as a person wrote it on a page.
type Composed struct {
	SenderID string
	Message  string      // text with its fields, as written
	Texts    []Addressed // each number once
	Invalid  int         // recipients that are not numbers
	Excluded int         // recipients that are left out
	At       time.Time   // when it begins; zero: at once
}

// Addressed is the text of one recipient.
type Addressed struct {
	Number msisdn.MSISDN
	Text   string
}

// Price is the price of the recipients whose texts have the same encoding, segments and credits.
type Price struct {
	Encoding   smstext.Encoding
	Segments   int64 // of one recipient
	Credits    int64 // of one recipient
	Recipients int64
	Sample     string // text of the first recipient
	texts      []Addressed
}

// Quote is the price of a composed campaign and when it begins.
type Quote struct {
	Sender      string // the name as sent
	Promotional bool
	Begins      time.Time // zero: at once
	Prices      []Price   // in the order of their first recipients
}

// Credits returns the price of all recipients in credits.
func (q Quote) Credits() (sum int64) {
	for _, p := range q.Prices {
		sum += p.Credits * p.Recipients
	}
	return sum
}

// maxPrices is the maximum number of prices of one composed campaign, each of which becomes a campaign.
const maxPrices = 40

// Quote checks a composed campaign and returns its price. Errors: Forbidden (a blocked account), Invalid (sender_id, message,
// recipients, at), Unavailable (no SMS rail).
func (m *Messaging) Quote(ctx context.Context, t tenant.Tenant, c Composed) (Quote, error) {
	if t.Blocked {
		return Quote{}, tenant.Blocked()
	}
	var bad problem.Fields
	switch {
	case len(c.Texts) == 0:
		bad.Add("recipients", "must have at least one valid number that did not opt out")
	case len(c.Texts) > MaxRecipients:
		bad.Merge(tooManyRecipients())
	}
	begin := m.clock.Now()
	if !c.At.IsZero() && (!c.At.After(begin) || c.At.Sub(begin) > mostAhead) {
		bad.Add("at", "must be a time in the next 90 days")
	}
	sender, err := m.senders.Usable(ctx, "sender_id", t.ID, c.SenderID)
	if err != nil && !bad.Merge(err) {
		return Quote{}, err
	}
	q := Quote{Sender: sender.Name, Promotional: sender.Class == senderid.Promotional, Begins: c.At}
	if q.Prices = prices(c.Texts, &bad); len(q.Prices) > maxPrices {
		bad.Add("message", fmt.Sprintf("has texts of more than %d lengths in segments. Divide the recipients", maxPrices))
	}
	if err := bad.Err(); err != nil {
		return Quote{}, err
	}
	if m.sms[t.Mode] == nil {
		return Quote{}, errNoRail()
	}
	begin = maxTime(begin, c.At)
	if next := m.hours.Next(begin); q.Promotional && !next.Equal(begin) {
		q.Begins = next
	}
	return q, nil
}

func maxTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// prices divides texts by encoding, segments and credits. It stops at the first text that cannot be sent.
func prices(texts []Addressed, bad *problem.Fields) (list []Price) {
	type class struct {
		encoding          smstext.Encoding
		segments, credits int64
	}
	places := map[class]int{}
	last, of, checked := "", class{}, false // many recipients get the same text
	for _, a := range texts {
		if !checked || a.Text != last {
			var wrong problem.Fields
			of.encoding, of.segments = checkText(a.Text, &wrong)
			if err := wrong.Err(); err != nil {
				bad.Merge(err)
				return list
			}
			of.credits, last, checked = smstext.Credits(a.Text), a.Text, true
		}
		at, known := places[of]
		if !known {
			at = len(list)
			places[of] = at
			list = append(list, Price{Encoding: of.encoding, Segments: of.segments, Credits: of.credits, Sample: a.Text})
		}
		list[at].Recipients++
		list[at].texts = append(list[at].texts, a)
	}
	return list
}

// SendComposed charges and stores a composed campaign in one transaction, as a campaign for each price. also gets the
// campaigns and runs in that transaction. Errors: those of Quote, InsufficientCredits with Shortage as Data.
func (m *Messaging) SendComposed(ctx context.Context, t tenant.Tenant, c Composed, also func(tx *db.Tx, q Quote, list []Campaign) error) error {
	q, err := m.Quote(ctx, t, c)
	if err != nil {
		return err
	}
	if delayed, err := m.recovery.Delays(ctx, t.ID); err != nil || delayed {
		return cmp.Or[error](err, errRecovering())
	}
	if len(c.Texts) > delivery.SmallSize {
		if err := m.roomForCampaigns(ctx, t, int64(len(q.Prices))); err != nil {
			return err
		}
	}
	orders, list := make([]delivery.Order, len(q.Prices)), make([]Campaign, len(q.Prices))
	for i, p := range q.Prices {
		made, err := m.newCampaign(ctx, t, idempotency.Caller{Tenant: t.ID}, "sender_id", c.SenderID, p.Sample, problem.Fields{})
		if err != nil {
			return err
		}
		made.Message, made.Recipients, made.StartsAt = c.Message, p.Recipients, q.Begins
		if i == 0 { // the counts are for the whole campaign
			made.Invalid, made.Excluded = int64(c.Invalid), int64(c.Excluded)
		}
		order := delivery.Order{Tenant: t, Campaign: made, Numbers: make([]msisdn.MSISDN, p.Recipients), Texts: make([]string, p.Recipients)}
		own := false
		for n, a := range p.texts {
			order.Numbers[n], order.Texts[n] = a.Number, a.Text
			own = own || a.Text != c.Message
		}
		if !own {
			order.Texts = nil
		}
		orders[i], list[i] = order, made
	}
	return m.delivery.AcceptTogether(ctx, orders, func(tx *db.Tx) error { return also(tx, q, list) })
}
