package provider

import (
	"context"
	"errors"
	"time"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/smstext"
)

// Segment is one part of a message as it goes to an operator.
type Segment struct {
	From         string // an approved sender ID, at most 11 characters
	To           msisdn.MSISDN
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

// ErrElsewhere is the Ready of a sender whose connections another node has.
var ErrElsewhere = errors.New("provider: another node is connected to the operator")
