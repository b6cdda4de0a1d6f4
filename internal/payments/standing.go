package payments

import (
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// A standing is what is known of the current attempt of a payment: everything
// that the judge goes by. It is rebuilt from the row when a node takes a payment
// over; what the row does not say then counts as unknown, and all ages begin anew.
type standing struct {
	kind   book.Kind
	status book.Status
	// said is a final payment's last word: of its status, or of the provider's
	// latest contradiction. wasContradicted: it was contradicted before.
	said            provider.State
	wasContradicted bool

	mayRepeat    bool          // the provider refuses a duplicate reference distinctly
	visibleAfter time.Duration // of the rail
	unpaidAfter  time.Duration // of the rail
	recovering   bool          // the database went back in time less than visibleAfter ago

	arrived    int    // submissions not proven unsent, the one just answered included
	turnedAway bool   // each of them was answered 401, 403 or 429
	stage      stage  // how far the attempt is
	openedAt   moment // when this node began with it
	sentAt     moment // when this node submitted it last, or read that it was submitted
	lastPost   moment // when the last submission may have left
	acceptedAt moment // when the provider first said that it has it
	doubtAt    moment // since when it is unknown
	unpaidAt   moment // the first Unpaid that was old enough

	refusal       book.Refusal
	refusalReason string
	refusedAt     moment // the first refusal that stands
	refusedLast   moment // the last one
	reads         int    // questions that the provider did not know, since it was last accepted

	waited bool // the process that follows it saw the last submission end
}

// A stage is how far the current attempt is.
type stage uint8

const (
	stageUnsent stage = iota // nothing says that a submission arrived: submit it
	stageUnsure              // it may have been sent by another process: ask, and submit only what may be repeated
	stageSent                // the provider said that it has it: ask
)

// submitTime is what a provider may take to answer a submission, and leaveTime how long after the row said so a
// submission may begin.
const (
	submitTime = 30 * time.Second
	leaveTime  = 30 * time.Second
)

// onItsWay is how long after its row was read a submission may be under way, of this process or of another one.
const onItsWay = leaveTime + submitTime + clock.Skew

// standingOf returns what a row alone, read at a moment, tells of an attempt. A submission that it does not
// mention may have been made. Its times are those of another process, so every age begins at the reading.
func standingOf(row book.Payment, rail provider.Rail, read moment) standing {
	s := standing{
		stage: stageUnsure, arrived: row.Posts - row.Unsent, openedAt: read, sentAt: read,
		lastPost: read.Add(leaveTime + submitTime),
		refusal:  row.Refusal, refusalReason: row.RefusalReason,
	}
	if row.Refusal != book.RefusalNone {
		s.refusedAt, s.refusedLast = read, read
	}
	if !rail.MayRepeat && row.SendingAt.IsZero() && row.Refusal == book.RefusalNone {
		// Every submission on such a rail is marked first, and the mark is taken back when the
		// submission has not got through.
		s.stage, s.turnedAway = stageUnsent, row.Classed && row.Class == provider.Barred
		if !s.turnedAway {
			s.arrived = 0
		}
	}
	s.row(row, rail)
	return s
}

// row fills in what the judge reads from the row and the rail alone.
func (s *standing) row(row book.Payment, rail provider.Rail) {
	s.kind, s.status, s.said, s.wasContradicted = row.Kind, row.Status, row.ProviderState(), !row.ContradictedAt.IsZero()
	s.mayRepeat, s.visibleAfter, s.unpaidAfter = rail.MayRepeat, rail.VisibleAfter, rail.UnpaidAfter
	s.waited = row.Waited()
}

// sentSince is when a payment may first have left for its rail.
func sentSince(pay book.Payment, rail provider.Rail) time.Time {
	if !pay.SendingAt.IsZero() && !rail.MayRepeat { // it may have waited long for its provider
		return pay.SendingAt
	}
	return pay.CreatedAt
}
