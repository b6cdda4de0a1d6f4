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

// Kind is the kind of a payment. Values are stored and never change.
type Kind string

// The kinds of payments. A payout with channel WALLET is an operator's transfer between the wallets of two tenants.
// It is final at acceptance and involves no provider.
const (
	KindCollection Kind = "collection"
	KindPayout     Kind = "payout"
	KindTopUp      Kind = "topup"
	KindBundle     Kind = "bundle"
)

// Channels that are not a network.
const (
	ChannelBank   = "BANK"
	ChannelWallet = "WALLET"
)

// Status is the state of a payment. Values are stored and never change.
type Status string

// The states. An unknown outcome is not a state but a property of the attempt (Class), because it does not change the
// hold.
const (
	StatusWaiting  Status = "waiting"  // a top-up whose payer has not paid yet; no money is on hold
	StatusPending  Status = "pending"  // accepted: the money is on hold, or the payer was asked to pay
	StatusSuccess  Status = "success"  // the provider reported success
	StatusFailed   Status = "failed"   // not done; the hold was returned
	StatusDeclined Status = "declined" // collections: the payer refused or let the prompt expire
	StatusInvalid  Status = "invalid"  // collections: no such payer, or a malformed request
)

// Open reports whether the payment has no final status yet.
func (s Status) Open() bool { return s == StatusWaiting || s == StatusPending }

// PublicStatus returns the status that customers see. An open collection, payout or unpaid top-up is pending; any
// other open top-up or bundle is submitted.
func (p Payment) PublicStatus() string {
	switch {
	case p.Status == StatusWaiting:
		return "pending"
	case p.Status == StatusPending && (p.Kind == KindTopUp || p.Kind == KindBundle):
		return "submitted"
	}
	return string(p.Status)
}

// The values of fee_bearer.
const (
	BearerMerchant = "merchant" // net = amount - charges
	BearerCustomer = "customer" // the payer pays amount + charges, net = amount
)

// Payment is one row. Amounts are in pesewas.
type Payment struct {
	ID     string // UUIDv7, ordered by CreatedAt
	Tenant string
	Kind   Kind
	Seq    int64  // 1, 2, 3, ... among the tenant's payments of this kind, in order of acceptance
	Mode   string // "test" or "live", the tenant's mode at acceptance

	Channel           string // MTN, TELECEL, AIRTELTIGO, BANK, WALLET
	Reference         string // the client's, or generated
	ProviderReference string // ours, the same for every attempt; the ext_transaction_id of the API
	Amount            money.Pesewas
	Charges           money.Pesewas
	FeeBearer         string // BearerMerchant or BearerCustomer
	Plan              int64  // version of the fee plan that set Charges
	Account           string // MSISDN as 233XXXXXXXXX, or a bank account number
	AccountName       string // from the provider or the customer
	BankID            string
	Label             string // shown to the payer
	CallbackURL       string
	Key               string // access key of the request
	IdempotencyKey    string
	IdempotencyHash   string
	Parent            string // collection of a top-up paid by mobile money; sender's payment of a received transfer
	Child             string // top-up of such a collection
	Batch             string // batch whose reserve pays the payout
	RefundOf          string // collection that the refund returns
	RefundWay         RefundWay
	Refunded          money.Pesewas // of a collection: sum of its open and successful refunds
	Details           Details

	Status  Status
	Reason  string // stable code, see provider.Sentence
	Refused bool   // the provider refused it before the request was answered

	Note string // an operator's reason for resolving it

	// The current attempt. Earlier attempts are in the table attempts.
	Rail             string
	UpstreamID       string
	Attempt          int            // from 1
	AttemptReference string         // ProviderReference of this attempt
	Submissions      int            // submissions of this attempt, including the next or running submission
	Unsent           int            // submissions that the provider certainly did not process
	SendingAt        time.Time      // set before a submission that is late, repeats another one, or must not be repeated
	Class            provider.Class // last stored class; valid only if Classed
	Classed          bool
	Refusal          Refusal   // an unconfirmed refusal by the provider
	RefusalReason    string    // stable code, see provider.Sentence
	RefusedAt        time.Time // zero without a refusal
	CreatedAt        time.Time
	SettledAt        time.Time // zero while open
	EscalatedAt      time.Time // zero unless operators were alerted
	ContradictedAt   time.Time // zero unless the provider contradicted a final status
	LastReported     string    // last state reported since the contradiction, success or failed; empty: the opposite of the status
	// WaitedFor is the SubmittableSince of the last submission that is known to have ended. It is zero if there is
	// none.
	WaitedFor time.Time
	// VoucherAt is when the provider of the current attempt asked for a voucher of the payer. It is zero if it did not.
	VoucherAt time.Time
	// ApprovalDeadline is when a payout that awaits its account's approval expires. Such a payout has no job and was
	// never submitted. It is zero for all other payments.
	ApprovalDeadline time.Time
}

// AwaitsApproval reports whether the payment is pending approval by people of its account.
func (p Payment) AwaitsApproval() bool { return !p.ApprovalDeadline.IsZero() }

// OutcomeUnknown reports whether the payment is open and its outcome is unknown.
func (p Payment) OutcomeUnknown() bool {
	return p.Status == StatusPending && (!p.EscalatedAt.IsZero() || p.Refusal != RefusalNone || p.Classed && p.Class == provider.Unknown)
}

