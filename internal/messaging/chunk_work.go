package messaging

import (
	"time"
)

// work is what is to be done about a chunk that was just accepted.
func (k otpKeys) work(c Campaign, part chunk, otp *otpRow) *work {
	w := &work{campaign: c, chunk: part, turn: c.turn}
	k.render(w, otp)
	return w
}

// render makes the text that is sent.
func (k otpKeys) render(w *work, otp *otpRow) {
	w.text = w.campaign.Message
	if otp != nil {
		w.text, w.until = k.text(w.campaign, otp.length), otp.expires
	}
}

// work is what a chunk's handler needs. Fresh jobs of small campaigns carry it in memory; any other is
// read.
type work struct {
	campaign Campaign
	chunk    chunk
	text     string        // what is sent
	until    time.Time     // it is not sent later than this; zero: no end
	turn     int64         // of the last step
	next     int           // place of the first recipient that is not marked
	markedAt time.Time     // when those before it were marked that have no row
	retry    []message     // have a row, were not sent, and are offered again
	offerAt  time.Duration // when, by what has passed: the clock may be set
	stale    bool          // a step failed: the rows are the truth
}

// expired says that the text must not be sent any more: a one-time password that is over.
func (w *work) expired(now time.Time) bool { return !w.until.IsZero() && !now.Before(w.until) }

// claim are the next messages that are marked, at most so many.
func (w *work) claim(now time.Time, most int) []message {
	var slice []message
	for place := w.next; place < len(w.chunk.Recipients) && len(slice) < most; place++ {
		slice = append(slice, w.message(place, StatusSending, now))
	}
	return slice
}

// message is one to a recipient who has no row yet.
func (w *work) message(place int, status Status, now time.Time) message {
	return message{Tenant: w.campaign.Tenant, Campaign: w.campaign.ID, No: w.chunk.No*chunkSize + int64(place),
		Recipient: string(w.chunk.Recipients[place]), Status: status, SubmittedAt: now}
}
