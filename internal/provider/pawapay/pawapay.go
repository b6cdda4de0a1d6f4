// Package pawapay implements version 2 of pawaPay's interface: deposits (collections), their refunds, and payouts to wallets, with
// one API token and one balance in cedis. pawaPay has no names and pays no bank accounts.
//
// The id of each payment is our UUIDv4. pawaPay documents this id as its idempotency key and answers a repeat with
// DUPLICATE_IGNORED. So every request may be submitted again (provider.Rail.MayRepeat). But pawaPay's guide also shows
// rejections of ids that were used before. So a rejection counts only after a query that does not find the payment. Only the
// rejections that pawaPay lists for a new payment are documented as final. After HTTP 500 the outcome is unknown.
//
// Callbacks are signed if the business switches this on in the dashboard (signature.go). They are only hints: every final state
// comes from an authenticated query. A payment that is ENQUEUED or IN_RECONCILIATION is neither paid nor failed.
//
// This file builds requests. answers.go interprets the answers. testdata has the samples, each with its grade.
package pawapay

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
)

// Name is the rail's name in routes, ledger accounts and logs.
const Name = "pawapay"

const (
	country  = "GHA"
	currency = "GHS"
)

// queryWithin is the maximum time of requests that move no money.
const queryWithin = 10 * time.Second

// wallets are pawaPay's names of the networks.
var wallets = map[msisdn.Network]string{msisdn.MTN: "MTN_MOMO_GHA", msisdn.Telecel: "VODAFONE_GHA", msisdn.AirtelTigo: "AIRTELTIGO_GHA"}

// Adapter is one account with pawaPay.
type Adapter struct {
	account config.PawaPay
	mode    string
	client  *provider.Client
	keys    keys
}

// New returns an adapter. The account must be complete; its method Missing checks that. New sets the Provider
// of the options.
func New(account config.PawaPay, o provider.ClientOptions) *Adapter {
	o.Provider = Name
	account.URL = strings.TrimSuffix(account.URL, "/")
	return &Adapter{account: account, mode: o.Mode, client: provider.NewClient(o)}
}

// Close closes the idle connections.
func (a *Adapter) Close() { a.client.Close() }

// Rail returns the rail with the roles that the account supports. pawaPay keeps one balance in cedis for
// everything.
func (a *Adapter) Rail() provider.Rail {
	return provider.Rail{
		Name: Name, Mode: a.mode, MayRepeat: provider.Requests{Collect: true, Disburse: true, Refund: true}, VisibleAfter: a.account.VisibleAfter,
		Collector: a, Refunder: a, Disburser: a, Floats: a, Callbacks: a, Accounts: provider.Accounts{Collect: provider.AccountDisbursement},
	}
}

// party is a wallet in pawaPay's terms.
type party struct {
	Type    string `json:"type"` // MMO
	Details struct {
		Phone    string `json:"phoneNumber"`
		Provider string `json:"provider"`
	} `json:"accountDetails"`
}

// partyOf returns the wallet. ok is false for a network that pawaPay does not support.
func partyOf(n msisdn.Network, m msisdn.MSISDN) (p *party, ok bool) {
	p = &party{Type: "MMO"}
	p.Details.Phone, p.Details.Provider = m.International(), wallets[n]
	return p, p.Details.Provider != ""
}

// request is the body of a deposit, a payout or a refund.
type request struct {
	DepositID string `json:"depositId,omitempty"` // for a refund: id of the collection
	PayoutID  string `json:"payoutId,omitempty"`
	RefundID  string `json:"refundId,omitempty"`
	Payer     *party `json:"payer,omitempty"`
	Recipient *party `json:"recipient,omitempty"`
	Amount    string `json:"amount"`
	Currency  string `json:"currency,omitempty"`
	Message   string `json:"customerMessage,omitempty"`
}

// noWallet is the outcome for a network that pawaPay does not support.
func noWallet(n msisdn.Network) provider.Outcome {
	return provider.Outcome{Class: provider.Rejected, Unposted: true, Reason: provider.ReasonSetup, Message: "pawaPay has no code for network " + string(n)}
}

// idOf returns a ProviderReference in pawaPay's form: a UUID with hyphens.
func idOf(reference string) string {
	id, err := uuid.Parse(reference)
	if err != nil {
		return reference
	}
	return id.String()
}

