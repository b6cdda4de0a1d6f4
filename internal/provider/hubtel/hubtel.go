// Package hubtel implements Hubtel's interface: collections, payouts to wallets and banks, name queries, airtime,
// data packages and balances, on seven hosts with one Basic credential.
//
// Two properties of Hubtel shape the package. Hubtel refuses a reference that was used before, without a distinct
// code. So nothing is submitted twice, and no refusal counts before a query has confirmed it (provider.Rail.MayRepeat
// is false). Callbacks are not signed, so they are only hints. Every final state comes from an authenticated query.
//
// This file builds requests and sends the credentials. answers.go has the table of Hubtel's codes, and testdata the
// samples that Hubtel documents.
package hubtel

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
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
const Name = "hubtel"

// queryWithin is the maximum time of requests that move no money.
const queryWithin = 10 * time.Second

// simNameService is the service that returns the holder of a number.
const simNameService = "3e0841e70afc42fb97d13d19abd36384"

// serviceIDs are the ids in Hubtel's public documents. config.Hubtel can replace each. The documents have none for
// mtn_broadband.
var serviceIDs = map[string]string{
	"mtn_airtime":        "fdd76c884e614b1c8f669a3207b09a98",
	"telecel_airtime":    "f4be83ad74c742e185224fdae1304800",
	"airteltigo_airtime": "dae2142eb5a14c298eace60240c09e4b",
	"mtn_data":           "b230733cd56b4a0fad820e39f66bc27c",
	"telecel_data":       "fa27127ba039455da04a2ac8a1613e00",
	"airteltigo_data":    "06abd92da459428496967612463575ca",
}

// channels maps our names of networks to Hubtel's names.
var channels = map[msisdn.Network]string{
	msisdn.MTN:        "mtn-gh",
	msisdn.Telecel:    "vodafone-gh",
	msisdn.AirtelTigo: "tigo-gh",
}

// Adapter is one merchant account. It supports every role of package provider.
type Adapter struct {
	account config.Hubtel
	mode    string
	client  *provider.Client
	auth    string
}

// New returns an adapter. The account must be complete; its method Missing checks that. New sets the Provider of the
// options.
func New(account config.Hubtel, o provider.ClientOptions) *Adapter {
	o.Provider = Name
	if account.Commission == "" {
		account.Commission = account.Prepaid
	}
	if account.UnpaidAfter < 5*time.Minute {
		account.UnpaidAfter = 5 * time.Minute
	}
	basic := base64.StdEncoding.EncodeToString([]byte(account.ClientID + ":" + account.ClientSecret.Reveal()))
	return &Adapter{account: account, mode: o.Mode, client: provider.NewClient(o), auth: "Basic " + basic}
}

// Close closes the idle connections.
func (h *Adapter) Close() { h.client.Close() }

// visibleAfter is the time after a submission during which a status query may not find it. Hubtel asks clients to
// query no earlier than after five minutes.
const visibleAfter = 5 * time.Minute

// Rail returns the rail with the roles that the account supports.
func (h *Adapter) Rail() provider.Rail {
	r := provider.Rail{Name: Name, Mode: h.mode, VisibleAfter: visibleAfter, UnpaidAfter: h.account.UnpaidAfter, Callbacks: h, Floats: h}
	const transactions = "MAKOLA_HUBTEL_STATUS_NOT_KNOWN"
	r.NotKnownSettings = map[string]string{
		"collect": transactions, "topup": transactions, "bundle": transactions, "disburse": "MAKOLA_HUBTEL_SEND_STATUS_NOT_KNOWN",
	}
	if h.account.Commission != h.account.Prepaid {
		r.Accounts.Sell = provider.AccountServices
	}
	if h.account.POSSales != "" {
		r.Collector, r.WalletNames, r.BankNames = h, h, h
	}
	if h.account.Prepaid != "" {
		r.Disburser = h
	}
	// Status queries about sales use the POS sales id.
	if h.account.Commission != "" && h.account.POSSales != "" {
		r.TopUpper, r.Bundles = h, h
	}
	return r
}

