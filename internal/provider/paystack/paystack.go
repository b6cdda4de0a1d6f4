// Package paystack implements Paystack's interface: collections and their refunds, payouts to wallets and banks, name queries
// and the balance, with one secret key.
//
// Paystack does not document the response to a second charge under a reference, and its refunds have no field for our
// reference. So neither is submitted twice. A query finds a refund by the merchant's note, which contains our reference.
//
// Paystack documents the reference of a transfer as its idempotency key, so the same transfer may be submitted again
// (provider.Rail.MayRepeat). A transfer needs a recipient first. Creating a recipient moves no money, and returns the same
// recipient for the same account. If the creation fails, no transfer was sent. A transfer that waits for an OTP waits for
// ever, because nobody enters the OTP. OTPs must be switched off in Paystack's dashboard. Events are signed, but they are
// only hints: every final state comes from an authenticated query.
//
// This file builds requests for payouts and checks signatures. charge.go has collections, refund.go refunds. answers.go and
// charge_answers.go interpret Paystack's answers. testdata has the samples, each with its grade.
package paystack

import (
	"context"
	"crypto/hmac"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
)

// Name is the rail's name in routes, ledger accounts and logs.
const Name = "paystack"

const currency = "GHS"

// queryWithin is the maximum time of requests that move no money.
const queryWithin = 10 * time.Second

// promptTime is the documented time in which a payer must complete a charge.
const promptTime = 180 * time.Second

// signature is the header with the signature of an event: the HMAC-SHA512 of the body under the secret key, in hex.
const signature = "X-Paystack-Signature"

// walletCodes are Paystack's bank codes of the networks.
var walletCodes = map[msisdn.Network]string{msisdn.MTN: "MTN", msisdn.Telecel: "VOD", msisdn.AirtelTigo: "ATL"}

// Adapter is one business at Paystack.
type Adapter struct {
	account config.Paystack
	mode    string
	client  *provider.Client
}

// New returns an adapter. The account must be complete; its method Missing checks that. New sets the Provider
// of the options.
func New(account config.Paystack, o provider.ClientOptions) *Adapter {
	o.Provider = Name
	account.URL = strings.TrimSuffix(account.URL, "/")
	return &Adapter{account: account, mode: o.Mode, client: provider.NewClient(o)}
}

// Close closes the idle connections.
func (a *Adapter) Close() { a.client.Close() }

// Rail returns the rail with the roles that the account supports. Paystack keeps one balance for everything.
func (a *Adapter) Rail() provider.Rail {
	return provider.Rail{
		Name: Name, Mode: a.mode, MayRepeat: provider.Requests{Disburse: true}, VisibleAfter: a.account.VisibleAfter,
		MayDouble: provider.Requests{Collect: true, Refund: true}, UnpaidAfter: promptTime,
		Collector: a, Needs: provider.AccountNeeds{Email: true, Vouchers: []msisdn.Network{msisdn.Telecel}}, Vouchers: a, Refunder: a,
		Disburser: a, WalletNames: a, BankNames: a, BankList: a, Floats: a, Callbacks: a,
		Accounts: provider.Accounts{Collect: provider.AccountDisbursement},
	}
}

// payee is the account of a recipient, in Paystack's terms.
type payee struct {
	Type     string `json:"type"` // mobile_money or ghipss
	Name     string `json:"name"`
	Account  string `json:"account_number"`
	BankCode string `json:"bank_code"`
	Currency string `json:"currency"`
}

// payeeOf returns the payee of a payout. ok is false for a network that Paystack does not support.
func payeeOf(r provider.DisburseRequest) (to payee, ok bool) {
	to = payee{Type: "ghipss", Name: r.Name, Account: r.Account, BankCode: r.BankCode, Currency: currency}
	if r.BankCode == "" {
		to.Type, to.Account, to.BankCode = "mobile_money", r.MSISDN.Local(), walletCodes[r.Network]
	}
	if strings.TrimSpace(to.Name) == "" {
		to.Name = to.Account
	}
	return to, to.BankCode != ""
}

// transferRequest is the body of a transfer.
type transferRequest struct {
	Source    string `json:"source"`
	Amount    int64  `json:"amount"` // pesewas
	Recipient string `json:"recipient"`
	Reference string `json:"reference"`
	Reason    string `json:"reason"`
	Currency  string `json:"currency"`
}

// Disburse sends money to a wallet or a bank account.
func (a *Adapter) Disburse(ctx context.Context, r provider.DisburseRequest) provider.Outcome {
	to, ok := payeeOf(r)
	if !ok {
		return provider.Outcome{Class: provider.Rejected, Unposted: true, Reason: provider.ReasonSetup, Message: "Paystack has no code for network " + string(r.Network)}
	}
	recipient, o := recipientCode(a.post(ctx, "recipient", r.ProviderReference, "/transferrecipient", to, r.Account))
	if recipient == "" {
		return o
	}
	return submitted(a.post(ctx, "disburse", r.ProviderReference, "/transfer", transferRequest{
		Source: "balance", Amount: int64(r.Amount), Recipient: recipient, Reference: provider.PlainReference(r.ProviderReference),
		Reason: description(r.Label, r.Reference), Currency: currency,
	}), r.ProviderReference)
}

