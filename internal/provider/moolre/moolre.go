// Package moolre implements Moolre's interface: collections, payouts to wallets and banks, name queries, the list of banks and
// the balance, with one account number and two API keys.
//
// Moolre does not document its refusals, and often sends them under HTTP 200. So no refusal is final (provider.Outcome.Clear).
// No request is submitted twice, because Moolre documents the refusal of a used reference only for collections. While the payer
// has not approved a collection, a status query returns SS07 with the state of a failure. So SS07 is never a failure, whatever
// the state is. For payouts SS07 is not documented: see config.Moolre.TransferNotKnown.
//
// A payer who pays through Moolre for the first time first confirms the number by a code, which arrives as a text (TP14). The
// account's client sends the code as a voucher. So Moolre collects only for accounts that use vouchers.
//
// Callbacks are not signed. They contain the account's secret, arrive only for paid collections, and are only hints: every
// final state comes from an authenticated query.
//
// This file builds requests. answers.go reads the answers. testdata has the samples, each with the grade of its source.
package moolre

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
)

// Name is the rail's name in routes, ledger accounts and logs.
const Name = "moolre"

const (
	currency = "GHS"
	country  = "gha"
)

// queryWithin is the timeout of requests that move no money.
const queryWithin = 10 * time.Second

// bankChannel is Moolre's channel of payouts to bank accounts.
const bankChannel = "2"

// Moolre numbers the networks of collections differently from those of payouts and names.
var (
	payers   = map[msisdn.Network]string{msisdn.MTN: "13", msisdn.Telecel: "6", msisdn.AirtelTigo: "7"}
	channels = map[msisdn.Network]string{msisdn.MTN: "1", msisdn.Telecel: "6", msisdn.AirtelTigo: "7"}
)

// Adapter is one account with Moolre.
type Adapter struct {
	account config.Moolre
	mode    string
	client  *provider.Client
}

// New returns an adapter. The account must be complete: see its method Missing. New sets the Provider of the options.
func New(account config.Moolre, o provider.ClientOptions) *Adapter {
	o.Provider = Name
	account.URL = strings.TrimSuffix(account.URL, "/")
	return &Adapter{account: account, mode: o.Mode, client: provider.NewClient(o)}
}

// Close closes the idle connections.
func (m *Adapter) Close() { m.client.Close() }

// Rail returns the rail. Moolre keeps one balance for everything.
func (m *Adapter) Rail() provider.Rail {
	return provider.Rail{
		Name: Name, Mode: m.mode, VisibleAfter: m.account.VisibleAfter, MayDouble: provider.Requests{Collect: true, Disburse: true},
		NotKnownSettings: map[string]string{"disburse": "MAKOLA_MOOLRE_TRANSFER_NOT_KNOWN"},
		Collector:        m, Needs: provider.AccountNeeds{Vouchers: msisdn.Networks(), VoucherStarts: true}, Vouchers: m,
		Disburser: m, WalletNames: m, BankNames: m, BankList: m, Floats: m, Callbacks: m,
		Accounts: provider.Accounts{Collect: provider.AccountDisbursement},
	}
}

// movement is the body of a collection or a payout.
type movement struct {
	Type      int    `json:"type"` // always 1
	Channel   string `json:"channel"`
	Currency  string `json:"currency"`
	Payer     string `json:"payer,omitempty"`
	Receiver  string `json:"receiver,omitempty"`
	Bank      string `json:"sublistid,omitempty"`
	Amount    string `json:"amount"`
	Reference string `json:"externalref"`
	OTP       string `json:"otpcode,omitempty"`
	Text      string `json:"reference,omitempty"`
	Account   string `json:"accountnumber"` // ours
}

// noChannel is the outcome for a network that Moolre does not have.
func noChannel(n msisdn.Network) provider.Outcome {
	return provider.Outcome{Class: provider.Rejected, Unposted: true, Reason: provider.ReasonSetup, Message: "Moolre has no channel for network " + string(n)}
}

