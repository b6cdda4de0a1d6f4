package payments

import (
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// A standing is everything that the judge goes by.
type standing struct {
	facts
	observed
}

// facts are of the row and the rail at the moment of a judgement. They are never kept for another one.
type facts struct {
	kind   book.Kind
	status book.Status
	// said is a final payment's last word: of its status, or of the provider's
	// latest contradiction. wasContradicted: it was contradicted before.
	said            provider.State
	wasContradicted bool
	waited          bool // the process that follows it saw the last submission end

	mayRepeat    bool          // the provider refuses a duplicate reference distinctly
	visibleAfter time.Duration // of the rail
	unpaidAfter  time.Duration // of the rail
	recovering   bool          // the database went back in time less than visibleAfter ago
}

// factsOf returns the facts of a row and its rail, outside a recovery.
func factsOf(row book.Payment, rail provider.Rail) facts {
	return facts{
		kind: row.Kind, status: row.Status, said: row.ProviderState(), wasContradicted: !row.ContradictedAt.IsZero(), waited: row.Waited(),
		mayRepeat: rail.MayRepeat, visibleAfter: rail.VisibleAfter, unpaidAfter: rail.UnpaidAfter,
	}
}

// observed is what a process saw of the current attempt of a payment. It is rebuilt from the row when a node takes a
// payment over; what the row does not say then counts as unknown, and all ages begin anew.
type observed struct {
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

// standingOf returns the standing of a payment of which its row alone is known, as it was read at a moment.
func standingOf(row book.Payment, rail provider.Rail, read moment) standing {
	return standing{factsOf(row, rail), observedOf(row, rail, read)}
}

// observedOf returns what a row alone, read at a moment, tells of an attempt. A submission that it does not
// mention may have been made. Its times are those of another process, so every age begins at the reading.
func observedOf(row book.Payment, rail provider.Rail, read moment) observed {
	o := observed{
		stage: stageUnsure, arrived: row.Posts - row.Unsent, openedAt: read, sentAt: read,
		lastPost: read.Add(leaveTime + submitTime),
		refusal:  row.Refusal, refusalReason: row.RefusalReason,
	}
	if row.Refusal != book.RefusalNone {
		o.refusedAt, o.refusedLast = read, read
	}
	if !rail.MayRepeat && row.SendingAt.IsZero() && row.Refusal == book.RefusalNone {
		// Every submission on such a rail is marked first, and the mark is taken back when the
		// submission has not got through.
		o.stage, o.turnedAway = stageUnsent, row.Classed && row.Class == provider.Barred
		if !o.turnedAway {
			o.arrived = 0
		}
	}
	return o
}

// sentSince is when a payment may first have left for its rail.
func sentSince(pay book.Payment, rail provider.Rail) time.Time {
	if !pay.SendingAt.IsZero() && !rail.MayRepeat { // it may have waited long for its provider
		return pay.SendingAt
	}
	return pay.CreatedAt
}
