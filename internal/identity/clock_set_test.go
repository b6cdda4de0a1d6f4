package identity

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/problem"
)

// If the clock is set back, no proof of a person is valid for longer: no second factor, no link and no personal
// token.
func TestProofs_clockSetBack(t *testing.T) {
	each(t, operator, func(f *fixture) {
		f.known()
		v, err := f.attempt(password, "", home)
		if err != nil {
			f.t.Fatal(err)
		}
		key, _ := f.enrol(v)
		f.clock.Advance(codePeriod)
		if v, err = f.attempt(password, f.code(key), home); err != nil {
			f.t.Fatal(err)
		}
		token, _, err := f.NewPersonalToken(f.t.Context(), v, "laptop", home)
		if err != nil {
			f.t.Fatal(err)
		}
		link := f.link()
		f.clock.Set(-30 * time.Second) // the allowed difference between nodes
		_, ofToken := f.Bearer(f.t.Context(), token)
		_, ofLink := f.Link(f.t.Context(), link)
		if !f.SteppedUp(v) || ofToken != nil || ofLink != nil {
			f.t.Fatalf("ended by a small step: %v, %v", ofToken, ofLink)
		}
		f.clock.Set(-time.Hour)
		if f.SteppedUp(v) {
			f.t.Error("the second factor counts an hour before it was given")
		}
		if _, err := f.Bearer(f.t.Context(), token); !problem.Is(err, problem.Forbidden) {
			f.t.Errorf("the personal token works an hour before it was made: %v", err)
		}
		if _, err := f.Link(f.t.Context(), link); !problem.Is(err, problem.Unauthenticated) {
			f.t.Errorf("the link works an hour before it was made: %v", err)
		}
	})
}

// Tries and uses that were counted before the clock was set back do not lock people out.
func TestLimits_clockSetBack(t *testing.T) {
	each(t, operator, func(f *fixture) {
		few := Limit{What: "few", Most: 1, Of: "things"}
		use := func(key string) error {
			return f.Use(f.t.Context(), few, f.person.ID, key, audit.Entry{Actor: f.person.Email, Action: "test", Subject: key})
		}
		for range accountTries {
			if _, err := f.take(f.t.Context(), "ama@example.com", home); err != nil {
				f.t.Fatal(err)
			}
		}
		if err := use("one"); err != nil {
			f.t.Fatal(err)
		}
		for _, back := range []time.Duration{0, 24 * time.Hour} {
			f.clock.Set(-back)
			_, tried := f.take(f.t.Context(), "ama@example.com", home)
			if err := use("another"); problem.Is(tried, problem.RateLimited) != (back == 0) || problem.Is(err, problem.RateLimited) != (back == 0) {
				f.t.Errorf("set back by %v: a try %v, a use %v", back, tried, err)
			}
		}
		if err := use("one"); !problem.Is(err, problem.RateLimited) {
			f.t.Errorf("the limit counts no longer: %v", err)
		}
	})
}