// Collect requests money from a payer.
func (a *Adapter) Collect(ctx context.Context, r provider.CollectRequest) provider.Outcome {
	from, ok := partyOf(r.Network, r.MSISDN)
	if !ok {
		return noWallet(r.Network)
	}
	body := request{DepositID: idOf(r.ProviderReference), Payer: from, Amount: amountText(r.Amount), Currency: currency, Message: message(r.Label)}
	return submitted(a.post(ctx, "collect", r.ProviderReference, "/v2/deposits", body), r.ProviderReference)
}

// CollectStatus queries a deposit.
func (a *Adapter) CollectStatus(ctx context.Context, r provider.StatusRequest) provider.Outcome {
	return stated(a.ask(ctx, "collect_status", r.ProviderReference, "/v2/deposits/"))
}

// Disburse sends money to a wallet.
func (a *Adapter) Disburse(ctx context.Context, r provider.DisburseRequest) provider.Outcome {
	to, ok := partyOf(r.Network, r.MSISDN)
	if !ok || r.BankCode != "" {
		return noWallet(r.Network)
	}
	body := request{PayoutID: idOf(r.ProviderReference), Recipient: to, Amount: amountText(r.Amount), Currency: currency, Message: message(r.Label)}
	return submitted(a.post(ctx, "disburse", r.ProviderReference, "/v2/payouts", body), r.ProviderReference)
}

// DisburseStatus queries a payout.
func (a *Adapter) DisburseStatus(ctx context.Context, r provider.StatusRequest) provider.Outcome {
	return stated(a.ask(ctx, "disburse_status", r.ProviderReference, "/v2/payouts/"))
}

// Refund returns a deposit, or a part of it, to its payer.
func (a *Adapter) Refund(ctx context.Context, r provider.RefundRequest) provider.Outcome {
	body := request{RefundID: idOf(r.ProviderReference), DepositID: idOf(r.Collected), Amount: amountText(r.Amount), Currency: currency}
	return submitted(a.post(ctx, "refund", r.ProviderReference, "/v2/refunds", body), r.ProviderReference)
}

// RefundStatus queries a refund.
func (a *Adapter) RefundStatus(ctx context.Context, r provider.StatusRequest) provider.Outcome {
	return stated(a.ask(ctx, "refund_status", r.ProviderReference, "/v2/refunds/"))
}

// Float reads the balance in cedis.
func (a *Adapter) Float(ctx context.Context) ([]provider.Held, provider.Outcome) {
	return balance(a.get(ctx, "balance", "", "/v2/wallet-balances"))
}

// post sends a request that moves money.
func (a *Adapter) post(ctx context.Context, op, reference, path string, body request) provider.Answer {
	encoded, err := json.Marshal(body)
	if err != nil {
		return provider.Answer{Err: err}
	}
	return a.do(ctx, provider.Request{Method: http.MethodPost, URL: a.account.URL + path, Body: encoded, Operation: op, Reference: reference})
}

// ask queries a payment.
func (a *Adapter) ask(ctx context.Context, op, reference, path string) provider.Answer {
	return a.get(ctx, op, reference, path+url.PathEscape(idOf(reference)))
}

func (a *Adapter) get(ctx context.Context, op, reference, path string) provider.Answer {
	return a.do(ctx, provider.Request{Method: http.MethodGet, URL: a.account.URL + path, Operation: op, Reference: reference, Timeout: queryWithin})
}

func (a *Adapter) do(ctx context.Context, r provider.Request) provider.Answer {
	r.Header = http.Header{"Authorization": {"Bearer " + a.account.Token.Reveal()}, "Accept": {"application/json"}}
	if r.Body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return a.client.Do(ctx, r)
}

// amountText formats an amount without zeros at its end, because pawaPay refuses more decimals than the network
// supports.
func amountText(amount money.Pesewas) string {
	return strings.TrimSuffix(strings.TrimRight(amount.String(), "0"), ".")
}

// The lengths of the text that the customer sees, as pawaPay documents them.
const (
	leastMessage = 4
	mostMessage  = 22
)

// message returns the text that the customer sees: letters, digits and spaces. It is empty if the remaining text
// is too short.
func message(label string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		case r == ' ', r == '-', r == '/', r == '.':
			return ' '
		}
		return -1
	}, label)
	clean = strings.Join(strings.Fields(clean), " ")
	clean = strings.TrimSpace(clean[:min(len(clean), mostMessage)])
	if len(clean) < leastMessage {
		return ""
	}
	return clean
}
