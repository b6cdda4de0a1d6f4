package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Hours are the hours of a week in which promotional texts go out, in Accra's time, which is UTC. The zero value is
// every hour.
type Hours struct {
	days        [7]bool // by time.Weekday
	from, until time.Duration
}

// weekdays are the names of days in the order of a week.
var weekdays = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// UnmarshalText reads DAY-DAY HH:MM-HH:MM, such as "mon-sat 08:00-19:00", or "always".
func (h *Hours) UnmarshalText(text []byte) error {
	wrong := fmt.Errorf("%q must be DAY-DAY HH:MM-HH:MM, such as mon-sat 08:00-19:00, or always", text)
	if string(text) == "always" {
		*h = Hours{}
		return nil
	}
	days, hours, _ := strings.Cut(string(text), " ")
	first, last, _ := strings.Cut(days, "-")
	begin, end, _ := strings.Cut(strings.TrimSpace(hours), "-")
	from, until := slices.Index(weekdays, strings.ToLower(first)), slices.Index(weekdays, strings.ToLower(last))
	opens, err := time.Parse("15:04", begin)
	closes, err2 := time.Parse("15:04", end)
	if from < 0 || until < from || err != nil || err2 != nil || !opens.Before(closes) {
		return wrong
	}
	read := Hours{from: sinceMidnight(opens), until: sinceMidnight(closes)}
	for i := from; i <= until; i++ {
		read.days[(i+1)%7] = true
	}
	*h = read
	return nil
}

// String is the hours as they are set.
func (h Hours) String() string {
	if h.always() {
		return "always"
	}
	var days []string
	for i, name := range weekdays {
		if h.days[(i+1)%7] {
			days = append(days, name)
		}
	}
	at := func(d time.Duration) string { return time.Time{}.Add(d).Format("15:04") }
	return days[0] + "-" + days[len(days)-1] + " " + at(h.from) + "-" + at(h.until)
}

func (h Hours) always() bool { return h.until == 0 }

func sinceMidnight(t time.Time) time.Duration {
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second + time.Duration(t.Nanosecond())
}

// Next returns t if it is in the hours, or else when the hours begin next.
func (h Hours) Next(t time.Time) time.Time {
	if h.always() {
		return t
	}
	t = t.UTC()
	for day := 0; ; day++ {
		midnight := time.Date(t.Year(), t.Month(), t.Day()+day, 0, 0, 0, 0, time.UTC)
		if !h.days[midnight.Weekday()] {
			continue
		}
		switch passed := t.Sub(midnight); {
		case passed < h.from:
			return midnight.Add(h.from)
		case passed < h.until:
			return t
		}
	}
}
