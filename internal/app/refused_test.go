package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/sim/hubtel"
	"github.com/makola/makola/internal/sim/mtn"
	"github.com/makola/makola/internal/test/apitest"
)

// paidAndRefused are orders that a provider carries out and answers with a refusal.
var paidAndRefused = []struct {
	name, provider, operation string
	order                     string // the request, and the values that its answer sets
	end                       string // final state for the customer and in the provider's book
}{
	{"payout", mtn.Name, sim.OpDisburse, `POST /payment-api/send/mobilemoney
{"amount": 1, "account_number": "0240000001", "channel": "MTN", "client_reference": "$ref"}
=> 200
{"message": "*", "data": {"transaction_id": "$id", "...": 0}}`, "provider $id payout success\nwallet 98.9"},
	{"payout", hubtel.Name, sim.OpDisburse, `POST /payment-api/send/mobilemoney
{"amount": 1, "account_number": "0200000001", "channel": "TELECEL", "client_reference": "$ref"}
=> 200
{"message": "*", "data": {"transaction_id": "$id", "...": 0}}`, "provider $id payout success\nwallet 98.9"},
	{"top-up", hubtel.Name, sim.OpTopUp, `POST /airtime-api/sendAirtime
{"phone_number": "0240000001", "amount": 1, "network_id": "$network.mtn", "transaction_id": "$ref"}
=> 200
{"message": "*", "data": {"ext_transaction_id": "$id", "...": 0}}`, "provider $id topup success\nwallet 99"},
	{"collection", mtn.Name, sim.OpCollect, `POST /payment-api/momopay
{"amount": 1, "phone_number": "0240000001", "network": "MTN", "transaction_id": "$ref"}
=> 200
{"message": "*", "data": {"ext_transaction_id": "$id", "...": 0}}`, "provider $id collection success\nwallet 100.9"},
	{"collection", hubtel.Name, sim.OpCollect, `POST /payment-api/momopay
{"amount": 1, "phone_number": "0200000001", "network": "TELECEL", "transaction_id": "$ref"}
=> 200
{"message": "*", "data": {"ext_transaction_id": "$id", "...": 0}}`, "provider $id collection success\nwallet 100.9"},
}

// TestResponses_aloneMoveNoMoney: a provider may answer an accepted payment with anything, on each of its hosts. The status
// query that follows returns the true state, so no payment is refunded or waits for an operator.
func TestResponses_aloneMoveNoMoney(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, s *stage, _ *apitest.Document) {
		for _, order := range paidAndRefused {
			for _, answer := range refusalAnswers[order.provider] {
				refuse := fmt.Sprintf(`fault {"provider": %q, "operation": %q, "fault": "refuse_after", "answer": %q, "count": 1}`, order.provider, order.operation, answer)
				s.say(t, fmt.Sprintf("%s %s %s", order.provider, order.name, answer), refuse, order.order, "advance 60s\nadvance 60s", order.end)
				if answer != "400:html" && answer != "400:9999" {
					continue
				}
				// The payment is not visible yet, and the refusal is not final either.
				lag := fmt.Sprintf(`fault {"provider": %q, "operation": %q, "fault": "status_lag", "delay_s": 50, "seconds": 3600}`, order.provider, order.operation+"_status")
				s.say(t, fmt.Sprintf("%s %s %s, not visible", order.provider, order.name, answer), refuse, lag, order.order,
					"advance 20s\nadvance 20s\nadvance 60s\nadvance 60s\nadvance 120s\nclear faults", order.end)
			}
		}
	})
}

// say plays a scenario that consists of these parts.
func (s *stage) say(t *testing.T, title string, parts ...string) {
	t.Helper()
	all, err := parseScenarios("== " + title + "\n" + strings.Join(parts, "\n") + "\n")
	if err != nil || len(all) != 1 {
		t.Fatalf("%s: %v", title, err)
	}
	t.Run(title, func(t *testing.T) { s.play(t, all[0]) })
}
