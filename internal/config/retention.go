package config

import (
	"fmt"
	"time"
)

// Retention has the times for which rows without money are kept. Rows of payments, transfers, credits and the audit
// log are kept for ever. Zero means the default.
type Retention struct {
	Exchanges time.Duration `name:"exchanges" env:"EXCHANGES" default:"2160h" help:"How long requests to providers and their responses are kept, as evidence for payments; at least 24h."`
	Requests  time.Duration `name:"requests" env:"REQUESTS" default:"720h" help:"How long refused and failed requests are kept; at least 24h."`
	Webhooks  time.Duration `name:"webhooks" env:"WEBHOOKS" default:"720h" help:"How long an event and its attempts are kept after the event ended; at least 24h."`
	OTPs      time.Duration `name:"otps" env:"OTPS" default:"168h" help:"How long the number and the hashed code of a one-time password are kept after it expired; at least 24h."`
	Incoming  time.Duration `name:"incoming" env:"INCOMING" default:"2160h" help:"How long texts from handsets are kept; at least 24h."`
	Texts     time.Duration `name:"texts" env:"TEXTS" default:"0" help:"How long the texts of finished campaigns are kept, counted from the request; 0 keeps them forever, otherwise at least 24h."`
}

// leastRetention is the minimum. Support staff need the rows of at least one day.
const leastRetention = 24 * time.Hour

// Validate returns an error for a time below the minimum.
func (r Retention) Validate() error {
	for _, s := range []struct {
		name string
		keep time.Duration
	}{{"exchanges", r.Exchanges}, {"requests", r.Requests}, {"webhooks", r.Webhooks}, {"otps", r.OTPs}, {"incoming", r.Incoming}} {
		if s.keep < leastRetention {
			return fmt.Errorf("--keep-%s is %v; it must be at least %v", s.name, s.keep, leastRetention)
		}
	}
	if r.Texts != 0 && r.Texts < leastRetention {
		return fmt.Errorf("--keep-texts is %v; it must be 0 (for ever) or at least %v", r.Texts, leastRetention)
	}
	return nil
}
