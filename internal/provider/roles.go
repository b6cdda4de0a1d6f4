package provider

import (
	"context"
	"net/http"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
)

// CollectRequest requests money from a payer.
type CollectRequest struct {
	ProviderReference string // our UUIDv4, stored before the first byte is sent
	Reference         string // the client's reference, used in texts only
	Amount            money.Pesewas
	MSISDN            msisdn.MSISDN
	Network           msisdn.Network
	Label             string // shown to the payer
	Email             string // address of the account, for rails that need one
	CallbackURL       string // empty: no callback is wanted
}

// VoucherRequest completes a collection with the voucher that its payer generated.
type VoucherRequest struct {
	ProviderReference string // of the collection
	Code              string
	// Some rails repeat the collection with the voucher.
	Reference string
	Amount    money.Pesewas
	MSISDN    msisdn.MSISDN
	Network   msisdn.Network
	Label     string
}

// DisburseRequest sends money to a wallet, or to a bank account if BankCode is set.
type DisburseRequest struct {
	ProviderReference string
	Reference         string
	Amount            money.Pesewas
	MSISDN            msisdn.MSISDN
	Network           msisdn.Network
	Name              string // the payee's name from the name lookup
	BankCode          string // the provider's code, from Rail.Banks
	Account           string // bank account number
	AccountType       string // "subscriber" or "agent"; sent only to providers that support it
	Label             string
	CallbackURL       string
}

// StatusRequest queries the outcome of an earlier request.
type StatusRequest struct {
	ProviderReference string
	Amount            money.Pesewas
	MSISDN            msisdn.MSISDN
	Account           string
	Collected         string    // of refunds: ProviderReference under which the rail collected the money
	SentAt            time.Time // when the request was first submitted
}

// RefundRequest returns a collection, or a part of it, to its payer.
type RefundRequest struct {
	ProviderReference string
	Collected         string // ProviderReference under which the rail collected the money
	Reference         string // the client's reference, used in texts only
	Amount            money.Pesewas
	Label             string
	CallbackURL       string
}

// TopUpRequest buys airtime for a number.
type TopUpRequest struct {
	ProviderReference string
	Amount            money.Pesewas
	MSISDN            msisdn.MSISDN
	Network           msisdn.Network
	CallbackURL       string
}

// Offer is one data package with the price at which a provider offers it to a number.
type Offer struct {
	Display string // "1.19GB"
	Value   string // the provider's name of the package, needed to buy it
	Amount  money.Pesewas
}

// OffersRequest requests the data packages that are offered to a number now.
type OffersRequest struct {
	Service string // our key of the data service, such as "mtn_data"; empty: the network's own
	Network msisdn.Network
	MSISDN  msisdn.MSISDN
}

// BundleRequest buys a data package that was offered to this number.
type BundleRequest struct {
	ProviderReference string
	Service           string // as in the OffersRequest that returned the offer
	MSISDN            msisdn.MSISDN
	Network           msisdn.Network
	Offer             Offer
	CallbackURL       string
}

// Collector collects from mobile money wallets. Its methods return no Go error; every failure is part of the Outcome.
type Collector interface {
	Collect(ctx context.Context, r CollectRequest) Outcome
	CollectStatus(ctx context.Context, r StatusRequest) Outcome
}

// VoucherTaker completes collections with a voucher of the payer. Rejected means that the provider did not accept the
// voucher, or has no collection that waits for it. No outcome makes the collection final.
type VoucherTaker interface {
	SubmitVoucher(ctx context.Context, r VoucherRequest) Outcome
}

// Disburser sends to wallets and, where the rail has bank codes, to banks.
type Disburser interface {
	Disburse(ctx context.Context, r DisburseRequest) Outcome
	DisburseStatus(ctx context.Context, r StatusRequest) Outcome
}

// Refunder refunds collections of the same rail to their payers by the provider's own refund.
type Refunder interface {
	Refund(ctx context.Context, r RefundRequest) Outcome
	RefundStatus(ctx context.Context, r StatusRequest) Outcome
}

// NameResolver returns the registered name of a wallet. No money moves, so the outcome only classifies the response.
// It is Accepted with a name, and Rejected for an unknown wallet. After every other outcome the caller may try
// again.
type NameResolver interface {
	WalletName(ctx context.Context, n msisdn.Network, m msisdn.MSISDN) (string, Outcome)
}

// BankResolver returns the name of a bank account's holder, with the same outcomes as NameResolver.
type BankResolver interface {
	BankName(ctx context.Context, bankCode, account string) (string, Outcome)
}

// PayableBank is a bank that a rail can pay.
type PayableBank struct {
	Code string // the provider's code of the bank
	Name string
}

// BankLister lists every bank that a rail can pay. The list is valid only if the outcome is Accepted.
type BankLister interface {
	Banks(ctx context.Context) ([]PayableBank, Outcome)
}

// TopUpper sells airtime.
type TopUpper interface {
	TopUp(ctx context.Context, r TopUpRequest) Outcome
	TopUpStatus(ctx context.Context, r StatusRequest) Outcome
}

// BundleSeller quotes and sells data packages. Offers also returns the name of the number's holder if the provider
// knows it.
type BundleSeller interface {
	Offers(ctx context.Context, r OffersRequest) (offers []Offer, holder string, o Outcome)
	BuyBundle(ctx context.Context, r BundleRequest) Outcome
	BundleStatus(ctx context.Context, r StatusRequest) Outcome
}

// Held is the balance of one of our accounts at a provider.
type Held struct {
	Account string // one of AccountNames
	Amount  money.Pesewas
}

// FloatReader reads the balances of our accounts at the provider. They are valid only if the outcome is Accepted.
type FloatReader interface {
	Float(ctx context.Context) ([]Held, Outcome)
}

// CallbackRequest is a received callback. Its size is limited already.
type CallbackRequest struct {
	Method string
	Host   string // host to which it was sent
	Path   string
	Header http.Header
	Body   []byte
}

// Hint names the payment of a callback. It deliberately contains nothing else of the callback, because a callback
// only brings the next status query forward.
type Hint struct {
	ProviderReference string
	// OfRefund is set if the callback is about a refund of this collection. Such a callback does not name the refund
	// itself.
	OfRefund bool
}

// CallbackParser reads a provider's callbacks.
type CallbackParser interface {
	ParseCallback(r CallbackRequest) ([]Hint, error)
}
