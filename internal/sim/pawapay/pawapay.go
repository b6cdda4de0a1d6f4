// Package pawapay is the simulated pawaPay: deposits, refunds, payouts, the balance and its public keys, version 2, with one API token and
// signed callbacks. docs/providers.md lists its documented answers and our inventions.
//
// Files, from the top down; each needs only files below it:
//
//	pawapay.go    the paths, and the token
//	control.go    the controls of the dashboard: the address of callbacks and the answer to a used id
//	statement.go  the statement's file
//	payments.go   deposits, payouts and refunds, and their status
//	callbacks.go  signed callbacks
//	call.go       one request: its body and its answers
//	account.go    the token, the networks and the test numbers
package pawapay

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/http"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/sim"
)

// New returns the part of a simulator that is pawaPay.
func New(o Options) sim.Part {
	return func(s *sim.Sim) sim.Provider { return newPawaPay(s, o).provider() }
}

func newPawaPay(s *sim.Sim, o Options) *pawapay {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the source of randomness never fails
	}
	p := &pawapay{s: s, mux: http.NewServeMux(), key: key, settings: o}
	for pattern, serve := range map[string]struct {
		op    string
		serve func(*call)
	}{
		"POST /v2/deposits":       {sim.OpCollect, p.deposit},
		"GET /v2/deposits/{id}":   {sim.OpCollectStatus, p.status(deposits)},
		"POST /v2/payouts":        {sim.OpDisburse, p.payout},
		"GET /v2/payouts/{id}":    {sim.OpDisburseStatus, p.status(payouts)},
		"POST /v2/refunds":        {sim.OpDisburse, p.refund},
		"GET /v2/refunds/{id}":    {sim.OpDisburseStatus, p.status(refunds)},
		"GET /v2/wallet-balances": {sim.OpBalance, p.balances},
		"GET /v2/public-key/http": {sim.OpRecipient, p.publicKeys},
	} {
		p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			began, ok := s.Begin(w, r, Name, serve.op)
			if !ok {
				return
			}
			c := &call{began}
			if r.Header.Get("Authorization") != "Bearer "+token {
				c.Write(http.StatusUnauthorized, jsonType, sim.Encode(refused("", "AUTHENTICATION_ERROR", "The API token is invalid")))
				return
			}
			serve.serve(c)
		})
	}
	return p
}

func (p *pawapay) provider() sim.Provider {
	return sim.Provider{Name: Name, OneBalance: true, Serve: p.mux, Callback: p.callback, Statement: statement, Forge: p.forge, Refusal: refusal, Control: p.controls()}
}

// balances answers with the one balance in cedis.
func (p *pawapay) balances(c *call) {
	c.give(map[string]any{"balances": []map[string]any{{"country": country, "balance": amountText(p.s.Float(Name)), "currency": currency, "provider": ""}}})
}

func amountText(amount money.Pesewas) string { return amount.String() }

// RefusalAnswers returns useful Answers for refuse and refuse_after.
func RefusalAnswers() []string {
	return sim.RefusalAnswers("200:INVALID_PHONE_NUMBER", "200:AMOUNT_OUT_OF_BOUNDS", "200:PROVIDER_TEMPORARILY_UNAVAILABLE", "200:UNSPECIFIED_FAILURE", "400:INVALID_INPUT",
		"400:INVALID_PHONE_NUMBER", "500:UNKNOWN_ERROR", "500:INVALID_PHONE_NUMBER")
}

// StatusAnswers returns useful Answers for status_answer.
func StatusAnswers() []string {
	return sim.StatusAnswers("400:INVALID_INPUT", "404:UNKNOWN_ERROR", "500:UNKNOWN_ERROR", "200:UNKNOWN_ERROR")
}
