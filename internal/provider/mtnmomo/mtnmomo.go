// Package mtnmomo implements MTN's MoMo Open API: requests to pay, transfers, refunds, their status queries, name
// lookups, balances and callbacks.
//
// MTN uses our ProviderReference as its own key (X-Reference-Id) and answers a duplicate with a distinct 409, so the
// same request may be submitted again. MTN documents that a 404 to the status query means that the request was not
// accepted. The status of a failed payment has HTTP 200. MTN sends each callback once and unsigned, so outcomes come
// from polling, and a callback is only a hint. The externalId of every request is also the ProviderReference, because
// callbacks and reports contain no other id of ours.
package mtnmomo

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
)

// Name is the rail's name in routes, attempts and ledger accounts.
const Name = "mtn"

// Adapter is one account at MTN.
type Adapter struct {
	config       config.MTN
	mode         string
	client       *provider.Client
	collection   *mtnProduct // nil if not configured
	disbursement *mtnProduct
}

// New returns an adapter. It sets the Provider of the options.
func New(c config.MTN, o provider.ClientOptions) *Adapter {
	o.Provider = Name
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if c.Currency == "" {
		c.Currency = "GHS"
	}
	c.URL = strings.TrimSuffix(c.URL, "/")
	a := &Adapter{config: c, mode: o.Mode, client: provider.NewClient(o)}
	product := func(name, path, user string, api, key config.Credential) *mtnProduct {
		basic := base64.StdEncoding.EncodeToString([]byte(user + ":" + api.Reveal()))
		return &mtnProduct{
			adapter: a, clock: o.Clock, name: name, url: c.URL + "/" + name, path: path,
			basic: "Basic " + basic, subscription: key.Reveal(),
		}
	}
	if c.Collects() {
		a.collection = product("collection", "requesttopay", c.CollectionUser, c.CollectionAPIKey, c.CollectionKey)
	}
	if c.Disburses() {
		a.disbursement = product("disbursement", "transfer", c.DisbursementUser, c.DisbursementAPIKey, c.DisbursementKey)
	}
	return a
}

// Close closes the idle connections.
func (a *Adapter) Close() { a.client.Close() }

// visibleAfter is the time within which MTN shows a submission. MTN documents no such time. Its clients commonly use
// a minute and three queries.
const visibleAfter = time.Minute

// Rail returns the rail with the roles that the configured products support.
func (a *Adapter) Rail() provider.Rail {
	r := provider.Rail{Name: Name, Mode: a.mode, MayRepeat: provider.AllRequests(), VisibleAfter: visibleAfter, WalletNames: a, Floats: a, Callbacks: a}
	if a.collection != nil {
		r.Collector = a
	}
	if a.disbursement != nil {
		r.Disburser = a
	}
	if a.collection != nil && a.disbursement != nil {
		r.Refunder = a
	}
	return r
}

// party is the payer or payee of a movement.
type party struct {
	Type string `json:"partyIdType"`
	ID   string `json:"partyId"`
}

// movement is the body of a request to pay, a transfer or a refund.
type movement struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	External string `json:"externalId"`
	Payer    *party `json:"payer,omitempty"`
	Payee    *party `json:"payee,omitempty"`
	Message  string `json:"payerMessage"`
	Note     string `json:"payeeNote"`
	Refunds  string `json:"referenceIdToRefund,omitempty"`
}

// refund is the resource of refunds in the disbursement product.
const refund = "refund"

// Collect requests a payment from a wallet.
func (a *Adapter) Collect(ctx context.Context, r provider.CollectRequest) provider.Outcome {
	if a.collection == nil {
		return refusedHere("collections are not configured at MTN")
	}
	return a.collection.create(ctx, a.collection.path, r.ProviderReference, r.CallbackURL, movement{
		Amount: r.Amount.String(), Currency: a.config.Currency, External: r.ProviderReference,
		Payer:   &party{"MSISDN", r.MSISDN.International()},
		Message: note(r.Label, "Payment"), Note: note(r.Reference, "Payment"),
	})
}

