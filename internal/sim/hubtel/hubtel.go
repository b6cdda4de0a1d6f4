// Package hubtel is the simulated Hubtel: its interfaces of payments, verification, airtime, data packages and
// balances, with one Basic credential and a list of addresses that may call. docs/providers.md lists its documented
// answers and our inventions.
//
// Files, from the top down; each needs only files below it:
//
//	hubtel.go    the paths, and the callers that are allowed
//	money.go, services.go  payments; airtime, packages and names
//	call.go      one request: its body, its order, the reasons against it
//	statement.go the statement's file
//	answers.go   the envelopes and codes of answers
//	account.go   account and credentials, networks and banks
package hubtel

import (
	"net/http"
	"net/netip"

	"github.com/makola/makola/internal/sim"
)

// New returns Hubtel as a part of a simulator.
func New(o Options) sim.Part {
	return func(s *sim.Sim) sim.Provider { return newHubtel(s, o).provider() }
}

func newHubtel(s *sim.Sim, o Options) *hubtel {
	h := &hubtel{s: s, mux: http.NewServeMux(), allowed: o.Allowed, used: map[string]bool{}}
	for pattern, serve := range map[string]struct {
		op      string
		account string
		serve   func(*call)
	}{
		"POST /rmp/merchantaccount/merchants/{account}/receive/mobilemoney": {sim.OpCollect, posSales, h.collect},
		"GET /api-txnstatus/transactions/{account}/status":                  {sim.OpCollectStatus, posSales, h.transactionStatus},
		"POST /smp/api/merchants/{account}/send/mobilemoney":                {sim.OpDisburse, prepaid, h.sendWallet},
		"POST /smp/api/merchants/{account}/send/bank/gh/{bank}":             {sim.OpDisburse, prepaid, h.sendBank},
		"GET /smrsc/api/merchants/{account}/transactions/status":            {sim.OpDisburseStatus, prepaid, h.sendStatus},
		"GET /rnv/v2/merchantaccount/merchants/{account}/mobilemoney/verify": {
			sim.OpWalletName, posSales, h.walletName},
		"GET /rnv/v2/merchantaccount/merchants/{account}/bank/verify/{bank}/{number}": {
			sim.OpBankName, posSales, h.bankName},
		"GET /cs/commissionservices/{account}/" + simNameService: {sim.OpWalletName, posSales, h.simName},
		"GET /cs/commissionservices/{account}/{service}":         {sim.OpOffers, prepaid, h.offers},
		"POST /cs/commissionservices/{account}/{service}":        {sim.OpTopUp, prepaid, h.sell},
		"GET /trnf/api/inter-transfers/{account}":                {sim.OpBalance, posSales, h.balance},
		"GET /trnf/api/inter-transfers/prepaid/{account}":        {sim.OpBalance, prepaid, h.balance},
	} {
		h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			h.guarded(w, r, h.operation(serve.op, r), serve.account, serve.serve)
		})
	}
	return h
}

func (h *hubtel) provider() sim.Provider {
	return sim.Provider{Name: Name, Serve: h.mux, Callback: callback, Statement: statement, Refusal: refusal}
}

// RefusalAnswers returns useful Answers for refuse and refuse_after: all codes that Hubtel documents, and refusals
// below HTTP 500.
func RefusalAnswers() []string {
	return sim.RefusalAnswers("2000", "2001", "2050", "2051", "2200", "2201", "3050", "4000", "400:4000", "4010", "400:4010", "4070", "4075", "4101",
		"400:4101", "4103", "4105", "5000", "400:5000", "0005", "500:2001", "500:4075")
}

// StatusAnswers returns useful Answers for status_answer.
func StatusAnswers() []string {
	return sim.StatusAnswers("200:2001", "200:0000", "200:0005", "200:5000", "200:4101", "404:4004", "400:4000", "500:3000")
}

// operation returns the operation of a path that several operations share. Airtime and data share all paths, and
// share the status path with collections.
func (h *hubtel) operation(op string, r *http.Request) string {
	switch op {
	case sim.OpTopUp:
		if services[r.PathValue("service")].kind == sim.Bundle {
			return sim.OpBundle
		}
	case sim.OpCollectStatus:
		e, _ := h.s.Status(Name, r.URL.Query().Get("clientReference"))
		switch e.Kind {
		case sim.TopUp:
			return sim.OpTopUpStatus
		case sim.Bundle:
			return sim.OpBundleStatus
		}
	}
	return op
}

// guarded serves a request from a listed address with the right credential and account. Other addresses get a
// gateway's response in HTML.
func (h *hubtel) guarded(w http.ResponseWriter, r *http.Request, op, account string, serve func(*call)) {
	began, ok := h.s.Begin(w, r, Name, op)
	if !ok {
		return
	}
	c := &call{began}
	user, secret, _ := r.BasicAuth()
	switch {
	case !h.listed(r.RemoteAddr):
		c.Write(http.StatusForbidden, "text/html", []byte("<html>\r\n<head><title>403 Forbidden</title></head>\r\n<body>\r\n<center><h1>403 Forbidden</h1></center>\r\n</body>\r\n</html>\r\n"))
	case user != clientID || secret != clientSecret:
		c.Write(http.StatusUnauthorized, "application/json", []byte(`{"Message":"Unauthorized"}`))
	case r.PathValue("account") != account:
		c.reject(http.StatusBadRequest, "4101", "The business isn't fully set up to do this.", nil)
	default:
		serve(c)
	}
}

func (h *hubtel) listed(remote string) bool {
	if len(h.allowed) == 0 {
		return true
	}
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return false
	}
	for _, p := range h.allowed {
		if p.Contains(at.Addr().Unmap()) {
			return true
		}
	}
	return false
}
