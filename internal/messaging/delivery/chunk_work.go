package delivery

import (
	"time"

	"github.com/makola/makola/internal/messaging/otp"
)

// work is the state of one chunk's delivery. For a new small chunk, the job has it in memory. Otherwise it is read
// from the rows.
type work struct {
	campaign  Campaign
	chunk     chunk
	text      string        // includes the code of a one-time password
	until     time.Time     // time after which the text is not sent; zero: no limit
	turn      int64         // turn that the last step set
	next      int           // place of the first unclaimed recipient
	claimedAt time.Time     // claim time of the recipients before next that have no row
	retry     []message     // messages with a row that were not sent and are offered again
	offerAt   time.Duration // time of the next offer on the monotonic clock
	stale     bool          // a step failed, so only the rows are correct
}

// render sets the text, and for a one-time password also until. A one-time password whose code cannot be computed is
// not sent. That is so if the code's row or key no longer exists.
func (w *work) render(codes *otp.Codes, code *otp.Code) {
	w.text = w.campaign.Message
	if w.campaign.Kind != KindOTP {
		return
	}
	var known bool
	if w.text, known = codes.Text(w.campaign.Message, code); known {
		w.until = code.Expires
	} else {
		w.until = w.campaign.CreatedAt
	}
}

// textOf returns the text of the message with a number.
func (w *work) textOf(no int64) string {
	if w.chunk.Texts == nil {
		return w.text
	}
	return w.chunk.Texts[no-w.chunk.No*chunkSize]
}

// expired reports whether a one-time password is too old to be sent.
func (w *work) expired(now time.Time) bool { return !w.until.IsZero() && !now.Before(w.until) }

// claim returns up to most next messages to claim.
func (w *work) claim(now time.Time, most int) []message {
	var slice []message
	for place := w.next; place < len(w.chunk.Recipients) && len(slice) < most; place++ {
		slice = append(slice, w.message(place, StatusSending, now))
	}
	return slice
}

// message returns the message of a recipient that has no row yet.
func (w *work) message(place int, status Status, now time.Time) message {
	return message{Tenant: w.campaign.Tenant, Campaign: w.campaign.ID, No: w.chunk.No*chunkSize + int64(place),
		Recipient: string(w.chunk.Recipients[place]), Status: status, SubmittedAt: now}
}
