package otp

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/config"
	"pgregory.net/rapid"
)

// tapRule closes a range of numbers after few messages.
var tapRule = config.OTPTap{Sends: 10, Within: time.Hour, Wait: 3 * time.Minute, Unverified: 90, Closed: time.Hour}

// A closing time in the future was stored before the clock was set back. It does not keep the range closed.
func TestTap_clockSetBack(t *testing.T) {
	now := morning
	tap := tap{closedAt: now.Add(24 * time.Hour), closedUntil: now.Add(25 * time.Hour), fullAt: now.Add(24 * time.Hour), fullSent: 10}
	if tap.closed(now) != 0 || tap.judge(tapRule, now) || !tap.fullAt.IsZero() {
		t.Errorf("an entry dated in the future closes the tap: %+v", tap)
	}
}

// If more than a tenth of every batch is verified, the range never closes, whatever the order and the times are.
func TestTap_closesForUnverifiedCodesAlone(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var tap tap
		now := morning
		batches := map[int64]int{}
		for range rapid.IntRange(1, 300).Draw(r, "codes") {
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(r, "seconds")) * time.Second)
			if tap.judge(tapRule, now) {
				r.Fatalf("closed: %+v", tap)
			}
			batch := tap.count(tapRule, now)
			if batches[batch]++; batches[batch]%5 == 1 {
				switch batch { // as countVerified does
				case tap.batch:
					tap.verified++
				case tap.fullBatch:
					tap.fullVerified++
				}
			}
		}
	})
}