// Collect prompts a payer. Moolre may send the payer a code first.
func (m *Adapter) Collect(ctx context.Context, r provider.CollectRequest) provider.Outcome {
	body, ok := m.collection(r)
	if !ok {
		return noChannel(r.Network)
	}
	return prompted(m.payment(ctx, "collect", body, r.ProviderReference, false))
}

// collection returns the body of a collection. ok is false for a network that Moolre does not have.
func (m *Adapter) collection(r provider.CollectRequest) (body movement, ok bool) {
	channel, ok := payers[r.Network]
	return movement{
		Type: 1, Channel: channel, Currency: currency, Payer: r.MSISDN.Local(), Amount: r.Amount.String(), Reference: provider.PlainReference(r.ProviderReference),
		Text: description(r.Label, r.Reference), Account: m.account.AccountNumber,
	}, ok
}

// payment submits a collection. code is set if the body has the payer's code, which the log of exchanges must not contain.
func (m *Adapter) payment(ctx context.Context, op string, body movement, reference string, code bool) provider.Answer {
	return m.send(ctx, body, true, provider.Request{URL: "/open/transact/payment", Operation: op, Reference: reference, HideBody: code, HideAnswer: code})
}

// SubmitVoucher confirms the payer's number by the code. Moolre then prompts the payer, or expects the same request again
// without the code. Both requests have the reference of the collection.
func (m *Adapter) SubmitVoucher(ctx context.Context, r provider.VoucherRequest) provider.Outcome {
	body, ok := m.collection(provider.CollectRequest{ProviderReference: r.ProviderReference, Reference: r.Reference, Amount: r.Amount,
		MSISDN: r.MSISDN, Network: r.Network, Label: r.Label})
	if !ok {
		return noChannel(r.Network)
	}
	body.OTP = r.Code
	o := confirmed(m.payment(ctx, "voucher", body, r.ProviderReference, true))
	if o.Class == provider.Accepted && o.Code == codeConfirmed {
		body.OTP = ""
		o = confirmed(m.payment(ctx, "voucher", body, r.ProviderReference, false))
	}
	if o.Class == provider.NotSent || o.Class == provider.Barred {
		o.Class = provider.Unknown // the client may send the voucher again
	}
	return o
}

// CollectStatus queries a collection.
func (m *Adapter) CollectStatus(ctx context.Context, r provider.StatusRequest) provider.Outcome {
	return collected(m.status(ctx, "collect_status", true, r), r.ProviderReference)
}

// Disburse sends money to a wallet or a bank account.
func (m *Adapter) Disburse(ctx context.Context, r provider.DisburseRequest) provider.Outcome {
	body := movement{
		Type: 1, Channel: channels[r.Network], Currency: currency, Receiver: r.MSISDN.Local(), Amount: r.Amount.String(),
		Reference: provider.PlainReference(r.ProviderReference), Text: description(r.Label, r.Reference), Account: m.account.AccountNumber,
	}
	if r.BankCode != "" {
		body.Channel, body.Receiver, body.Bank = bankChannel, r.Account, r.BankCode
	}
	if body.Channel == "" {
		return noChannel(r.Network)
	}
	return transferred(m.send(ctx, body, false, provider.Request{URL: "/open/transact/transfer", Operation: "disburse", Reference: r.ProviderReference, Hide: []string{r.Account}}), r.ProviderReference)
}

// DisburseStatus queries a payout.
func (m *Adapter) DisburseStatus(ctx context.Context, r provider.StatusRequest) provider.Outcome {
	return disbursed(m.status(ctx, "disburse_status", false, r), r.ProviderReference, m.account.TransferNotKnown)
}

// status queries a collection or a payout by our reference.
func (m *Adapter) status(ctx context.Context, op string, public bool, r provider.StatusRequest) provider.Answer {
	body := map[string]any{"type": 1, "idtype": "1", "id": provider.PlainReference(r.ProviderReference), "accountnumber": m.account.AccountNumber}
	return m.send(ctx, body, public, provider.Request{URL: "/open/transact/status", Operation: op, Reference: r.ProviderReference, Timeout: queryWithin, Hide: []string{r.Account}})
}

