package book

import (
	"encoding/json"
	"time"

	"github.com/makola/makola/internal/history"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
)

// Kind is what a payment is. Stored; never renamed.
type Kind string

// The kinds of payments. A payout with channel WALLET is an operator's move
// between the wallets of two tenants; it is final when it is accepted and meets
// no provider.
const (
	KindCollection Kind = "collection"
	KindPayout     Kind = "payout"
	KindTopUp      Kind = "topup"
	KindBundle     Kind = "bundle"
)

// The channels that are no network.
const (
	ChannelBank   = "BANK"
	ChannelWallet = "WALLET"
)

// Status is the stored state of a payment. Stored; never renamed.
type Status string

// The states. An unknown outcome of an open payment is a property of its attempt (Class), not a
// state of its own: the money is held either way.
const (
	StatusWaiting  Status = "waiting"  // a top-up whose payer has not paid yet; no money is held
	StatusPending  Status = "pending"  // accepted: the money is held, or the payer was asked
	StatusSuccess  Status = "success"  // the provider says that it was done
	StatusFailed   Status = "failed"   // it was not done; whatever was held is back
	StatusDeclined Status = "declined" // collections: the payer refused or let the prompt expire
	StatusInvalid  Status = "invalid"  // collections: no such payer, or a malformed request
)

// Open says whether the payment may still go either way.
func (s Status) Open() bool { return s == StatusWaiting || s == StatusPending }

// Word is the status as customers read it: an open collection, payout or
// unpaid top-up reads pending, an open top-up or bundle submitted.
func (p Payment) Word() string {
	switch {
	case p.Status == StatusWaiting:
		return "pending"
	case p.Status == StatusPending && (p.Kind == KindTopUp || p.Kind == KindBundle):
		return "submitted"
	}
	return string(p.Status)
}

// The words of fee_bearer.
const (
	BearerMerchant = "merchant" // net = amount - charges
	BearerCustomer = "customer" // the payer pays amount + charges, net = amount
)

// Payment is one row. Amounts are in pesewas.
type Payment struct {
	ID     string // UUIDv7, ordered by CreatedAt
	Tenant string
	Kind   Kind
	Seq    int64  // 1, 2, 3, ... among the tenant's payments of this kind, given at acceptance
	Mode   string // "test" or "live", the tenant's when it was accepted

	Channel           string // MTN, TELECEL, AIRTELTIGO, BANK, WALLET
	Reference         string // the client's, or minted
	ProviderReference string // ours, the same for every attempt; shown as ext_transaction_id
	Amount            money.Pesewas
	Charges           money.Pesewas
	FeeBearer         string // BearerMerchant or BearerCustomer
	Plan              int64  // version of the fee plan that made Charges
	Account           string // MSISDN as 233XXXXXXXXX, or a bank account number
	AccountName       string // as the provider or the customer gave it
	BankID            string
	Label             string // shown to the payer
	CallbackURL       string
	Key               string // access key that asked
	IdempotencyKey    string
	IdempotencyHash   string
	Parent            string // of a top-up paid by mobile money: its collection; of a received transfer: the one given
	Child             string // of such a collection: its top-up
	Batch             string // of a payout that the reserve of a batch pays: the batch
	RefundOf          string // of a refund: the collection
	RefundWay         RefundWay
	Refunded          money.Pesewas // of a collection: by its refunds that are open or done
	Details           Details

	Status  Status
	Reason  string // stable code, see provider.Sentence
	Refused bool   // the provider said no inside the request, which answered so

	Note string // an operator's reason for resolving it

	// The current attempt. Those that it replaced are in the table attempts.
	Rail             string
	UpstreamID       string
	Attempt          int            // 1 and up
	AttemptReference string         // ProviderReference of this attempt
	Posts            int            // submissions of this attempt, the one to come or under way included
	Unsent           int            // of these, proven never to have been processed
	SendingAt        time.Time      // marked before a submission that must never be repeated, is a repetition, or comes late
	Class            provider.Class // as last written down; means something only if Classed
	Classed          bool
	Refusal          Refusal   // what the provider refused and has not confirmed
	RefusalReason    string    // stable code, see provider.Sentence
	RefusedAt        time.Time // zero unless a refusal stands
	CreatedAt        time.Time
	SettledAt        time.Time // zero while open
	EscalatedAt      time.Time // zero unless an operator was called
	ContradictedAt   time.Time // zero unless the provider contradicted a final status later
	LastWord         string    // what it said last since then, success or failed; empty: the opposite of the status
	// WaitedFor is the last submission after which its follower has seen two minutes pass; zero: none.
	WaitedFor time.Time
	// HeldUntil is when a payout ends that waits for the approval of its account's people. It is zero unless it
	// waits: such a payout has no job, and was never submitted.
	HeldUntil time.Time
}

// Waits says whether the payment waits for the approval of its account's people.
func (p Payment) Waits() bool { return !p.HeldUntil.IsZero() }

// ProviderState is the last word about a final payment, its provider's or its status's.
func (p Payment) ProviderState() provider.State {
	if (p.Status == StatusSuccess) != (!p.ContradictedAt.IsZero() && p.LastWord != string(p.Status)) {
		return provider.Success
	}
	return provider.Failed
}

