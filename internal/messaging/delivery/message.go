package delivery

import (
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
)

// Status is the state of one message. Values are stored and never change.
type Status string

// The states of a message. A submitted message becomes delivered, failed, expired, rejected or unknown. A queued
// message was certainly not sent and is submitted again. Recipients without a row also count as queued. sending means
// that a queued message is claimed, which is committed before the first byte is sent. The claims of recipients
// without a row are stored in their chunk. If a node dies, its claimed messages become unknown.
const (
	StatusQueued    Status = "queued"
	StatusSending   Status = "sending"
	StatusSubmitted Status = "submitted"
	StatusDelivered Status = "delivered"
	StatusFailed    Status = "failed"
	StatusExpired   Status = "expired"
	StatusRejected  Status = "rejected"
	StatusUnknown   Status = "unknown"
	StatusInvalid   Status = "invalid"
)

// message is one row: a text to one recipient.
type message struct {
	Tenant      string
	Campaign    string
	No          int64
	Recipient   string
	Status      Status
	Accepted    int64 // number of segments that a mobile operator accepted
	Open        int64 // number of accepted segments without a final receipt
	SubmittedAt time.Time
	DeliveredAt time.Time
	Error       string
	UpstreamID  string // of a message with one segment, whose row is also the row of its part
	stored      bool   // the message has a row
}

var messageColumns = []db.Column[message]{
	{Name: "tenant", Text: func(m message) string { return m.Tenant }},
	{Name: "campaign", Text: func(m message) string { return m.Campaign }},
	{Name: "no", Int: func(m message) int64 { return m.No }},
	{Name: "recipient", Text: func(m message) string { return m.Recipient }},
	{Name: "status", Text: func(m message) string { return string(m.Status) }},
	{Name: "accepted", Int: func(m message) int64 { return m.Accepted }},
	{Name: "open", Int: func(m message) int64 { return m.Open }},
	{Name: "submitted_at", Time: func(m message) time.Time { return m.SubmittedAt }},
	{Name: "delivered_at", Time: func(m message) time.Time { return m.DeliveredAt }},
	{Name: "error", Text: func(m message) string { return m.Error }},
	{Name: "upstream_id", Text: func(m message) string { return m.UpstreamID }},
}

// part is one segment that an operator accepted.
type part struct {
	UpstreamID  string
	Tenant      string
	Campaign    string
	Message     int64
	Part        int64
	Recipient   string
	State       string
	SubmittedAt time.Time
	Single      bool // the message has no other part, and its row is also the part's row
}

const partOpen = "open"

// partStates has the stored states of final receipts. A segment that is still in delivery stays open.
var partStates = map[provider.Delivery]string{
	provider.DeliveryPending: partOpen, provider.Delivered: "delivered", provider.DeliveryFailed: "failed",
	provider.DeliveryExpired: "expired", provider.DeliveryRejected: "rejected", provider.DeliveryUnknown: "unknown",
}

var partColumns = []db.Column[part]{
	{Name: "upstream_id", Text: func(p part) string { return p.UpstreamID }},
	{Name: "tenant", Text: func(p part) string { return p.Tenant }},
	{Name: "campaign", Text: func(p part) string { return p.Campaign }},
	{Name: "message", Int: func(p part) int64 { return p.Message }},
	{Name: "part", Int: func(p part) int64 { return p.Part }},
	{Name: "recipient", Text: func(p part) string { return p.Recipient }},
	{Name: "state", Text: func(p part) string { return p.State }},
	{Name: "submitted_at", Time: func(p part) time.Time { return p.SubmittedAt }},
}

// Refunded reports whether a message with this status and number of accepted segments is refunded. That is so if no
// mobile operator has accepted a segment and none will.
func (s Status) Refunded(accepted int64) bool {
	return accepted == 0 && (s == StatusRejected || s == StatusFailed)
}

func (m message) unaccepted() bool { return m.Status.Refunded(m.Accepted) }

// worse orders the final states of parts. A message is delivered only if all of its parts are.
var worse = map[string]int{"delivered": 0, "unknown": 1, "expired": 2, "rejected": 3, "failed": 4}

// worst returns the final state of a message from the final states of its parts.
func worst(states ...string) Status {
	end := "delivered"
	for _, s := range states {
		if worse[s] > worse[end] {
			end = s
		}
	}
	return Status(end)
}

// result is the outcome of one message's submission.
type result struct {
	message message
	parts   []part
}
