package app_test

import (
	"fmt"
	"net/http"
	"testing"
)

// smsCredits are more than any load of messages uses.
const smsCredits = 10_000_000

// centre queries the simulator's message centre over its interface.
type centre struct {
	Address  string `json:"address"`
	SystemID string `json:"system_id"`
	Password string `json:"password"`
	control  *client
}

func messageCentre(t testing.TB, sim *process) *centre {
	t.Helper()
	c := &centre{control: newClient(sim.ready.SimURL, "")}
	c.control.get(t, "/smsc", c)
	return c
}

// counts makes the centre count segments.
func (c *centre) counts(t testing.TB) {
	t.Helper()
	if a, err := c.control.call(http.MethodPost, "/smsc", map[string]any{"counting": true}); err != nil || a.status != http.StatusOK {
		t.Fatalf("the message centre does not count: %v %+v", err, a)
	}
}

// flags returns the flags of a server that sends live messages through the centre.
func (c *centre) flags(more ...string) []string {
	return append([]string{"--smpp-address", c.Address, "--smpp-system-id", c.SystemID, "--smpp-password", c.Password}, more...)
}

// smscTotals has the counters of the message centre.
type smscTotals struct {
	Bound     int   `json:"bound"`
	Accepted  int64 `json:"accepted"`
	Confirmed int64 `json:"confirmed"`   // number of acknowledged receipts
	Again     int   `json:"again"`       // number of segments that arrived more than once
	Lost      int   `json:"not_counted"` // number of segments beyond the limit of the count
}

func (c *centre) totals(t testing.TB) (totals smscTotals) {
	t.Helper()
	c.control.get(t, "/smsc", &totals)
	return totals
}

// smsTenant makes a customer with live messages, and returns its key and sender ID.
func smsTenant(t testing.TB, where site, server *process) (key, sender string) {
	t.Helper()
	var tenant, asked struct {
		ID string `json:"id"`
	}
	var made struct {
		Key string `json:"key"`
	}
	decode(t, where.command(t, "tenant", "create", "Kejetia Market", "--mode", "live", "-o", "json"), &tenant)
	decode(t, where.command(t, "key", "create", "--tenant", tenant.ID, "-o", "json"), &made)
	where.command(t, "credits", "sell", tenant.ID, fmt.Sprint(smsCredits), "--price", "0", "--reason", "load", "--reference", "load")
	answer, err := newClient(server.ready.APIURL, made.Key).call(http.MethodPost, "/sms-api/requestSenderId", map[string]any{"name": "Kejetia", "desc": "load"})
	if err != nil || answer.status != http.StatusOK {
		t.Fatalf("a sender ID was asked for: %v %+v", err, answer)
	}
	decode(t, answer.data, &asked)
	where.command(t, "senders", "approve", asked.ID, "--reason", "load")
	return made.Key, asked.ID
}
