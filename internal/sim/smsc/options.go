package smsc

import (
	"sync/atomic"
	"time"
)

// Name is the message centre's name, as in faults and paths.
const Name = "smsc"

// The one account of the message centre. SMPP allows 8 characters of password.
const (
	systemID = "makola"
	password = "sim-pass"
)

// IDForm is the form in which the message centre writes message ids.
type IDForm string

// The forms of ids.
const (
	IDText    IDForm = "text"
	IDHex     IDForm = "hex"
	IDDecimal IDForm = "decimal"
)

// Options configure the behaviour of the message centre. They may change while it runs (Set), and then apply to
// existing connections at once.
type Options struct {
	// SubmitIDs is the form of ids in responses to submits, and ReceiptIDs in receipts. Empty means IDText.
	SubmitIDs  IDForm `json:"submit_ids"`
	ReceiptIDs IDForm `json:"receipt_ids"`
	// BareReceipts omits receipted_message_id and message_state.
	BareReceipts bool `json:"bare_receipts"`
	// Rate is the maximum number of segments a second. Further ones are refused with ESME_RTHROTTLED. Zero means no
	// limit.
	Rate int `json:"rate"`
	// Queue is the maximum number of segments that wait for their receipt. Beyond it a submit is refused with
	// ESME_RMSGQFUL. Zero means no limit.
	Queue int `json:"queue"`
	// Binds is the maximum number of bound connections. Zero means no limit.
	Binds int `json:"max_binds"`
	// ReceiptWindow is the maximum number of unacknowledged receipts of one connection. Zero means 100.
	ReceiptWindow int `json:"receipt_window"`
	// Latency is the time between a submit and its response.
	Latency time.Duration `json:"-"`
	// EnquireEvery is the idle time after which enquire_link is sent. Zero means 60 s. After three without a response
	// the connection is closed.
	EnquireEvery time.Duration `json:"-"`
}

func (o Options) withDefaults() Options {
	if o.SubmitIDs == "" {
		o.SubmitIDs = IDText
	}
	if o.ReceiptIDs == "" {
		o.ReceiptIDs = IDText
	}
	if o.ReceiptWindow == 0 {
		o.ReceiptWindow = 100
	}
	if o.EnquireEvery == 0 {
		o.EnquireEvery = time.Minute
	}
	return o
}

// Account has the credentials with which an SMPP client binds to the message centre.
type Account struct {
	Address  string `json:"address"` // host:port of the first listener; empty before Announce
	SystemID string `json:"system_id"`
	Password string `json:"password"`
}

// Totals has counts of the message centre since its start.
type Totals struct {
	Bound     int   `json:"bound"`      // connections that are bound now
	PeakBound int   `json:"peak_bound"` // maximum number of connections bound at once
	Connected int64 `json:"connected"`  // accepted connections
	Binds     int64 `json:"binds"`      // successful binds
	NotBound  int64 `json:"not_bound"`  // refused binds
	Enquiries int64 `json:"enquiries"`  // received enquire_link
	Alive     int64 `json:"alive"`      // responses to sent enquire_link
	Submitted int64 `json:"submitted"`  // received submit_sm
	Accepted  int64 `json:"accepted"`   // accepted segments, with or without a response
	Throttled int64 `json:"throttled"`  // ESME_RTHROTTLED and ESME_RMSGQFUL
	Refused   int64 `json:"refused"`    // all other refusals
	Receipts  int64 `json:"receipts"`   // sent deliver_sm, including repeated ones
	Confirmed int64 `json:"confirmed"`  // acknowledged deliver_sm
	Repeated  int64 `json:"repeated"`   // sent again: refused for now, or the connection ended
	Dropped   int64 `json:"dropped"`    // given up: refused for good, or too many waited
}

// tally has the counts of Totals, except those of connections.
type tally struct {
	connected, binds, notBound, enquiries, alive atomic.Int64
	submitted, accepted, throttled, refused      atomic.Int64
	receipts, confirmed, repeated, dropped       atomic.Int64
}

func (t *tally) totals() Totals {
	return Totals{
		Connected: t.connected.Load(), Binds: t.binds.Load(), NotBound: t.notBound.Load(), Enquiries: t.enquiries.Load(), Alive: t.alive.Load(),
		Submitted: t.submitted.Load(), Accepted: t.accepted.Load(), Throttled: t.throttled.Load(), Refused: t.refused.Load(),
		Receipts: t.receipts.Load(), Confirmed: t.confirmed.Load(), Repeated: t.repeated.Load(), Dropped: t.dropped.Load(),
	}
}