// Collect requests money from the payer.
func (h *Adapter) Collect(ctx context.Context, r provider.CollectRequest) provider.Outcome {
	channel, ok := channels[r.Network]
	if !ok {
		return noService("no channel for network " + string(r.Network))
	}
	a := h.post(ctx, "collect", r.ProviderReference, r.CallbackURL,
		h.account.ReceiveURL+"/merchantaccount/merchants/"+url.PathEscape(h.account.POSSales)+"/receive/mobilemoney",
		map[string]any{
			"CustomerName": r.MSISDN.International(), "CustomerMsisdn": r.MSISDN.International(), "CustomerEmail": "",
			"Channel": channel, "Amount": number(r.Amount), "PrimaryCallbackUrl": r.CallbackURL,
			"Description": description(r.Label, r.Reference), "ClientReference": provider.PlainReference(r.ProviderReference),
		})
	return submitted(a, order{reference: r.ProviderReference, amount: r.Amount, product: collection})
}

// CollectStatus queries the status of a collection.
func (h *Adapter) CollectStatus(ctx context.Context, r provider.StatusRequest) provider.Outcome {
	return paid(h.transaction(ctx, "collect_status", r), order{reference: r.ProviderReference, amount: r.Amount, product: collection}, h.account.StatusNotKnown)
}

// transaction queries the status interface of collections, airtime and data. It uses the POS sales id even for
// purchases from the prepaid account.
func (h *Adapter) transaction(ctx context.Context, op string, r provider.StatusRequest) provider.Answer {
	return h.get(ctx, op, r.ProviderReference,
		h.account.StatusURL+"/transactions/"+url.PathEscape(h.account.POSSales)+"/status?clientReference="+provider.PlainReference(r.ProviderReference))
}

// Disburse sends money to a wallet or a bank account.
func (h *Adapter) Disburse(ctx context.Context, r provider.DisburseRequest) provider.Outcome {
	base := h.account.SendURL + "/api/merchants/" + url.PathEscape(h.account.Prepaid) + "/send/"
	body := map[string]any{
		"Amount": number(r.Amount), "Description": description(r.Label, r.Reference),
		"ClientReference": provider.PlainReference(r.ProviderReference),
	}
	if r.BankCode != "" {
		base += "bank/gh/" + url.PathEscape(r.BankCode)
		body["PrimaryCallbackUrl"] = r.CallbackURL
		body["BankAccountNumber"], body["BankAccountName"] = r.Account, r.Name
		for _, optional := range []string{"RecipientPhoneNumber", "BankName", "BankBranch", "BankBranchCode"} {
			body[optional] = ""
		}
	} else {
		channel, ok := channels[r.Network]
		if !ok {
			return noService("no channel for network " + string(r.Network))
		}
		base += "mobilemoney"
		body["PrimaryCallbackURL"] = r.CallbackURL
		body["RecipientMsisdn"], body["Channel"], body["CustomerEmail"] = r.MSISDN.International(), channel, ""
		body["RecipientName"] = r.Name
		if r.Name == "" {
			body["RecipientName"] = r.MSISDN.International()
		}
	}
	a := h.post(ctx, "disburse", r.ProviderReference, r.CallbackURL, base, body, r.Account)
	return submitted(a, order{reference: r.ProviderReference, amount: r.Amount, product: payout})
}

// DisburseStatus queries the status of a payout.
func (h *Adapter) DisburseStatus(ctx context.Context, r provider.StatusRequest) provider.Outcome {
	a := h.get(ctx, "disburse_status", r.ProviderReference,
		h.account.SendStatusURL+"/api/merchants/"+url.PathEscape(h.account.Prepaid)+"/transactions/status?clientReference="+provider.PlainReference(r.ProviderReference), r.Account)
	return disbursed(a, order{reference: r.ProviderReference, amount: r.Amount, product: payout}, h.account.SendStatusNotKnown)
}

// WalletName returns the registered name of a wallet.
func (h *Adapter) WalletName(ctx context.Context, n msisdn.Network, m msisdn.MSISDN) (string, provider.Outcome) {
	a := h.get(ctx, "wallet_name", "", h.account.VerifyURL+"/v2/merchantaccount/merchants/"+url.PathEscape(h.account.POSSales)+
		"/mobilemoney/verify?channel="+channels[n]+"&customerMsisdn="+m.Local())
	return walletName(a)
}

