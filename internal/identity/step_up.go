package identity

import (
	"time"

	"github.com/makola/makola/internal/problem"
)

const (
	// StepUpLasts is how long after a code a person may do actions that need a second factor.
	StepUpLasts = 5 * time.Minute
	// pendingLasts is how long a new factor waits for its first code.
	pendingLasts = 15 * time.Minute
	// RecoveryCodes is the number of recovery codes that are created together.
	RecoveryCodes = 10
)

// errStepUp is returned if the visitor must give the second factor again.
func errStepUp() error {
	return problem.New(problem.Forbidden, "step_up_needed", "Enter a code from your authenticator app: your last one is more than five minutes old")
}

// SteppedUp reports whether the visitor gave the second factor within the last five minutes.
func (i *Identity) SteppedUp(v Visitor) bool {
	at := v.Session.FactorAt
	return !at.IsZero() && i.within(at, at.Add(StepUpLasts))
}
