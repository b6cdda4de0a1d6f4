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

// IDForm is how the message centre writes the ids of messages.
type IDForm string

// The forms of ids.
const (
	IDText    IDForm = "text"
	IDHex     IDForm = "hex"
	IDDecimal IDForm = "decimal"
)

// Options are the habits of the message centre. They may change while it
// runs (Set); connections that are bound notice at once.
type Options struct {
	// SubmitIDs is the form of ids in answers to submits, ReceiptIDs in
	// receipts; empty means IDText.
	SubmitIDs  IDForm `json:"submit_ids"`
	ReceiptIDs IDForm `json:"receipt_ids"`
	// BareReceipts leaves receipted_message_id and message_state out.
	BareReceipts bool `json:"bare_receipts"`
	// Rate is how many segments a second are taken; the rest is answered
	// with ESME_RTHROTTLED. Zero: any number.
	Rate int `json:"rate"`
	// Queue is how many segments may wait for their receipt; beyond it a
	// submit is answered with ESME_RMSGQFUL. Zero: any number.
	Queue int `json:"queue"`
	// Binds is how many connections may be bound at once; zero: any number.
	Binds int `json:"max_binds"`
	// ReceiptWindow is how many receipts one connection may owe an
	// acknowledgement for; zero: 100.
	ReceiptWindow int `json:"receipt_window"`
	// Latency passes between a submit and its answer.
	Latency time.Duration `json:"-"`
	// EnquireEvery is the silence after which a connection is asked for a
	// sign of life; zero: 60 s. After three without one it is closed.
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

// Account holds the credentials of an SMPP client for a bind with the message centre.
type Account struct {
	Address  string `json:"address"` // host:port of the first listener; empty before it is announced
	SystemID string `json:"system_id"`
	Password string `json:"password"`
}

// Totals are the counts of the message centre since its start.
type Totals struct {
	Bound     int   `json:"bound"`      // connections that are bound now
	PeakBound int   `json:"peak_bound"` // the most at once
	Connected int64 `json:"connected"`  // connections taken
	Binds     int64 `json:"binds"`      // that succeeded
	NotBound  int64 `json:"not_bound"`  // binds that were refused
	Enquiries int64 `json:"enquiries"`  // enquire_link that came in
	Alive     int64 `json:"alive"`      // answers to those that went out
	Submitted int64 `json:"submitted"`  // submit_sm that came in
	Accepted  int64 `json:"accepted"`   // of those, segments taken, answered or not
	Throttled int64 `json:"throttled"`  // ESME_RTHROTTLED and ESME_RMSGQFUL
	Refused   int64 `json:"refused"`    // any other no
	Receipts  int64 `json:"receipts"`   // deliver_sm sent, the repeated as well
	Confirmed int64 `json:"confirmed"`  // of those, acknowledged
	Repeated  int64 `json:"repeated"`   // sent again: refused for now, or the connection ended
	Dropped   int64 `json:"dropped"`    // given up: refused for good, or far too many waited
}

// tally counts for Totals, except connections.
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
