package provider

import (
	"context"
	"net/http"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
)

// CollectRequest asks a payer for money.
type CollectRequest struct {
	ProviderReference string // UUIDv4 of ours, stored before the first byte leaves
	Reference         string // the client's, for texts only
	Amount            money.Pesewas
	MSISDN            msisdn.MSISDN
	Network           msisdn.Network
	Label             string // shown to the payer
	Email             string // of the account, for rails that need one
	CallbackURL       string // empty: none wanted
}

// VoucherRequest completes a collection with the voucher that its payer generated.
type VoucherRequest struct {
	ProviderReference string // of the collection
	Code              string
}

// DisburseRequest sends money to a wallet, or to a bank account when BankCode
// is set.
type DisburseRequest struct {
	ProviderReference string
	Reference         string
	Amount            money.Pesewas
	MSISDN            msisdn.MSISDN
	Network           msisdn.Network
	Name              string // the payee's name as resolved
	BankCode          string // the provider's code, from Rail.Banks
	Account           string // bank account number
	AccountType       string // "subscriber" or "agent"; mapped where a provider can
	Label             string
	CallbackURL       string
}

// StatusRequest asks what became of an earlier request.
type StatusRequest struct {
	ProviderReference string
	Amount            money.Pesewas
	MSISDN            msisdn.MSISDN
	Account           string
	Collected         string    // of refunds: ProviderReference under which the rail collected the money
	SentAt            time.Time // when the request was first posted
}

// RefundRequest gives a collection, or a part of it, back to its payer.
type RefundRequest struct {
	ProviderReference string
	Collected         string // ProviderReference under which the rail collected the money
	Reference         string // the client's, for texts only
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

// Offer is one data package as a provider quotes it for one number.
type Offer struct {
	Display string // "1.19GB"
	Value   string // the provider's name of it, sent back when buying
	Amount  money.Pesewas
}

// OffersRequest asks which data packages a number is offered now.
type OffersRequest struct {
	Service string // our key of the data service, such as "mtn_data"; empty: the network's own
	Network msisdn.Network
	MSISDN  msisdn.MSISDN
}

// BundleRequest buys a data package that was offered to this number.
type BundleRequest struct {
	ProviderReference string
	Service           string // as in the OffersRequest that brought the offer
	MSISDN            msisdn.MSISDN
	Network           msisdn.Network
	Offer             Offer
	CallbackURL       string
}

// Collector collects from mobile money wallets. Neither method returns a Go
// error: whatever goes wrong is in the Outcome.
type Collector interface {
	Collect(ctx context.Context, r CollectRequest) Outcome
	CollectStatus(ctx context.Context, r StatusRequest) Outcome
}

// VoucherTaker completes collections with a voucher of the payer. Rejected means that the provider did not take the voucher,
// or has no such collection that waits for one. No outcome is final for the collection.
type VoucherTaker interface {
	SubmitVoucher(ctx context.Context, r VoucherRequest) Outcome
}

// Disburser sends to wallets and, where the rail has bank codes, to banks.
type Disburser interface {
	Disburse(ctx context.Context, r DisburseRequest) Outcome
	DisburseStatus(ctx context.Context, r StatusRequest) Outcome
}

// Refunder gives collections of the same rail back to their payers by the provider's own refund.
type Refunder interface {
	Refund(ctx context.Context, r RefundRequest) Outcome
	RefundStatus(ctx context.Context, r StatusRequest) Outcome
}

// NameResolver returns the registered name of a wallet. Nothing moves, so the outcome only classifies the response:
// Accepted with a name, Rejected for an unknown wallet, anything else for "ask another time".
type NameResolver interface {
	WalletName(ctx context.Context, n msisdn.Network, m msisdn.MSISDN) (string, Outcome)
}

// BankResolver returns the name of a bank account; outcomes as NameResolver's.
type BankResolver interface {
	BankName(ctx context.Context, bankCode, account string) (string, Outcome)
}

// PayableBank is a bank that a rail can pay.
type PayableBank struct {
	Code string // the provider's
	Name string
}

// BankLister lists every bank that a rail can pay. An outcome that is not Accepted comes without banks.
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

// Held is what one account at a provider holds for us.
type Held struct {
	Account string // one of AccountNames
	Amount  money.Pesewas
}

// FloatReader reads the balance of each account that the provider keeps for us. An outcome that is not Accepted comes
// without balances.
type FloatReader interface {
	Float(ctx context.Context) ([]Held, Outcome)
}

// CallbackRequest is a callback as it arrived, already bounded in size.
type CallbackRequest struct {
	Method string
	Header http.Header
	Body   []byte
}

// Hint names the payment of a callback. The callback's claims are dropped on purpose: it only moves the next status
// query forward.
type Hint struct {
	ProviderReference string
	// OfRefund is set if the callback is about a refund of that collection, which it does not name itself.
	OfRefund bool
}

// CallbackParser reads a provider's callbacks.
type CallbackParser interface {
	ParseCallback(r CallbackRequest) ([]Hint, error)
}
