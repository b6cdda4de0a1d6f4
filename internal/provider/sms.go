package provider

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/smstext"
)

// Segment is one part of a message as it goes to an operator.
type Segment struct {
	From string // an approved sender ID, at most 11 characters
	To   msisdn.MSISDN
	// Text is the whole message, for a provider that divides texts itself. Encoding, Octets and Group are then empty.
	Text         string
	Encoding     smstext.Encoding
	Octets       []byte // without the header that joins the parts
	Part, Parts  int    // counted from 1
	Group        uint16 // joins the parts of one message to one recipient
	WantsReceipt bool
	Validity     time.Duration // how long the operator tries to deliver it, in whole seconds; 0: as long as it likes
}

// SMSSender hands segments to mobile operators.
type SMSSender interface {
	// Submit sends one segment. It blocks while the operator's window or rate is full, so that a caller never outruns
	// the operator. It calls done exactly once, on another goroutine or before it returns: Accepted with the
	// operator's message id in UpstreamID, Rejected, NotSent (no byte was written, or the operator was too busy:
	// RetryAfter), or Unknown.
	Submit(ctx context.Context, s Segment, done func(Outcome))
	// Whole reports whether a message goes to a provider that divides texts itself. It is then submitted as one
	// Segment with its Text. It is asked anew before each offer of a message of which nothing was sent.
	Whole(from string, to msisdn.MSISDN) bool
	// Ready is nil when there is a bound connection for the network, else why not.
	Ready(n msisdn.Network) error
}

// Delivery is the state of a segment in an operator's receipt.
type Delivery int

// The deliveries. DeliveryUnknown, from an operator that does not know, is final.
const (
	DeliveryPending Delivery = iota // on its way: ENROUTE, ACCEPTED
	Delivered
	DeliveryFailed
	DeliveryExpired
	DeliveryRejected
	DeliveryUnknown
)

// Receipt is one delivery report.
type Receipt struct {
	UpstreamID string // in the same form as the Outcome of the submit
	State      Delivery
	Code       string // the operator's error code, verbatim
	At         time.Time
	To         msisdn.MSISDN // empty if the operator did not send it
}

// Text is a whole message to one recipient, as it goes to a provider over HTTP.
type Text struct {
	From     string
	To       msisdn.MSISDN
	Body     string
	Callback string // where the provider reports on the message; empty: none wanted
}

// TextSender sends whole texts over HTTP. The outcome is Accepted with the provider's message id, NotSent, Barred for a
// 429, or Unknown, after which nobody may send the text again. It is Rejected and Clear only for a refusal that the
// provider documents: TriesOther tells a refusal of the account from one of the message.
type TextSender interface {
	SendText(ctx context.Context, t Text) Outcome
}

// TriesOther reports whether the outcome of a text proves that the provider took nothing, and the reason is not the
// message. Another provider may send the text then.
func (o Outcome) TriesOther() bool {
	switch {
	case o.Class == NotSent:
		return true
	case o.Class != Rejected || !o.Clear:
		return false
	}
	return o.Reason == ReasonFloat || o.Reason == ReasonSetup || o.Reason == ReasonUnavailable
}

// TextTimeout bounds the whole exchange about a text.
const TextTimeout = 20 * time.Second

// TextUnread returns the outcome of a response that is no provider's own envelope. A text that was written is Unknown,
// whatever the HTTP status, except 429: by HTTP's own definition (RFC 6585) the server did not process the request.
func TextUnread(a Answer) Outcome {
	o, ok := Undelivered(a)
	switch {
	case !ok:
		return Unreadable(a, "no readable response")
	case o.Class == Barred && a.Status != http.StatusTooManyRequests:
		o.Class = Unknown
	}
	return o
}

// TextPoller reads the state of a text at a provider that pushes no reports. ok is false if the response has none.
type TextPoller interface {
	TextState(ctx context.Context, id string) (r Receipt, ok bool)
}

// ReportReader reads a provider's report on a text from the query of its address.
type ReportReader interface {
	ReadReport(query url.Values) (Receipt, error)
}

// TextRail is one provider of texts over HTTP in one mode.
type TextRail struct {
	Name, Mode string
	Window     int      // requests at once
	Senders    []string // the sender IDs that the provider knows; empty: all
	Texts      TextSender
	Poller     TextPoller   // nil: the provider pushes its reports
	Reports    ReportReader // nil: the provider pushes none
}

// CallbackPath is where the provider's reports arrive.
func (r TextRail) CallbackPath(secret config.Secret) string {
	return CallbackPath(secret, Rail{Name: r.Name, Mode: r.Mode})
}

// ErrElsewhere is the Ready of a sender whose connections another node has.
var ErrElsewhere = errors.New("provider: another node is connected to the operator")