// WalletName returns the registered name of a wallet.
func (m *Adapter) WalletName(ctx context.Context, n msisdn.Network, number msisdn.MSISDN) (string, provider.Outcome) {
	return m.name(ctx, "wallet_name", channels[n], number.Local(), "")
}

// BankName returns the name of a bank account's holder.
func (m *Adapter) BankName(ctx context.Context, bankCode, account string) (string, provider.Outcome) {
	return m.name(ctx, "bank_name", bankChannel, account, bankCode)
}

// name queries a holder's name. The answer is a bare name, so the log of exchanges must not contain it.
func (m *Adapter) name(ctx context.Context, op, channel, receiver, bank string) (string, provider.Outcome) {
	body := map[string]any{"type": 1, "receiver": receiver, "channel": channel, "currency": currency, "accountnumber": m.account.AccountNumber}
	if bank != "" {
		body["sublistid"] = bank
	}
	return holder(m.send(ctx, body, false, provider.Request{URL: "/open/transact/validate", Operation: op, Timeout: queryWithin, Hide: []string{receiver}, HideAnswer: true}))
}

// Banks lists the banks that payouts can go to.
func (m *Adapter) Banks(ctx context.Context) ([]provider.PayableBank, provider.Outcome) {
	return bankList(m.do(ctx, false, provider.Request{Method: http.MethodGet, URL: "/open/transact/data?country=" + country + "&data=banks", Operation: "banks", Timeout: queryWithin}))
}

// Float reads the balance.
func (m *Adapter) Float(ctx context.Context) ([]provider.Held, provider.Outcome) {
	body := map[string]any{"type": 1, "accountnumber": m.account.AccountNumber}
	return balance(m.send(ctx, body, false, provider.Request{URL: "/open/account/status", Operation: "balance", Timeout: queryWithin}))
}

// errSecret is returned for every callback without the account's secret.
var errSecret = errors.New("callback does not contain the secret of the account")

// ParseCallback returns the collection of a callback. It ignores the status in the callback. For a payment that is not ours it
// returns neither a hint nor an error.
func (m *Adapter) ParseCallback(r provider.CallbackRequest) ([]provider.Hint, error) {
	var callback struct {
		Secret text `json:"secret"`
		Data   struct {
			Secret    text `json:"secret"` // one public client expects the secret here
			Reference text `json:"externalref"`
		} `json:"data"`
	}
	err := json.Unmarshal(r.Body, &callback)
	given := callback.Secret
	if given == "" {
		given = callback.Data.Secret
	}
	if secret := m.account.CallbackSecret.Reveal(); secret != "" && subtle.ConstantTimeCompare([]byte(given), []byte(secret)) != 1 {
		return nil, errSecret
	}
	if err != nil {
		return nil, err
	}
	id, err := uuid.Parse(string(callback.Data.Reference))
	if err != nil {
		return nil, nil
	}
	return []provider.Hint{{ProviderReference: id.String()}}, nil
}

// send sends a body by POST. Only collections and their status need the public key.
func (m *Adapter) send(ctx context.Context, body any, public bool, r provider.Request) provider.Answer {
	encoded, err := json.Marshal(body)
	if err != nil {
		return provider.Answer{Err: err}
	}
	r.Method, r.Body = http.MethodPost, encoded
	return m.do(ctx, public, r)
}

// do sends a request. Its URL is a path. The sandbox needs no keys.
func (m *Adapter) do(ctx context.Context, public bool, r provider.Request) provider.Answer {
	r.URL = m.account.URL + r.URL
	r.Header = http.Header{"Accept": {"application/json"}}
	r.Header.Set("X-API-USER", m.account.User)
	if key := m.account.PrivateKey.Reveal(); key != "" {
		r.Header.Set("X-API-KEY", key)
	}
	if key := m.account.PublicKey.Reveal(); key != "" && public {
		r.Header.Set("X-API-PUBKEY", key)
	}
	if r.Body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return m.client.Do(ctx, r)
}

// descriptionLength is our own limit of the text of a payment; Moolre documents none.
const descriptionLength = 100

// description returns the text of a payment.
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
