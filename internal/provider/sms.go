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
	// Submit hands one segment over. It blocks while the operator's window or rate is full, so that a
	// caller can never run ahead of the operator, and calls done exactly once, on another goroutine or
	// before it returns: Accepted with the operator's message id in UpstreamID, Rejected, NotSent
	// (not one byte was written, or the operator was too busy to take it: RetryAfter), else Unknown.
	Submit(ctx context.Context, s Segment, done func(Outcome))
	// Ready is nil when there is a bound connection for the network, else why not.
	Ready(n msisdn.Network) error
}

// Delivery is what an operator's receipt says became of a segment.
type Delivery int

// The deliveries. An operator that does not know says DeliveryUnknown, which is final.
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
	To         msisdn.MSISDN // empty when the operator did not tell
}

// ErrElsewhere is the Ready of a sender whose connections another node has.
var ErrElsewhere = errors.New("provider: another node is connected to the operator")