// ProviderState returns the last state that the provider reported about a final payment. Without a contradiction it
// is the state that the status implies.
func (p Payment) ProviderState() provider.State {
	if (p.Status == StatusSuccess) != (!p.ContradictedAt.IsZero() && p.LastReported != string(p.Status)) {
		return provider.Success
	}
	return provider.Failed
}

// Details are the fields that only one kind needs. They are stored as JSON.
type Details struct {
	AccountType string `json:"account_type,omitempty"` // subscriber or agent
	NetworkID   string `json:"network_id,omitempty"`   // top-ups: the catalogue's id
	ServiceID   string `json:"service_id,omitempty"`   // bundles: the catalogue's id
	Service     string `json:"service,omitempty"`      // bundles: the adapters' name of the service
	OfferID     string `json:"offer_id,omitempty"`
	Display     string `json:"display,omitempty"`
	Value       string `json:"value,omitempty"`  // the provider's name of the offer
	To          string `json:"to,omitempty"`     // transfers: the other tenant
	Note        string `json:"note,omitempty"`   // an operator's reason
	Generated   bool   `json:"minted,omitempty"` // we generated the Reference

	Trace string `json:"trace,omitempty"` // traceparent of the request

	// Refunds only: the client's reference of the collection, and the reference by which its rail collected the
	// money.
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

// ClientReference returns the Reference if the client sent it, and "" if we generated it.
func (p Payment) ClientReference() string {
	if p.Details.Generated {
		return ""
	}
	return p.Reference
}

// MSISDN returns the other party's number, or "" for a bank account or wallet.
func (p Payment) MSISDN() msisdn.MSISDN {
	if p.Channel == ChannelBank || p.Channel == ChannelWallet {
		return ""
	}
	return msisdn.MSISDN(p.Account)
}

// Net returns the amount that a collection credits to the wallet.
func (p Payment) Net() money.Pesewas {
	if p.FeeBearer == BearerCustomer {
		return p.Amount
	}
	return p.Amount - p.Charges
}

// Gross returns the amount that moves between the provider and the other party.
func (p Payment) Gross() money.Pesewas {
	if p.Kind == KindCollection {
		return p.Net() + p.Charges
	}
	return p.Amount
}

// Received reports whether the payment is the receiver's side of a transfer between the wallets of two tenants. Its
// Parent moved the money.
func (p Payment) Received() bool { return p.Channel == ChannelWallet && p.Parent != "" }

// Held returns the amount on hold until the payment is final.
func (p Payment) Held() money.Pesewas {
	if p.Kind == KindCollection || p.Received() {
		return 0
	}
	return p.Amount + p.Charges
}

// A Refusal is a provider's refusal of a submission before a status query has confirmed it. The row of the open
// payment stores it. Values never change.
type Refusal string

// The refusals.
const (
	RefusalNone   Refusal = ""
	RefusalClear  Refusal = "clear"  // the provider's documented code for a final refusal
	RefusalBare   Refusal = "bare"   // any other refusal: a gateway's page, an undocumented code
	RefusalBarred Refusal = "barred" // 401, 403 or 429 until the submission deadline passed
)

// SubmittableSince returns the time from which the last submission may have started: acceptance, or SendingAt.
// SendingAt is set before a late first submission and before every repeated submission.
func (p Payment) SubmittableSince() time.Time {
	if p.SendingAt.IsZero() {
		return p.CreatedAt
	}
	return p.SendingAt
}

// Waited reports whether the payment's last submission is known to have ended.
func (p Payment) Waited() bool { return p.WaitedFor.Equal(p.SubmittableSince()) }

// RefundWay is how a refund reaches the payer. Values are stored and never change.
type RefundWay string

// The ways of a refund. The way is chosen before the debit and never changes.
const (
	RefundByRail   RefundWay = "rail"   // the refund of the rail that collected the money
	RefundByPayout RefundWay = "payout" // a payout to the payer's number, by any rail
)

// refundOpen returns the value of the column refund_open. A constraint compares it with the status, so a node of an
// earlier release, which does not set the column, cannot change a refund.
func (p Payment) refundOpen() int64 {
	switch {
	case p.RefundOf == "" || p.Status != StatusPending:
		return 0
	case p.AwaitsApproval():
		return 2
	}
	return 1
}

// The values of carriermomo_account_type.
const (
	AccountSubscriber = "subscriber"
	AccountAgent      = "agent"
)

// debit returns the amount that acceptance debits from the wallet.
func (p Payment) debit() money.Pesewas {
	switch {
	case p.Status == StatusWaiting, p.Received(), p.Batch != "":
		return 0
	case p.Channel == ChannelWallet:
		return p.Amount
	}
	return p.Held()
}

// asset returns the ledger asset of a mode.
func asset(mode string) ledger.Asset {
	if mode == "live" {
		return ledger.GHS
	}
	return ledger.TestGHS
}

// Money returns the ledger asset that the payment moves.
func (p Payment) Money() ledger.Asset { return asset(p.Mode) }

func walletOf(p Payment) ledger.Key {
	return ledger.Key{Asset: asset(p.Mode), ID: ledger.Wallet(p.Tenant)}
}

// listOf returns the history list of a payment.
func listOf(p Payment) history.List { return history.List{Tenant: p.Tenant, Kind: string(p.Kind)} }

// counted returns the status under which the history counters count a payment, or "" if the payment is open.
func (s Status) counted() string {
	if s.Open() {
		return ""
	}
	return string(s)
}
