package messaging

import (
	"sync"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/problem"
)

func TestVerify_repeatedWithSameKey(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		sent, code := h.mustOTP(OTP{})
		verify := func(key, body string) (bool, error) {
			return h.Codes.Verify(t.Context(), idempotency.Caller{Tenant: "shop", IdempotencyKey: key, BodyHash: body}, sent.RequestID, ama, code)
		}
		replays, failures := make([]bool, 4), make([]error, 4) // four at once, because a code has five tries
		var all sync.WaitGroup
		for i := range replays {
			all.Go(func() { replays[i], failures[i] = verify("key", "body") })
		}
		all.Wait()
		firsts := 0
		for i, replayed := range replays {
			if !replayed {
				firsts++
			}
			if failures[i] != nil {
				t.Error(failures[i])
			}
		}
		if firsts != 1 {
			t.Errorf("the code was used %d times", firsts)
		}
		if replayed, err := verify("key", "body"); err != nil || !replayed {
			t.Errorf("the same again: replayed %v, %v", replayed, err)
		}
		if replayed, err := verify("key", "another body"); replayed || !problem.Is(err, problem.Invalid) {
			t.Errorf("another request with the key: replayed %v, %v", replayed, err)
		}
		if replayed, err := verify("another key", "body"); replayed || !problem.Is(err, problem.Unauthenticated) {
			t.Errorf("the code with another key: replayed %v, %v", replayed, err)
		}
	})
}