// BankName returns the name of a bank account's holder.
func (h *Adapter) BankName(ctx context.Context, bankCode, account string) (string, provider.Outcome) {
	return bankName(h.get(ctx, "bank_name", "", h.account.VerifyURL+"/v2/merchantaccount/merchants/"+url.PathEscape(h.account.POSSales)+
		"/bank/verify/"+url.PathEscape(bankCode)+"/"+url.PathEscape(account), account))
}

// TopUp sends airtime.
func (h *Adapter) TopUp(ctx context.Context, r provider.TopUpRequest) provider.Outcome {
	service := h.service(strings.ToLower(string(r.Network)) + "_airtime")
	if service == "" {
		return noService("no service for airtime of " + string(r.Network))
	}
	return h.serve(ctx, "topup", service, r.ProviderReference, r.Amount, r.MSISDN, r.CallbackURL, "")
}

// TopUpStatus queries the status of a top-up.
func (h *Adapter) TopUpStatus(ctx context.Context, r provider.StatusRequest) provider.Outcome {
	return h.served(ctx, "topup_status", r)
}

// Offers returns the current offers for a number. A concurrent query returns the holder's name. Offers are returned
// even without a name.
func (h *Adapter) Offers(ctx context.Context, r provider.OffersRequest) ([]provider.Offer, string, provider.Outcome) {
	service := h.service(dataService(r.Service, r.Network))
	if service == "" {
		return nil, "", noService("no service " + dataService(r.Service, r.Network))
	}
	name := make(chan string, 1)
	go func() {
		name <- holderName(h.do(ctx, provider.Request{
			Method: http.MethodGet, Operation: "wallet_name", Timeout: queryWithin, HideAnswer: true,
			URL: h.account.ServicesURL + "/commissionservices/" + url.PathEscape(h.account.POSSales) + "/" + simNameService +
				"?destination=" + r.MSISDN.International(),
		}))
	}()
	list, o := offers(h.get(ctx, "offers", "", h.serviceURL(service)+"?destination="+r.MSISDN.International()))
	return list, <-name, o
}

// BuyBundle buys a package. BuyBundle first queries Hubtel. It submits the purchase only if the package is on
// offer at that price.
func (h *Adapter) BuyBundle(ctx context.Context, r provider.BundleRequest) provider.Outcome {
	key := dataService(r.Service, r.Network)
	service := h.service(key)
	if service == "" {
		return noService("no service " + key)
	}
	list, o := offers(h.get(ctx, "offers", r.ProviderReference, h.serviceURL(service)+"?destination="+r.MSISDN.International()))
	if o.Class != provider.Accepted {
		// Only the query was sent, not the purchase.
		o.Class = provider.NotSent
		return o
	}
	for _, offered := range list {
		if offered.Value == r.Offer.Value && offered.Amount == r.Offer.Amount {
			return h.serve(ctx, "bundle", service, r.ProviderReference, r.Offer.Amount, r.MSISDN, r.CallbackURL, r.Offer.Value)
		}
	}
	return provider.Outcome{Class: provider.Rejected, Unposted: true, Reason: provider.ReasonOfferGone, Message: "not among the packages offered now"}
}

// BundleStatus queries the status of a data package.
func (h *Adapter) BundleStatus(ctx context.Context, r provider.StatusRequest) provider.Outcome {
	return h.served(ctx, "bundle_status", r)
}

// Float reads the balances of our accounts at Hubtel: POS sales, prepaid deposit, and commission services if they
// have a separate deposit.
func (h *Adapter) Float(ctx context.Context) ([]provider.Held, provider.Outcome) {
	paths := map[string]string{}
	if h.account.POSSales != "" {
		paths[provider.AccountCollection] = url.PathEscape(h.account.POSSales)
	}
	if h.account.Prepaid != "" {
		paths[provider.AccountDisbursement] = "prepaid/" + url.PathEscape(h.account.Prepaid)
	}
	if h.account.Commission != h.account.Prepaid {
		paths[provider.AccountServices] = "prepaid/" + url.PathEscape(h.account.Commission)
	}
	var held []provider.Held
	for _, account := range provider.AccountNames() {
		path, there := paths[account]
		if !there {
			continue
		}
		amount, o := balance(h.get(ctx, "float", "", h.account.BalanceURL+"/api/inter-transfers/"+path))
		if o.Class != provider.Accepted {
			return nil, o
		}
		held = append(held, provider.Held{Account: account, Amount: amount})
	}
	return held, provider.Outcome{Class: provider.Accepted, State: provider.Success}
}

