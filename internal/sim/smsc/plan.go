package smsc

import (
	"time"

	"github.com/makola/makola/internal/sim"
)

// heldBack is the delay of a receipt from which on the handset was out of
// reach: its text arrives with the receipt, not before.
const heldBack = 5 * time.Second

// PlanFor returns the plan of a message to this number. A message reads the fields of an order's Plan in its own way.
// Refuse is a refusal in the answer. Down is a full queue for 60 s. Delay is the time until the receipt, and Success
// a delivery. Wait and NoCallback mean no receipt. Lost means no answer, while the connection stays. Garbled is an
// answer without a legible id. A callback is a receipt.
func PlanFor(number string) sim.Plan {
	p := sim.Plan{Delay: sim.SettleSoon, Then: sim.Success}
	code, _ := sim.Magic(number)
	fail := func(r sim.Reason) sim.Plan {
		p.Then, p.Reason = sim.Failed, r
		return p
	}
	switch code {
	case "001":
		p.Delay = 0
	case "002":
		p.Delay = 45 * time.Second
	case "003":
		p.Wait = true
	case "004":
		p.Twice = true
	case "006":
		p.Lost, p.Delay = true, 3*time.Second
	case "007":
		p.Lost, p.Delay = true, 3*time.Second
		return fail(sim.Internal)
	case "008":
		p.Stale = true
	case "020":
		p.Refuse = sim.Refused
	case "021":
		p.Delay = 10 * time.Second
		return fail(sim.Expired)
	case "024":
		return fail(sim.NotRegistered)
	case "026":
		return fail(sim.Barred)
	case "031":
		p.Down = true
	case "032":
		p.Garbled = true
	}
	return p
}
