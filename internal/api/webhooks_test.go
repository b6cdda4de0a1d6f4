package api

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/webhook"
)

// The cursor of a page contains the page's last webhook.
func TestCursor_namesLastWebhook(t *testing.T) {
	d := webhook.Delivery{Subject: "payment", ID: "event", EndedAt: time.UnixMicro(1_770_000_000_000_001)}
	if c := readCursor("", cursorOf("", d)); c == nil || c.Subject != d.Subject || c.ID != d.ID {
		t.Errorf("in the list of all: %+v", c)
	}
	if c := readCursor(webhook.Failed, cursorOf(webhook.Failed, d)); c == nil || !c.EndedAt.Equal(d.EndedAt) || c.ID != d.ID {
		t.Errorf("in the list of those that were given up: %+v", c)
	}
	if c := readCursor(webhook.Failed, cursorOf("", d)); c != nil {
		t.Errorf("of another list: %+v", c)
	}
}