// CollectStatus queries the status of a request to pay.
func (a *Adapter) CollectStatus(ctx context.Context, r provider.StatusRequest) provider.Outcome {
	if a.collection == nil {
		return unanswered("collections are not configured at MTN")
	}
	return a.collection.query(ctx, a.collection.path, r.ProviderReference)
}

// Disburse sends money to a wallet. MTN pays no bank accounts.
func (a *Adapter) Disburse(ctx context.Context, r provider.DisburseRequest) provider.Outcome {
	if a.disbursement == nil || r.BankCode != "" {
		return refusedHere("MTN is not configured for this payout")
	}
	return a.disbursement.create(ctx, a.disbursement.path, r.ProviderReference, r.CallbackURL, movement{
		Amount: r.Amount.String(), Currency: a.config.Currency, External: r.ProviderReference,
		Payee:   &party{"MSISDN", r.MSISDN.International()},
		Message: note(r.Reference, "Payment"), Note: note(r.Label, "Payment"),
	})
}

// DisburseStatus queries the status of a transfer.
func (a *Adapter) DisburseStatus(ctx context.Context, r provider.StatusRequest) provider.Outcome {
	if a.disbursement == nil {
		return unanswered("payouts are not configured at MTN")
	}
	return a.disbursement.query(ctx, a.disbursement.path, r.ProviderReference)
}

// Refund returns the money of a request to pay, or a part of it, to its payer. MTN takes the money from the
// disbursement account.
func (a *Adapter) Refund(ctx context.Context, r provider.RefundRequest) provider.Outcome {
	if a.disbursement == nil || r.Collected == "" {
		return refusedHere("MTN is not configured for this refund")
	}
	return a.disbursement.create(ctx, refund, r.ProviderReference, r.CallbackURL, movement{
		Amount: r.Amount.String(), Currency: a.config.Currency, External: r.ProviderReference, Refunds: r.Collected,
		Message: note(r.Reference, "Refund"), Note: note(r.Label, "Refund"),
	})
}

// RefundStatus queries the status of a refund.
func (a *Adapter) RefundStatus(ctx context.Context, r provider.StatusRequest) provider.Outcome {
	if a.disbursement == nil {
		return unanswered("refunds are not configured at MTN")
	}
	return a.disbursement.query(ctx, refund, r.ProviderReference)
}

// refusedHere returns the outcome of a request that this adapter cannot make. Nothing was submitted, and trying again
// would not help.
func refusedHere(why string) provider.Outcome {
	return provider.Outcome{Class: provider.Rejected, Unposted: true, Reason: provider.ReasonSetup, Message: why}
}

func unanswered(why string) provider.Outcome {
	return provider.Outcome{Class: provider.Unknown, Reason: provider.ReasonSetup, Message: why}
}

// anyProduct returns the product for queries about wallets. It prefers disbursement, because most of these queries
// are for payouts.
func (a *Adapter) anyProduct() *mtnProduct {
	if a.disbursement != nil {
		return a.disbursement
	}
	return a.collection
}

// WalletName returns the registered name of an MTN wallet. If MTN's name lookup does not know the number, a second,
// cheaper query finds out whether the wallet is active at all.
func (a *Adapter) WalletName(ctx context.Context, n msisdn.Network, m msisdn.MSISDN) (string, provider.Outcome) {
	p := a.anyProduct()
	if n != msisdn.MTN || p == nil {
		return "", unanswered("MTN knows the names of its own wallets only")
	}
	ans, early := p.do(ctx, provider.Request{
		Method: http.MethodGet, URL: p.url + "/v1_0/accountholder/msisdn/" + m.International() + "/basicuserinfo", Operation: "wallet_name",
	})
	if early != nil {
		return "", *early
	}
	var who struct {
		Given  string `json:"given_name"`
		Family string `json:"family_name"`
	}
	switch {
	case ans.Err == nil && ans.Status == http.StatusOK && json.Unmarshal(ans.Body, &who) == nil:
		if name := strings.Join(strings.Fields(provider.Clip(who.Given+" "+who.Family)), " "); name != "" {
			return name, provider.Outcome{Class: provider.Accepted, State: provider.Success, Name: name}
		}
	case ans.Err == nil && ans.Status == http.StatusNotFound:
		active, o := a.Active(ctx, m)
		if o.Class == provider.Accepted && !active {
			return "", provider.Outcome{Class: provider.Rejected, Reason: provider.ReasonPayeeNotFound, NotFound: true, Code: "404"}
		}
		if o.Class != provider.Accepted {
			return "", o
		}
	default:
		if o, ok := provider.StatusUnanswered(ans); ok {
			return "", o
		}
	}
	return "", provider.Unreadable(ans, "no name in MTN's answer")
}

