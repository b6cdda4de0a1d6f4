package identity

import (
	"time"
)

// The life and the number of personal tokens.
const (
	TokenLasts = 12 * time.Hour
	MostTokens = 10 // of a person at once
	// TokensWait is how long personal tokens can neither be made nor used after a first factor. Somebody else may have enrolled
	// it: the person, whose other sessions it ended, has the hour to notice.
	TokensWait = time.Hour
	// tokenPrefix lets a scanner know a leaked token.
	tokenPrefix  = "mk_person_"
	maxTokenName = 60
)

// tokensFrom returns when personal tokens work after a first factor. Zero stays zero.
func tokensFrom(firstAt time.Time) time.Time {
	if firstAt.IsZero() {
		return time.Time{}
	}
	return firstAt.Add(TokensWait)
}
