package compose

import (
	"context"

	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// Filled is a draft with the text of each recipient who gets one.
type Filled struct {
	messaging.Composed
	OptedOut int // recipients that opted out
	Lacking  int // recipients without a value of a field of the text
}

// Price is the current price of a draft.
type Price struct {
	Filled
	messaging.Quote
}

// Price returns the texts of a draft's recipients and their current price. Errors: the errors of messaging's Quote, and Invalid
// for an unknown field in the message.
func (s *Store) Price(ctx context.Context, d Draft) (p Price, err error) {
	t, err := s.tenants.Get(ctx, d.Tenant)
	if err != nil {
		return p, err
	}
	if p.Filled, err = s.filled(ctx, d); err != nil {
		return p, err
	}
	p.Quote, err = s.messaging.Quote(ctx, t, p.Composed)
	if err != nil && len(p.Texts) == 0 && p.Lacking > 0 {
		err = problem.Field("message", "uses a field for which no recipient has a value. Add a text for these, such as {first_name|friend}")
	}
	return p, err
}

// maxFilled is the maximum size in bytes of the texts with fields of all recipients of a draft together.
const maxFilled = 64 << 20

// filled fills the fields of a draft's text for each recipient.
func (s *Store) filled(ctx context.Context, d Draft) (f Filled, err error) {
	text, err := parse(d.Message, d.Recipients.Fields)
	if err != nil {
		return f, err
	}
	f.Composed = messaging.Composed{SenderID: d.SenderID, Message: d.Message, At: d.At, Invalid: d.Invalid}
	out, err := s.optedOut(ctx, d)
	if err != nil {
		return f, err
	}
	size := 0
	f.Texts = make([]messaging.Addressed, 0, len(d.Recipients.Rows))
	for _, row := range d.Recipients.Rows {
		number := msisdn.MSISDN(row[0])
		if out[number] {
			f.OptedOut++
			continue
		}
		own, whole := text.fill(row[1:])
		if !whole {
			f.Lacking++
			continue
		}
		if size += len(own); size > maxFilled && len(text.fields) > 0 {
			return f, problem.Field("message", "makes texts that are too long in all. Shorten the text, or divide the recipients")
		}
		f.Texts = append(f.Texts, messaging.Addressed{Number: number, Text: own})
	}
	f.Excluded = f.OptedOut + f.Lacking
	return f, nil
}

// optedOut returns the recipients of a draft that opted out.
func (s *Store) optedOut(ctx context.Context, d Draft) (out map[msisdn.MSISDN]bool, err error) {
	some, err := s.contacts.HasOptOuts(ctx, d.Tenant)
	if err != nil || !some {
		return nil, err
	}
	numbers := make([]msisdn.MSISDN, len(d.Recipients.Rows))
	for i, row := range d.Recipients.Rows {
		numbers[i] = msisdn.MSISDN(row[0])
	}
	return db.Get(db.Bulk(ctx, d.Tenant), s.db, func(tx *db.Tx) (map[msisdn.MSISDN]bool, error) { return contacts.OptedOut(tx, d.Tenant, numbers) })
}
