package book

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
)

// A Contradiction is a provider's report about a final payment that contradicts the provider's last report. Examples
// are a reversed success, a failure found paid, and the opposite of an earlier contradiction.
type Contradiction struct {
	Payment  Payment // current state
	Event    Event   // reversed, paid_late, found_paid or opposite
	Reported provider.State
	Code     string // as reported by the provider
	Message  string
	At       time.Time
}

type contradictionRow struct {
	id string
	Contradiction
}

var contradictionColumns = []db.Column[contradictionRow]{
	{Name: "id", Text: func(c contradictionRow) string { return c.id }},
	{Name: "payment", Text: func(c contradictionRow) string { return c.Payment.ID }},
	{Name: "tenant", Text: func(c contradictionRow) string { return c.Payment.Tenant }},
	{Name: "kind", Text: func(c contradictionRow) string { return string(c.Payment.Kind) }},
	{Name: "event", Text: func(c contradictionRow) string { return string(c.Event) }},
	{Name: "said", Text: func(c contradictionRow) string { return c.Reported.String() }},
	{Name: "code", Text: func(c contradictionRow) string { return c.Code }},
	{Name: "message", Text: func(c contradictionRow) string { return c.Message }},
	{Name: "at", Time: func(c contradictionRow) time.Time { return c.At }},
}

const contradictedPayments = `SELECT c.event, c.said, c.code, c.message, c.at, ` + paymentColumns + `
FROM (SELECT * FROM payment_contradictions ORDER BY at DESC, id DESC LIMIT $1) AS c
JOIN payments ON payments.id = c.payment ORDER BY c.at DESC, c.id DESC`

// Contradictions lists up to MaxStuck contradictions, newest first. The money of a contradicted payment stays in
// suspense until an operator calls Decide. The list includes collections that were paid late.
func (rd *Reader) Contradictions(ctx context.Context) ([]Contradiction, error) {
	return db.ReadAll(ctx, rd.db, contradictedPayments, []any{MaxStuck}, func(c *Contradiction, r *db.Row) error {
		var said string
		pay, err := scanPayment(r, &c.Event, &said, &c.Code, &c.Message, &c.At)
		c.Payment, c.Reported = pay, provider.Failed
		if said == provider.Success.String() {
			c.Reported = provider.Success
		}
		return err
	})
}
