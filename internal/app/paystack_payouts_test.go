package app

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/paystack"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/apitest"
)

// All payouts go through Paystack, to a wallet and to a bank: paid, refused, or held for an OTP. Paystack's event settles them,
// because the simulated dashboard has the address of this server.
func TestPaystack_payouts(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, s *stage, _ *apitest.Document) {
		s.routes(t, paystack.Name, route.DisburseWallet, route.DisburseBank)
		const wallet = `POST /payment-api/send/mobilemoney
{"amount": 1, "account_number": "0240000001", "channel": "MTN", "client_reference": "$ref", "callback_url": "$hook"}
=> 200
{"message": "*", "data": {"transaction_id": "$id", "...": 0}}`
		const paid = `webhook {"amount": "1.00", "charges": "0.10", "status": "success", "transaction_id": "$ref", "ext_transaction_id": "$id"}
provider $id payout success
wallet 98.9`
		s.say(t, "wallet", wallet, "advance 3s", paid)
		s.say(t, "answer lost", `fault {"provider": "paystack", "operation": "disburse", "fault": "answer_lost", "count": 1}`, wallet, "advance 60s", paid)
		s.say(t, "nothing arrived", `fault {"provider": "paystack", "operation": "disburse", "fault": "error_before", "count": 1}`, wallet, "advance 60s", paid)
		s.say(t, "recipient's answer lost", `fault {"provider": "paystack", "operation": "recipient", "fault": "answer_lost", "count": 1}`, wallet, "advance 60s", paid)
		s.say(t, "forged, twice and stale events", `fault {"provider": "paystack", "operation": "disburse", "fault": "callback_forged", "count": 1}`,
			`fault {"provider": "paystack", "operation": "disburse", "fault": "callback_duplicate", "count": 1}`,
			`fault {"provider": "paystack", "operation": "disburse", "fault": "callback_stale", "count": 1}`, wallet, "advance 3s\nadvance 3s", paid)
		s.say(t, "documented refusal", `POST /payment-api/send/mobilemoney
{"amount": 1, "account_number": "0240000030", "channel": "MTN", "client_reference": "$ref"}
=> 400
wallet 100`)
		s.say(t, "bank", `POST /payment-api/send/bank
{"amount": 1, "account_number": "1234567890", "bank_id": "$bank", "client_reference": "$ref"}
=> 200
{"message": "*", "data": {"transaction_id": "$id", "...": 0}}
advance 10s
provider $id payout success`)
		held := stepsOf(t, `sim POST /paystack {"otp": true}`, wallet, "advance 5s", "no webhook\nprovider $id payout pending\nwallet 98.9")
		held = append(held, step{do: func(a *actor) {
			stuck, err := s.app.payments.Stuck(t.Context())
			if err != nil || len(stuck) != 1 || stuck[0].Reason != provider.ReasonSetup || stuck[0].Rail != paystack.Name {
				a.t.Errorf("operators see %+v, %v", stuck, err)
			}
		}})
		held = append(held, stepsOf(t, `sim POST /paystack {"otp": false}`, `sim POST /transactions/$id {"action": "succeed"}`, "advance 120s", paid)...)
		t.Run("an OTP is wanted", func(t *testing.T) { s.play(t, scenario{steps: held}) })
	})
}

// stepsOf reads the steps of a scenario made of these parts.
func stepsOf(t *testing.T, parts ...string) []step {
	t.Helper()
	all, err := parseScenarios("== steps\n" + strings.Join(parts, "\n") + "\n")
	if err != nil || len(all) != 1 {
		t.Fatal(err)
	}
	return all[0].steps
}

// An event that Paystack did not sign is refused and settles nothing.
func TestPaystackEvents_forged(t *testing.T) {
	t.Parallel()
	document, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, db.SQLite, document)
	var rail provider.Rail
	for _, r := range s.app.rails {
		if r.Name == paystack.Name {
			rail = r
		}
	}
	answer := controlCall(s.sim.Handler(), "GET", "/paystack", "")
	var settings struct {
		Data struct {
			EventURL string `json:"event_url"`
		}
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &settings); err != nil || settings.Data.EventURL == "" || settings.Data.EventURL != s.app.callbackURL(rail) {
		t.Errorf("events go to %q, %v", settings.Data.EventURL, err)
	}
	path := settings.Data.EventURL[strings.Index(settings.Data.EventURL, "/callbacks/"):]
	if a := plainCall(s.app, "POST", path, `{"event":"transfer.success","data":{"reference":"`+strings.Repeat("0", 32)+`"}}`); a.Code != 400 {
		t.Errorf("a forged event is answered %d", a.Code)
	}
}

// routes returns operations to one provider.
func (s *stage) routes(t *testing.T, name string, operations ...route.Operation) {
	t.Helper()
	err := s.app.db.Write(t.Context(), func(tx *db.Tx) error {
		for _, op := range operations {
			if err := s.app.routes.SetRoute(tx, route.Route{Tenant: route.Any, Mode: "test", Operation: op, Channel: route.Any, Providers: []string{name}, Actor: "test"}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