// Details is what only one kind needs; stored as JSON.
type Details struct {
	AccountType string `json:"account_type,omitempty"` // subscriber or agent
	NetworkID   string `json:"network_id,omitempty"`   // top-ups: the catalogue's id
	ServiceID   string `json:"service_id,omitempty"`   // bundles: the catalogue's id
	Service     string `json:"service,omitempty"`      // bundles: what adapters know the service by
	OfferID     string `json:"offer_id,omitempty"`
	Display     string `json:"display,omitempty"`
	Value       string `json:"value,omitempty"`  // the provider's name of the offer
	To          string `json:"to,omitempty"`     // transfers: the other tenant
	Note        string `json:"note,omitempty"`   // an operator's reason
	Minted      bool   `json:"minted,omitempty"` // the Reference is ours, the customer gave none

	// Of refunds: the client's reference of the collection, and the one by which its rail collected the money.
	Collection string `json:"collection,omitempty"`
	Collected  string `json:"collected,omitempty"`
}

func (d Details) encode() string {
	if d == (Details{}) {
		return ""
	}
	b, err := json.Marshal(d)
	if err != nil {
		panic("book: details of strings do not encode: " + err.Error())
	}
	return string(b)
}

func decodeDetails(s string) (d Details, err error) {
	if s != "" {
		err = json.Unmarshal([]byte(s), &d)
	}
	return d, err
}

// ClientReference is the Reference where the client gave it, and empty where it
// is ours.
func (p Payment) ClientReference() string {
	if p.Details.Minted {
		return ""
	}
	return p.Reference
}

// MSISDN is the other party's number; empty for a bank account.
func (p Payment) MSISDN() msisdn.MSISDN {
	if p.Channel == ChannelBank || p.Channel == ChannelWallet {
		return ""
	}
	return msisdn.MSISDN(p.Account)
}

// Net is what a collection brings to the wallet.
func (p Payment) Net() money.Pesewas {
	if p.FeeBearer == BearerCustomer {
		return p.Amount
	}
	return p.Amount - p.Charges
}

// Gross is what passes between the provider and the other party.
func (p Payment) Gross() money.Pesewas {
	if p.Kind == KindCollection {
		return p.Net() + p.Charges
	}
	return p.Amount
}

// Received says that the payment is the side of a transfer between two tenants'
// wallets that is in the list of the one who got it. Its Parent moved the money.
func (p Payment) Received() bool { return p.Channel == ChannelWallet && p.Parent != "" }

// Held is what the payment takes from the wallet until it is final.
func (p Payment) Held() money.Pesewas {
	if p.Kind == KindCollection || p.Received() {
		return 0
	}
	return p.Amount + p.Charges
}

// A Refusal is a provider's no to a submission that it has not confirmed when asked.
// It stands on the row of the open payment. Stored; never renamed.
type Refusal string

// The refusals.
const (
	RefusalNone   Refusal = ""
	RefusalClear  Refusal = "clear"  // in the provider's own words for a final no
	RefusalBare   Refusal = "bare"   // any other no: a gateway's page, an undocumented code
	RefusalBarred Refusal = "barred" // 401, 403 or 429 until the time to send was over
)

// MayLeaveSince is when the row last said that a submission may begin: at the acceptance,
// or at the mark that comes before every other submission and before a first one that is
// late.
func (p Payment) MayLeaveSince() time.Time {
	if p.SendingAt.IsZero() {
		return p.CreatedAt
	}
	return p.SendingAt
}

// Waited reports whether the process that follows the payment has seen its last submission end.
func (p Payment) Waited() bool { return p.WaitedFor.Equal(p.MayLeaveSince()) }

// RefundWay is how a refund reaches the payer. Stored; never renamed.
type RefundWay string

// The ways of a refund. The way is chosen before the debit and never changes.
const (
	RefundByRail   RefundWay = "rail"   // the refund of the rail that collected the money
	RefundByPayout RefundWay = "payout" // a payout to the payer's number, by any rail
)

// refundOpen is the column refund_open, by which nodes of an earlier release cannot change a refund.
func (p Payment) refundOpen() int64 {
	switch {
	case p.RefundOf == "" || p.Status != StatusPending:
		return 0
	case p.Waits():
		return 2
	}
	return 1
}

// The words of carriermomo_account_type.
const (
	AccountSubscriber = "subscriber"
	AccountAgent      = "agent"
)

// debit is what acceptance takes out of the wallet.
func (p Payment) debit() money.Pesewas {
	switch {
	case p.Status == StatusWaiting, p.Received(), p.Batch != "":
		return 0
	case p.Channel == ChannelWallet:
		return p.Amount
	}
	return p.Held()
}

// asset is the money of a mode.
func asset(mode string) ledger.Asset {
	if mode == "live" {
		return ledger.GHS
	}
	return ledger.TestGHS
}

// Money is the asset that the payment moves.
func (p Payment) Money() ledger.Asset { return asset(p.Mode) }

func walletOf(p Payment) ledger.Key {
	return ledger.Key{Asset: asset(p.Mode), ID: ledger.Wallet(p.Tenant)}
}

// listOf is the list that a payment is in.
func listOf(p Payment) history.List { return history.List{Tenant: p.Tenant, Kind: string(p.Kind)} }

// counted is a status as the histories count it: an open one is not.
func (s Status) counted() string {
	if s.Open() {
		return ""
	}
	return string(s)
}
