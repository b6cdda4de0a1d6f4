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

// Segment is one part of a message, as it is submitted to a mobile operator.
type Segment struct {
	From string // an approved sender ID, at most 11 characters
	To   msisdn.MSISDN
	// Text is the whole message, for a provider that splits texts itself. Encoding, Octets and Group are then empty.
	Text         string
	Encoding     smstext.Encoding
	Octets       []byte // without the header that links the parts
	Part, Parts  int    // Part is counted from 1
	Group        uint16 // links the parts of one message to one recipient
	WantsReceipt bool
	Validity     time.Duration // how long the mobile operator tries to deliver it, in whole seconds; 0: the operator decides
}

// SMSSender submits segments to mobile operators.
type SMSSender interface {
	// Submit submits one segment. It blocks while the operator's window or rate is full, so that a caller never
	// exceeds them. It calls done exactly once, on another goroutine or before it returns. The outcome is Accepted
	// with the operator's message id in UpstreamID, Rejected, NotSent or Unknown. NotSent means that no byte was
	// written, or that the operator was too busy (RetryAfter).
	Submit(ctx context.Context, s Segment, done func(Outcome))
	// Whole reports whether a message goes to a provider that splits texts itself. Such a message is submitted as one
	// Segment with its Text. If nothing of a message was sent, callers call Whole again before the next attempt.
	Whole(from string, to msisdn.MSISDN) bool
	// Ready returns nil if there is a bound connection for the network, and otherwise the reason.
	Ready(n msisdn.Network) error
}

// Delivery is the state of a segment in an operator's receipt.
type Delivery int

// The deliveries. DeliveryUnknown is final: the operator does not know the outcome.
const (
	DeliveryPending Delivery = iota // in delivery: ENROUTE, ACCEPTED
	Delivered
	DeliveryFailed
	DeliveryExpired
	DeliveryRejected
	DeliveryUnknown
)

// Receipt is one delivery report.
type Receipt struct {
	UpstreamID string // in the same form as in the Outcome of Submit
	State      Delivery
	Code       string // the operator's error code, verbatim
	At         time.Time
	To         msisdn.MSISDN // empty if the receipt has no number
}

// Incoming is a text from a handset, or one part of it.
type Incoming struct {
	From, To string // in the operator's form: a handset, and a number or a short code
	Encoding smstext.Encoding
	Octets   []byte // without the header that joins the parts
	// Part and Parts count from 1. Reference joins the parts of one text from one handset. A text of one part has 1 and 1.
	Part, Parts, Reference int
	// Session names the connection until the operator's next refusal. A text that an operator sends again after a
	// refusal, or on another connection, has another Session. If a person sends a text twice, both texts have the
	// same Session and different Sequences.
	Session  string
	Sequence uint32
	At       time.Time
}

// Text is a whole message to one recipient, as it is sent to a provider over HTTP.
type Text struct {
	From     string
	To       msisdn.MSISDN
	Body     string
	Callback string // URL for the provider's report on the message; empty: none wanted
}

// TextSender sends whole texts over HTTP. The outcome is Accepted with the provider's message id, NotSent, Barred for
// a 429, or Unknown. After Unknown, the text must not be sent again. The outcome is Rejected and Clear only for a
// refusal that the provider documents. TriesOther distinguishes a refusal of our account from a refusal of the
// message.
type TextSender interface {
	SendText(ctx context.Context, t Text) Outcome
}

// TriesOther reports whether another provider may send a text after this outcome. The outcome must prove that the
// provider did not accept the text, for a reason other than the message itself.
func (o Outcome) TriesOther() bool {
	switch {
	case o.Class == NotSent:
		return true
	case o.Class != Rejected || !o.Clear:
		return false
	}
	return o.Reason == ReasonFloat || o.Reason == ReasonSetup || o.Reason == ReasonUnavailable
}

// TextTimeout is the maximum time of an exchange about a text.
const TextTimeout = 20 * time.Second

// TextUnread returns the outcome of a response that does not have the provider's own format. The text was written, so
// the outcome is Unknown for every HTTP status except 429. After a 429 the server did not process the request (RFC
// 6585).
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

// TextPoller queries the state of a text at a provider that sends no reports. ok is false if the response has none.
type TextPoller interface {
	TextState(ctx context.Context, id string) (r Receipt, ok bool)
}

// ReportReader reads a provider's report on a text from the query string.
type ReportReader interface {
	ReadReport(query url.Values) (Receipt, error)
}

// AccountAsker makes a query at a provider of texts that needs valid credentials and sends no text. Accepted means that the
// credentials work. The message may contain the balance at the provider.
type AccountAsker interface {
	AskAccount(ctx context.Context) Outcome
}

// TextRail is one provider of texts over HTTP in one mode.
type TextRail struct {
	Name, Mode string
	Window     int      // maximum number of concurrent requests
	Senders    []string // the sender IDs that the provider accepts; empty: all
	Texts      TextSender
	Account    AccountAsker
	Poller     TextPoller   // nil if the provider sends reports by itself
	Reports    ReportReader // nil if the provider sends no reports
}

// CallbackPath returns the path that receives the provider's reports.
func (r TextRail) CallbackPath(secret config.Secret) string {
	return CallbackPath(secret, Rail{Name: r.Name, Mode: r.Mode})
}

// ErrElsewhere is the result of Ready if another node has the connections to the operator.
var ErrElsewhere = errors.New("provider: another node is connected to the operator")
