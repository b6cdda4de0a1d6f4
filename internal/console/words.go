package console

import (
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/webhook"
)

// The catalogue: every word for a status, a kind or a channel that a page shows.

// statusBadges are the words that customers read (Payment.Word).
var statusBadges = map[string]page.Badge{
	"pending":   {Tone: page.Open, Word: "Pending"},
	"submitted": {Tone: page.Sent, Word: "Submitted"},
	"success":   {Tone: page.Good, Word: "Success"},
	"failed":    {Tone: page.Bad, Word: "Failed"},
	"declined":  {Tone: page.Declined, Word: "Declined"},
	"invalid":   {Tone: page.Plain, Word: "Invalid"},
}

// unknownBadge is that of a payment whose outcome nobody knows.
var unknownBadge = page.Badge{Tone: page.Unknown, Word: "Outcome unknown"}

// badgeOf is the state of a payment as people should see it.
func badgeOf(p payments.Payment) page.Badge {
	if unknown(p) {
		return unknownBadge
	}
	if b, known := statusBadges[p.Word()]; known {
		return b
	}
	return page.Badge{Word: p.Word()}
}

// unknown says that money is held because nobody knows what became of a payment.
func unknown(p payments.Payment) bool {
	return p.SettledAt.IsZero() && !p.EscalatedAt.IsZero()
}

// kindWords name the kinds of payments.
var kindWords = map[payments.Kind]string{
	payments.KindCollection: "Collection", payments.KindPayout: "Payout", payments.KindTopUp: "Airtime", payments.KindBundle: "Data",
}

// deliveryBadges are the states of webhooks.
var deliveryBadges = map[webhook.State]page.Badge{
	webhook.Pending:    {Tone: page.Open, Word: "Pending"},
	webhook.Delivered:  {Tone: page.Good, Word: "Delivered"},
	webhook.Failed:     {Tone: page.Bad, Word: "Given up"},
	webhook.Superseded: {Tone: page.Plain, Word: "Superseded"},
}

// promptBadges are the states of a handset's prompts, and of what the simulator booked.
var promptBadges = map[string]page.Badge{
	"pending":   {Tone: page.Open, Word: "Waiting"},
	"approved":  {Tone: page.Good, Word: "Approved"},
	"success":   {Tone: page.Good, Word: "Success"},
	"declined":  {Tone: page.Declined, Word: "Declined"},
	"wrong_pin": {Tone: page.Declined, Word: "Wrong PIN"},
	"expired":   {Tone: page.Plain, Word: "Expired"},
	"failed":    {Tone: page.Bad, Word: "Failed"},
}

// worded gives the badge of a word; one that the catalogue lacks is shown as it is.
func worded(badges map[string]page.Badge, word string) page.Badge {
	if b, known := badges[word]; known {
		return b
	}
	return page.Badge{Word: word}
}
