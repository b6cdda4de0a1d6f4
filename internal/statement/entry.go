package statement

import (
	"context"
	"time"

	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
)

// Type is the type of a movement. Programs read it in files and in the interface, so values never change.
type Type string

// The types of movements.
const (
	Collection    Type = "collection"
	Payout        Type = "payout"
	Refund        Type = "refund" // of a collection, to its payer
	Airtime       Type = "airtime"
	Data          Type = "data"
	Charges       Type = "charges"
	Return        Type = "return"   // amount and charges of a failed payment
	Reversal      Type = "reversal" // a collection that its provider reversed
	TransferIn    Type = "transfer_in"
	TransferOut   Type = "transfer_out"
	BatchReserve  Type = "batch_reserve" // amounts and charges of a batch's rows
	BatchReturn   Type = "batch_return"  // part of the reserve that no row used
	Funding       Type = "funding"
	Correction    Type = "correction"
	Debt          Type = "debt" // taken for a debt of the account
	Messages      Type = "messages"
	MessageReturn Type = "message_return"
	CreditSale    Type = "credit_sale"
	CreditReturn  Type = "credit_return" // credits of a reversed sale
	Other         Type = "other"

	// Opening and Closing are the balances at the ends of a period, in files for people. They are not movements.
	Opening Type = "opening"
	Closing Type = "closing"
)

// types has all types in the order of totals.
var types = []Type{Collection, Payout, Refund, Airtime, Data, Charges, Return, Reversal, TransferIn, TransferOut, BatchReserve, BatchReturn,
	Funding, Correction, Debt, Messages, MessageReturn, CreditSale, CreditReturn, Other}

var titles = map[Type]string{Collection: "Collection", Payout: "Payout", Refund: "Refund", Airtime: "Airtime", Data: "Data package", Charges: "Charges",
	Return: "Returned to wallet", Reversal: "Collection reversed", TransferIn: "Transfer in", TransferOut: "Transfer out",
	BatchReserve: "Batch reserved", BatchReturn: "Batch returned", Funding: "Wallet funded", Correction: "Correction", Debt: "Debt recovered",
	Messages: "Messages sent", MessageReturn: "Credits returned", CreditSale: "Credits bought", CreditReturn: "Credits taken back", Other: "Other",
	Opening: "Opening balance", Closing: "Closing balance"}

// Title returns the name of the type for people.
func (t Type) Title() string { return titles[t] }

// Entry is one movement.
type Entry struct {
	Number    int64 // number in the wallet, from 1
	At        time.Time
	Type      Type
	Channel   string // of a payment: a network, BANK or WALLET
	Reference string // the client's for a payment, the operator's for an order
	Account   string // the other party's whole number or bank account; callers mask it
	Name      string // name of the other party, if known
	Subject   string // id of the payment, campaign, batch or order
	Event     string // the kind of the transfer in the ledger
	Provider  string // our reference at the provider; empty if no provider is involved
	Change    int64  // pesewas or credits; negative: out of the account
	Balance   int64  // balance after the movement

	// Charged, Returned and Deducted are the charges of the movement in pesewas. Charged was debited from the wallet,
	// Returned was credited back, and Deducted was taken from a collection before its credit.
	Charged, Returned, Deducted money.Pesewas
}

// entry returns the movement of a ledger line, with the data of its payment or of an operator's order.
func (r *Reader) entry(ctx context.Context, s Statement, l ledger.Line, payments map[string]book.Payment) (Entry, error) {
	e := Entry{Number: l.Sequence, At: l.At, Subject: l.Subject, Event: l.Kind, Change: l.Change, Balance: l.Balance, Type: Other}
	if p, is := payments[l.Subject]; is {
		return r.ofPayment(ctx, e, l, p)
	}
	e.Type = typeOf(s, l)
	switch e.Type {
	case BatchReserve, BatchReturn, Messages, MessageReturn:
		return e, nil
	}
	b, found, err := r.ledger.BookingOf(ctx, l)
	if found {
		e.Reference = b.Reference
	}
	return e, err
}

// typeOf returns the type of a movement without a payment. The account on its other side decides.
func typeOf(s Statement, l ledger.Line) Type {
	in := l.Change > 0
	other := l.From
	if !in {
		other = l.To
	}
	pick := func(into, outOf Type) Type {
		if in {
			return into
		}
		return outOf
	}
	if other.IsBank() {
		return Funding
	}
	switch other {
	case ledger.Reserve(s.Tenant.ID):
		return pick(BatchReturn, BatchReserve)
	case ledger.Receivable(s.Tenant.ID):
		return Debt
	case ledger.Used:
		return pick(MessageReturn, Messages)
	case ledger.Funding:
		switch l.Kind {
		case "fund":
			return Funding
		case "sms_sale":
			return CreditSale
		case "sms_sale_reversed":
			return CreditReturn
		}
		return Correction
	}
	return Other
}

// paid maps kinds of payments to types.
var paid = map[book.Kind]Type{book.KindCollection: Collection, book.KindPayout: Payout, book.KindTopUp: Airtime, book.KindBundle: Data}

func (r *Reader) ofPayment(ctx context.Context, e Entry, l ledger.Line, p book.Payment) (Entry, error) {
	e.Channel, e.Reference, e.Account, e.Name, e.Provider = p.Channel, p.Reference, p.Account, p.AccountName, p.ProviderReference
	switch l.Leg {
	case book.LegHold:
		if e.Type = paid[p.Kind]; p.RefundOf != "" {
			e.Type = Refund
		}
	case book.LegFee:
		e.Type, e.Charged = Charges, p.Charges
	case book.LegFinal:
		if e.Type = Return; p.Kind == book.KindCollection {
			e.Type, e.Deducted = Collection, p.Charges
			if p.FeeBearer == book.BearerCustomer {
				e.Deducted = 0
			}
		} else if p.Channel != book.ChannelWallet && p.Batch == "" { // the charges of a batch are part of its reserve
			e.Returned = p.Charges
		}
	case book.LegContradicted:
		e.Type = Reversal
	}
	if p.Channel != book.ChannelWallet {
		return e, nil
	}
	other := p.Details.To
	if e.Type = TransferOut; l.Change > 0 {
		e.Type, other = TransferIn, p.Tenant
	}
	t, err := r.tenants.Get(ctx, other)
	if err != nil && !problem.Is(err, problem.NotFound) {
		return e, err
	}
	e.Account, e.Name, e.Provider = "", t.Name, ""
	return e, nil
}