// ParseCallback returns the payment of a callback. It does not read claims about the payment, because the callback is
// not signed.
func (h *Adapter) ParseCallback(r provider.CallbackRequest) ([]provider.Hint, error) {
	var body envelope
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return nil, err
	}
	id, err := uuid.Parse(string(body.payload().ClientReference))
	if err != nil {
		return nil, err
	}
	return []provider.Hint{{ProviderReference: id.String()}}, nil
}

// serve submits a purchase to one of the commission services.
func (h *Adapter) serve(ctx context.Context, op, service, reference string, amount money.Pesewas, to msisdn.MSISDN, callback, bundle string) provider.Outcome {
	body := map[string]any{
		"Destination": to.International(), "Amount": number(amount), "CallbackUrl": callback,
		"ClientReference": provider.PlainReference(reference),
	}
	if bundle != "" {
		body["Extradata"] = map[string]string{"bundle": bundle}
	}
	return submitted(h.post(ctx, op, reference, callback, h.serviceURL(service), body), order{reference: reference, amount: amount, product: sale})
}

// served queries the status of a top-up or bundle.
func (h *Adapter) served(ctx context.Context, op string, r provider.StatusRequest) provider.Outcome {
	return paid(h.transaction(ctx, op, r), order{reference: r.ProviderReference, amount: r.Amount, product: sale}, h.account.StatusNotKnown)
}

func (h *Adapter) serviceURL(service string) string {
	return h.account.ServicesURL + "/commissionservices/" + url.PathEscape(h.account.Commission) + "/" + url.PathEscape(service)
}

func (h *Adapter) service(key string) string {
	if id := h.account.ServiceIDs[key]; id != "" {
		return id
	}
	return serviceIDs[key]
}

func dataService(key string, n msisdn.Network) string {
	if key == "" {
		return strings.ToLower(string(n)) + "_data"
	}
	return key
}

// errNoCallback is the error of a request without a callback URL. It is not sent, because Hubtel would refuse it.
var errNoCallback = errors.New("no callback URL, which Hubtel requires: set MAKOLA_PUBLIC_URL")

// post submits a request that moves money. hide are texts that no log may contain. Without a callback URL, as before
// the server listens, post sends nothing.
func (h *Adapter) post(ctx context.Context, op, reference, callback, url string, body map[string]any, hide ...string) provider.Answer {
	if callback == "" {
		return provider.Answer{Err: errNoCallback}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return provider.Answer{Err: err}
	}
	return h.do(ctx, provider.Request{Method: http.MethodPost, URL: url, Body: text, Operation: op, Reference: reference, Hide: hide})
}

// get sends a query. hide are texts that no log may contain.
func (h *Adapter) get(ctx context.Context, op, reference, url string, hide ...string) provider.Answer {
	return h.do(ctx, provider.Request{Method: http.MethodGet, URL: url, Operation: op, Reference: reference, Timeout: queryWithin, Hide: hide})
}

func (h *Adapter) do(ctx context.Context, r provider.Request) provider.Answer {
	r.Header = http.Header{"Authorization": {h.auth}, "Accept": {"application/json"}, "Cache-Control": {"no-cache"}}
	if r.Body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return h.client.Do(ctx, r)
}

// number formats an amount as Hubtel's JSON number in cedis.
func number(p money.Pesewas) json.RawMessage { return json.RawMessage(p.String()) }

// description returns the text for the payer or payee. It removes characters such as & % ^, for which Hubtel refuses
// the whole request.
func description(label, reference string) string {
	if strings.TrimSpace(label) == "" {
		label = "Payment " + reference
	}
	var out strings.Builder
	for _, r := range label {
		if out.Len() >= 100 {
			break
		}
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			out.WriteRune(r)
		default:
			out.WriteByte(' ')
		}
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

// noService returns the refusal of a request for which the account is not configured. Nothing is submitted.
func noService(what string) provider.Outcome {
	return provider.Outcome{Class: provider.Rejected, Unposted: true, Reason: provider.ReasonSetup, Message: what}
}
