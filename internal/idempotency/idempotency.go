// Package idempotency identifies callers and repeated requests. A client that lost an answer sends its request again with the same
// Idempotency-Key. A request that creates a row, such as a payment or a campaign, stores the key in that row. For any other request
// (a sender ID, a contact, a correct code) this package stores the answer in the transaction that did the work. It returns the
// answer for a day. A key is refused if it comes with a different request.
package idempotency

import (
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// Caller identifies the sender of a request, and the request itself if it is repeated.
type Caller struct {
	Tenant         string        // id
	Key            string        // id of the access key
	IdempotencyKey string        // empty: none was sent
	BodyHash       string        // hash of the request, compared when the key is used again
	Trace          string        // traceparent of the request; empty: none
	Daily          money.Pesewas // daily limit of the access key; 0: no limit
}

// Window is how long a key is stored. Afterwards it may be used for another request. The age is measured by
// clock.Age, so that setting a clock forward does not end the window.
const Window = 24 * time.Hour

// Mismatch is the refusal of a key that was used with another request.
func Mismatch() error {
	return problem.New(problem.Invalid, "idempotency_key_mismatch", "The Idempotency-Key was used with another request")
}
