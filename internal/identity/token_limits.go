package identity

import (
	"time"
)

// The lifetime and the number of personal tokens.
const (
	TokenLasts = 12 * time.Hour
	MostTokens = 10 // tokens of one person at the same time
	// TokensWait is how long after a first factor personal tokens can neither be created nor used. Somebody else may
	// have enrolled the factor. The person's other sessions ended then, so the person can notice within the hour.
	TokensWait = time.Hour
	// tokenPrefix lets secret scanners recognise a leaked token.
	tokenPrefix  = "mk_person_"
	maxTokenName = 60
)

// tokensFrom returns when personal tokens work after a first factor. It returns zero for a zero time.
func tokensFrom(firstAt time.Time) time.Time {
	if firstAt.IsZero() {
		return time.Time{}
	}
	return firstAt.Add(TokensWait)
}
