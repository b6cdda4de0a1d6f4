package route

import (
	"slices"

	"github.com/makola/makola/internal/provider"
)

// Operation is a kind of request to a provider, such as a payout to a wallet.
type Operation string

// The operations. Their names are stored, and operators type them.
const (
	Collect        Operation = "collect"
	DisburseWallet Operation = "disburse_wallet"
	DisburseBank   Operation = "disburse_bank"
	Refund         Operation = "refund" // of a collection, always by the rail that collected, so it has no route
	WalletName     Operation = "wallet_name"
	BankName       Operation = "bank_name"
	TopUp          Operation = "topup"
	Offers         Operation = "offers"
	Bundle         Operation = "bundle"
)

// Any matches every tenant, mode, channel or operation.
const Any = "*"

// Operations returns all operations in the order in which lists show them.
func Operations() []Operation {
	return []Operation{Collect, DisburseWallet, DisburseBank, Refund, WalletName, BankName, TopUp, Offers, Bundle}
}

// Routed returns the operations that have routes. A refund has none, because it goes to the rail that collected.
func Routed() []Operation {
	return slices.DeleteFunc(Operations(), func(op Operation) bool { return op == Refund })
}

// Can reports whether a rail has the role that an operation needs.
func Can(r provider.Rail, op Operation) bool {
	switch op {
	case Collect:
		return r.Collector != nil
	case DisburseWallet, DisburseBank:
		return r.Disburser != nil
	case Refund:
		return r.Refunder != nil
	case WalletName:
		return r.WalletNames != nil
	case BankName:
		return r.BankNames != nil
	case TopUp:
		return r.TopUpper != nil
	case Offers, Bundle:
		return r.Bundles != nil
	default:
		return false
	}
}
