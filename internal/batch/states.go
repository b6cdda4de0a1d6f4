package batch

import (
	"slices"

	"github.com/makola/makola/internal/problem"
)

// Status is the state of a batch. The database stores these names, so they never change.
type Status string

// The states.
const (
	Draft     Status = "draft"     // its rows can be corrected
	Requested Status = "requested" // its rows are frozen and wait for an approval
	Running   Status = "running"   // its money is reserved, and its rows are accepted
	Paused    Status = "paused"
	Finished  Status = "finished"  // each row is accepted or refused; payouts may still be open
	Cancelled Status = "cancelled" // the rest of the reserve is back in the wallet
	Void      Status = "void"      // a recovery ended it before it began
)

// States are all states of a batch.
func States() []Status {
	return []Status{Draft, Requested, Running, Paused, Finished, Cancelled, Void}
}

// event is the cause of a transition.
type event string

const (
	eventRequest  event = "request"
	eventWithdraw event = "withdraw"
	eventStart    event = "start"
	eventPause    event = "pause"
	eventResume   event = "resume"
	eventFinish   event = "finish"
	eventCancel   event = "cancel"
	eventVoid     event = "void"
)

// transitions are all transitions of a batch. A discarded draft is deleted.
var transitions = []struct {
	event event
	from  []Status
	to    Status
}{
	{eventRequest, []Status{Draft}, Requested},
	{eventWithdraw, []Status{Requested}, Draft},
	{eventStart, []Status{Requested}, Running},
	{eventPause, []Status{Running}, Paused},
	{eventResume, []Status{Paused}, Running},
	{eventFinish, []Status{Running}, Finished},
	{eventCancel, []Status{Running, Paused}, Cancelled},
	{eventVoid, []Status{Draft, Requested}, Void},
}

// after returns the state to which an event moves a batch, or refuses it.
func (s Status) after(e event) (Status, error) {
	for _, t := range transitions {
		if t.event == e && slices.Contains(t.from, s) {
			return t.to, nil
		}
	}
	return s, problem.New(problem.Invalid, "batch_status", "The batch is "+s.words())
}

// words returns the state as it follows "The batch is".
func (s Status) words() string {
	if s == Draft {
		return "a draft"
	}
	return string(s)
}

// Cause is the reason why a batch is paused: one of those below, or a payments.RowCause.
type Cause string

// The causes that are no payments.RowCause. Stored; never renamed.
const (
	CausePerson   Cause = "person"
	CauseProgram  Cause = "program" // an API key paused it
	CauseRecovery Cause = "recovery"
	CauseKey      Cause = "key_revoked"
	CauseAltered  Cause = "altered" // its stored rows differ from the approved ones
)

// RowState is the state of a row. It is stored, so a value is never renamed.
type RowState string

// The states of rows. A ready row of a batch that has ended was not paid. Its money was returned to the wallet.
const (
	RowBad      RowState = "bad"
	RowReady    RowState = "ready"
	RowDropped  RowState = "dropped"
	RowAccepted RowState = "accepted"
	RowRefused  RowState = "refused"
)