// Active reports whether a number has an active MTN wallet.
func (a *Adapter) Active(ctx context.Context, m msisdn.MSISDN) (bool, provider.Outcome) {
	p := a.anyProduct()
	if p == nil {
		return false, unanswered("MTN is not configured")
	}
	ans, early := p.do(ctx, provider.Request{
		Method: http.MethodGet, URL: p.url + "/v1_0/accountholder/msisdn/" + m.International() + "/active", Operation: "wallet_active",
	})
	if early != nil {
		return false, *early
	}
	var is struct{ Result *bool }
	switch {
	case ans.Err == nil && ans.Status == http.StatusNotFound:
		return false, provider.Outcome{Class: provider.Accepted, State: provider.Success}
	case ans.Err == nil && ans.Status == http.StatusOK && json.Unmarshal(ans.Body, &is) == nil && is.Result != nil:
		return *is.Result, provider.Outcome{Class: provider.Accepted, State: provider.Success}
	}
	if o, ok := provider.StatusUnanswered(ans); ok {
		return false, o
	}
	return false, provider.Unreadable(ans, "MTN does not report whether the wallet is active")
}

// Float reads the balances of our accounts at MTN. Each product has its own account.
func (a *Adapter) Float(ctx context.Context) ([]provider.Held, provider.Outcome) {
	var held []provider.Held
	for _, p := range []*mtnProduct{a.collection, a.disbursement} {
		if p == nil {
			continue
		}
		account := provider.AccountCollection
		if p == a.disbursement {
			account = provider.AccountDisbursement
		}
		ans, early := p.do(ctx, provider.Request{Method: http.MethodGet, URL: p.url + "/v1_0/account/balance", Operation: "balance"})
		if early != nil {
			return nil, *early
		}
		if o, ok := provider.StatusUnanswered(ans); ok {
			return nil, o
		}
		var b struct{ AvailableBalance, Currency string }
		if json.Unmarshal(ans.Body, &b) != nil || b.Currency != a.config.Currency {
			return nil, provider.Unreadable(ans, "MTN's balance cannot be read")
		}
		amount, err := money.ParseLenient(b.AvailableBalance)
		if err != nil {
			return nil, provider.Unreadable(ans, "MTN's balance is no amount")
		}
		held = append(held, provider.Held{Account: account, Amount: amount})
	}
	return held, provider.Outcome{Class: provider.Accepted, State: provider.Success}
}

var errNoReference = errors.New("callback names no payment of ours")

// ParseCallback returns the reference in a callback, which MTN sends by PUT or POST. It does not read claims about
// the payment.
func (a *Adapter) ParseCallback(r provider.CallbackRequest) ([]provider.Hint, error) {
	if r.Method != http.MethodPut && r.Method != http.MethodPost {
		return nil, errNoReference
	}
	var b struct {
		External string `json:"externalId"`
	}
	if err := json.Unmarshal(r.Body, &b); err != nil {
		return nil, err
	}
	if len(provider.PlainReference(b.External)) != 32 || strings.Trim(provider.PlainReference(b.External), "0123456789abcdef") != "" {
		return nil, errNoReference
	}
	return []provider.Hint{{ProviderReference: b.External}}, nil
}

// note returns a text that MTN accepts: at most 160 characters, without special characters.
func note(s, otherwise string) string {
	keep := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune(" .,-_/:()", r):
			return r
		}
		return ' '
	}
	s = strings.Join(strings.Fields(strings.Map(keep, s)), " ")
	if len(s) > 160 {
		s = strings.TrimSpace(s[:160])
	}
	if s == "" {
		return otherwise
	}
	return s
}
