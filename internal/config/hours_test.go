package config

import (
	"testing"
	"time"
)

// Promotional texts wait from Saturday evening to Monday morning.
func TestHours_next(t *testing.T) {
	var h Hours
	if err := h.UnmarshalText([]byte("mon-sat 08:00-19:00")); err != nil || h.String() != "mon-sat 08:00-19:00" {
		t.Fatalf("%v, %v", h, err)
	}
	for at, want := range map[string]string{
		"2026-11-28T21:30:00Z":      "2026-11-30T08:00:00Z", // Saturday
		"2026-11-28T18:59:59Z":      "2026-11-28T18:59:59Z",
		"2026-11-28T19:00:00Z":      "2026-11-30T08:00:00Z",
		"2026-11-29T12:00:00Z":      "2026-11-30T08:00:00Z", // Sunday
		"2026-11-30T07:59:59Z":      "2026-11-30T08:00:00Z",
		"2026-11-30T08:00:00Z":      "2026-11-30T08:00:00Z",
		"2026-11-30T09:30:00+02:00": "2026-11-30T08:00:00Z", // another zone's morning
		"2026-12-31T20:00:00Z":      "2027-01-01T08:00:00Z",
	} {
		now, _ := time.Parse(time.RFC3339, at)
		if got := h.Next(now).UTC().Format(time.RFC3339); got != want {
			t.Errorf("after %s: %s, want %s", at, got, want)
		}
	}
	now := time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)
	if got := (Hours{}).Next(now); !got.Equal(now) {
		t.Errorf("always: %v", got)
	}
	for _, text := range []string{"", "mon-sat", "sat-mon 08:00-19:00", "mon-sat 19:00-08:00", "mon-sat 8-19", "mon-sat 08:00-25:00", "daily 08:00-19:00"} {
		if err := new(Hours).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
