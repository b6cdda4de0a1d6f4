// Package moolre is the simulated Moolre: collections with the confirmation of new payers, payouts, their status, names, the list
// of banks, the balance, the list of transactions, and callbacks with the account's secret. docs/providers.md lists its documented
// answers and our inventions.
//
// Files, from the top down; each needs only files below it:
//
//	moolre.go    the paths, and the keys
//	control.go   the controls: the address of callbacks, the confirmation of payers, the sandbox
//	account.go   the balance, the list of transactions and the settings of the account
//	payments.go  collections, payouts, their status and names
//	objects.go   the objects of answers, and callbacks
//	call.go      one request: its body and its answers
//	options.go   the keys, the numbers of networks and the banks
package moolre

import (
	"net/http"
	"strings"

	"github.com/makola/makola/internal/sim"
)

// New returns the part of a simulator that is Moolre.
func New(o Options) sim.Part {
	return func(s *sim.Sim) sim.Provider { return newMoolre(s, o).provider() }
}

func newMoolre(s *sim.Sim, o Options) *moolre {
	m := &moolre{s: s, mux: http.NewServeMux(), settings: o, confirmed: map[string]bool{}}
	for pattern, serve := range map[string]func(http.ResponseWriter, *http.Request, body){
		"POST /open/transact/payment":  m.guarded(payOp, m.collect),
		"POST /open/transact/transfer": m.guarded(fixed(sim.OpDisburse), m.transfer),
		"POST /open/transact/status":   m.guarded(m.statusOp, m.status),
		"POST /open/transact/validate": m.guarded(nameOp, m.name),
		"POST /open/account/status":    m.guarded(fixed(sim.OpBalance), m.account),
		"POST /open/account/update":    m.guarded(fixed(sim.OpRecipient), m.update),
		"GET /open/transact/data":      m.guarded(fixed(sim.OpRecipient), m.data),
	} {
		m.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { serve(w, r, read(r)) })
	}
	return m
}

// guarded returns a handler of requests with the keys of the account. op names the operation of a request.
func (m *moolre) guarded(op func(*http.Request, body) string, serve func(*call)) func(http.ResponseWriter, *http.Request, body) {
	return func(w http.ResponseWriter, r *http.Request, b body) {
		began, ok := m.s.Begin(w, r, Name, op(r, b))
		if !ok {
			return
		}
		c := &call{began, b}
		key, public := r.Header.Get("X-API-KEY"), r.Header.Get("X-API-PUBKEY")
		keyed := key == privateKey || (key == publicKey || public == publicKey) && !strings.HasSuffix(r.URL.Path, "/transfer")
		switch {
		case r.Header.Get("X-API-USER") != user, !keyed && !m.setting().Sandbox && r.Method == http.MethodPost:
			c.refuse(http.StatusUnauthorized, "AIN01", "Authentication Error", nil)
		case !b.whole:
			c.refuse(http.StatusBadRequest, codeInvalid, []string{"The body is no JSON"}, "all")
		case r.Method == http.MethodPost && b.Account != account:
			c.refuse(http.StatusBadRequest, codeInvalid, []string{"Account not found"}, "accountnumber")
		default:
			serve(c)
		}
	}
}

func fixed(op string) func(*http.Request, body) string {
	return func(*http.Request, body) string { return op }
}

// payOp distinguishes a payer's code from a new collection.
func payOp(_ *http.Request, b body) string {
	if b.OTP != "" {
		return sim.OpVoucher
	}
	return sim.OpCollect
}

// nameOp distinguishes the names of bank accounts from those of wallets.
func nameOp(_ *http.Request, b body) string {
	if b.Channel == bankChannel {
		return sim.OpBankName
	}
	return sim.OpWalletName
}

// statusOp distinguishes the status of a collection from the status of a payout. An unknown reference counts as a collection if the
// request has the public key, as documented.
func (m *moolre) statusOp(r *http.Request, b body) string {
	e, known := m.named(b)
	if known && e.Kind == sim.Collection || !known && r.Header.Get("X-API-PUBKEY") != "" {
		return sim.OpCollectStatus
	}
	return sim.OpDisburseStatus
}

func (m *moolre) provider() sim.Provider {
	return sim.Provider{Name: Name, OneBalance: true, Serve: m.mux, Callback: m.callback, Forge: forge, Refusal: refusal, Control: m.controls()}
}

// RefusalAnswers returns useful Answers for refuse and refuse_after.
func RefusalAnswers() []string {
	return sim.RefusalAnswers("200:OBGH02", "400:TP13", "200:TP13", "200:AIN04", "400:AVD02", "404:SS07", "500:TP13")
}

// StatusAnswers returns useful Answers for status_answer. It leaves out the answer for an unknown reference.
func StatusAnswers() []string {
	return sim.StatusAnswers("400:TP13", "200:AIN04", "500:SS07", "200:SS99")
}
