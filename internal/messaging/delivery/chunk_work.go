package delivery

import (
	"time"

	"github.com/makola/makola/internal/messaging/otp"
)

// work is the state of one chunk's delivery. The job of a fresh small chunk carries it in memory; otherwise it is
// read from the rows.
type work struct {
	campaign  Campaign
	chunk     chunk
	text      string        // with the code of a one-time password
	until     time.Time     // the text is not sent later; zero: no end
	turn      int64         // that the last step left
	next      int           // place of the first unclaimed recipient
	claimedAt time.Time     // claim time of the recipients before next that have no row
	retry     []message     // messages with a row that were not sent and are offered again
	offerAt   time.Duration // time of the next offer on the monotonic clock
	stale     bool          // a step failed: only the rows are right
}

// render sets the text, and of a one-time password the time until which it is sent. A code that cannot be made, because
// its row or its key is gone, is not sent.
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

// message makes the message of a recipient that has no row yet.
func (w *work) message(place int, status Status, now time.Time) message {
	return message{Tenant: w.campaign.Tenant, Campaign: w.campaign.ID, No: w.chunk.No*chunkSize + int64(place),
		Recipient: string(w.chunk.Recipients[place]), Status: status, SubmittedAt: now}
}
