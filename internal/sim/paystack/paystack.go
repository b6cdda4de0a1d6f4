// Package paystack is the simulated Paystack: charges, refunds, recipients, transfers, names, the list of banks and the balance,
// with one secret key, and signed events. docs/providers.md lists its documented answers and our inventions.
//
// Files, from the top down; each needs only files below it:
//
//	paystack.go  the paths, and the key
//	control.go   the controls of the dashboard: OTPs of transfers and the address of events
//	statement.go the ledger of the balance, as a file
//	names.go     names, the list of banks and the ledger of the balance
//	money.go     recipients, transfers and the balance
//	events.go    signed events
//	charge.go    charges, vouchers and their status
//	refund.go    refunds of charges
//	charge_answers.go
//	             the objects of charges and refunds
//	call.go      one request: its body and its refusals
//	answers.go   the objects of answers
//	account.go   the key, the business and the banks
package paystack

import (
	"net/http"

	"github.com/makola/makola/internal/sim"
)

// New returns the part of a simulator that is Paystack.
func New(o Options) sim.Part {
	return func(s *sim.Sim) sim.Provider { return newPaystack(s, o).provider() }
}

func newPaystack(s *sim.Sim, o Options) *paystack {
	p := &paystack{s: s, mux: http.NewServeMux(), otp: o.OTP, eventURL: o.EventURL, recipients: map[string]recipient{}, vouched: map[string]bool{}}
	for pattern, serve := range map[string]struct {
		op    string
		serve func(*call)
	}{
		"POST /transferrecipient":                       {sim.OpRecipient, p.createRecipient},
		"POST /transfer":                                {sim.OpDisburse, p.transfer},
		"POST /transfer/bulk":                           {sim.OpDisburse, p.bulk},
		"POST /transfer/finalize_transfer":              {sim.OpRecipient, p.finalize},
		"GET /transfer/verify/{reference}":              {sim.OpDisburseStatus, p.verify},
		"GET /transfer/{id}":                            {sim.OpDisburseStatus, p.fetch},
		"GET /bank":                                     {sim.OpRecipient, p.listBanks},
		"GET /bank/resolve":                             {sim.OpWalletName, p.resolve},
		"GET /balance":                                  {sim.OpBalance, p.balance},
		"GET /balance/ledger":                           {sim.OpBalance, p.ledger},
		"POST /charge":                                  {sim.OpCollect, p.charge},
		"POST /charge/submit_otp":                       {sim.OpVoucher, p.submitVoucher},
		"GET /charge/{reference}":                       {sim.OpCollectStatus, p.check},
		"GET /transaction/verify/{reference}":           {sim.OpCollectStatus, p.verifyTransaction},
		"POST /refund":                                  {sim.OpDisburse, p.refund},
		"GET /refund":                                   {sim.OpDisburseStatus, p.listRefunds},
		"GET /refund/{id}":                              {sim.OpDisburseStatus, p.fetchRefund},
		"POST /refund/retry_with_customer_details/{id}": {sim.OpRecipient, p.retryRefund},
		"POST /transfer/disable_otp":                    {sim.OpRecipient, p.disableOTP},
		"POST /transfer/disable_otp_finalize":           {sim.OpRecipient, p.disableOTPFinalize},
		"POST /transfer/enable_otp":                     {sim.OpRecipient, p.enableOTP},
	} {
		p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			p.guarded(w, r, operation(serve.op, r), serve.serve)
		})
	}
	return p
}

func (p *paystack) provider() sim.Provider {
	return sim.Provider{Name: Name, OneBalance: true, Serve: p.mux, Callback: p.event, Statement: statement, Forge: forge, Refusal: refusal, Control: p.controls()}
}

// RefusalAnswers returns the Answers worth trying for refuse and refuse_after.
func RefusalAnswers() []string {
	return sim.RefusalAnswers("400:invalid_transfer_recipient", "400:unknown", "404:unknown", "422:invalid_params", "500:invalid_transfer_recipient")
}

// StatusAnswers returns the Answers worth trying for status_answer.
func StatusAnswers() []string {
	return sim.StatusAnswers("400:invalid_params", "404:unknown", "500:unknown", "200:unknown")
}

// operation distinguishes the names of bank accounts from those of wallets, which share their path.
func operation(op string, r *http.Request) string {
	if b, known := bankOf(r.URL.Query().Get("bank_code")); op == sim.OpWalletName && (!known || b.kind == ghipss) {
		return sim.OpBankName
	}
	return op
}

// guarded admits a request with the secret key.
func (p *paystack) guarded(w http.ResponseWriter, r *http.Request, op string, serve func(*call)) {
	began, ok := p.s.Begin(w, r, Name, op)
	if !ok {
		return
	}
	c := &call{began}
	if r.Header.Get("Authorization") != "Bearer "+secretKey {
		c.refuse(http.StatusUnauthorized, "Invalid key", "", "")
		return
	}
	serve(c)
}