// DisburseStatus queries the status of a payout.
func (a *Adapter) DisburseStatus(ctx context.Context, r provider.StatusRequest) provider.Outcome {
	return disbursed(a.get(ctx, "disburse_status", r.ProviderReference, "/transfer/verify/"+provider.PlainReference(r.ProviderReference), r.Account))
}

// WalletName returns the registered name of a wallet.
func (a *Adapter) WalletName(ctx context.Context, n msisdn.Network, m msisdn.MSISDN) (string, provider.Outcome) {
	return a.name(ctx, "wallet_name", walletCodes[n], m.Local())
}

// BankName returns the name of a bank account.
func (a *Adapter) BankName(ctx context.Context, bankCode, account string) (string, provider.Outcome) {
	return a.name(ctx, "bank_name", bankCode, account)
}

func (a *Adapter) name(ctx context.Context, op, bankCode, account string) (string, provider.Outcome) {
	q := url.Values{"account_number": {account}, "bank_code": {bankCode}}
	return accountName(a.get(ctx, op, "", "/bank/resolve?"+q.Encode(), account))
}

// banksListed is the maximum number of banks on one page of Paystack's list. Ghana has about thirty banks.
const banksListed = 100

// Banks lists the banks to which transfers are possible.
func (a *Adapter) Banks(ctx context.Context) ([]provider.PayableBank, provider.Outcome) {
	q := url.Values{"currency": {currency}, "type": {"ghipss"}, "perPage": {strconv.Itoa(banksListed)}}
	return bankList(a.get(ctx, "banks", "", "/bank?"+q.Encode()))
}

// Float reads the balance in cedis.
func (a *Adapter) Float(ctx context.Context) ([]provider.Held, provider.Outcome) {
	return balance(a.get(ctx, "balance", "", "/balance"))
}

// errSignature is returned for every event that the secret key did not sign.
var errSignature = errors.New("event is not signed with the secret key")

// ParseCallback returns the payment of a signed event. It does not read claims about the payment. An event about a
// payment that is not ours gives no hint and no error, because Paystack repeats a refused event for three days.
func (a *Adapter) ParseCallback(r provider.CallbackRequest) ([]provider.Hint, error) {
	given, err := hex.DecodeString(r.Header.Get(signature))
	mac := hmac.New(sha512.New, []byte(a.account.SecretKey.Reveal()))
	mac.Write(r.Body)
	if err != nil || !hmac.Equal(given, mac.Sum(nil)) {
		return nil, errSignature
	}
	var event struct {
		Event text `json:"event"`
		Data  struct {
			Reference text `json:"reference"`
			Collected text `json:"transaction_reference"` // of refunds
		} `json:"data"`
	}
	if err := json.Unmarshal(r.Body, &event); err != nil {
		return nil, err
	}
	reference, refund := event.Data.Reference, strings.HasPrefix(string(event.Event), "refund.")
	if refund {
		reference = event.Data.Collected
	}
	id, err := uuid.Parse(string(reference))
	if err != nil {
		return nil, nil
	}
	return []provider.Hint{{ProviderReference: id.String(), OfRefund: refund}}, nil
}

// post sends a request that moves money or prepares it. hide are texts that no log may contain.
func (a *Adapter) post(ctx context.Context, op, reference, path string, body any, hide ...string) provider.Answer {
	return a.send(ctx, body, provider.Request{Method: http.MethodPost, URL: a.account.URL + path, Operation: op, Reference: reference, Hide: hide})
}

// send sends a request with a body.
func (a *Adapter) send(ctx context.Context, body any, r provider.Request) provider.Answer {
	encoded, err := json.Marshal(body)
	if err != nil {
		return provider.Answer{Err: err}
	}
	r.Body = encoded
	return a.do(ctx, r)
}

// get sends a query. hide are texts that no log may contain.
func (a *Adapter) get(ctx context.Context, op, reference, path string, hide ...string) provider.Answer {
	return a.do(ctx, provider.Request{Method: http.MethodGet, URL: a.account.URL + path, Operation: op, Reference: reference, Timeout: queryWithin, Hide: hide})
}

func (a *Adapter) do(ctx context.Context, r provider.Request) provider.Answer {
	r.Header = http.Header{"Authorization": {"Bearer " + a.account.SecretKey.Reveal()}, "Accept": {"application/json"}}
	if r.Body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return a.client.Do(ctx, r)
}

// descriptionLength is our own limit of the reason of a transfer; Paystack documents none.
const descriptionLength = 100

// description returns the text that the payee sees.
func description(label, reference string) string {
	label = strings.TrimSpace(provider.Clip(label))
	if label == "" {
		label = "Payment " + reference
	}
	if runes := []rune(label); len(runes) > descriptionLength {
		label = string(runes[:descriptionLength])
	}
	return label
}
