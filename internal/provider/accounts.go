package provider

import (
	"cmp"
	"slices"
)

// The accounts that a provider may keep for us, named by what moves their money.
const (
	AccountCollection   = "collection"   // collections come in
	AccountDisbursement = "disbursement" // payouts go out
	AccountServices     = "services"     // airtime and data packages are paid from it, where it is not the one of payouts
)

// AccountNames returns every name that an account at a provider may have.
func AccountNames() []string {
	return []string{AccountCollection, AccountDisbursement, AccountServices}
}

// Accounts names the provider's accounts that a rail uses. The zero value has one account for collections, and one that pays
// for everything else.
type Accounts struct {
	Collect  string // empty: AccountCollection
	Disburse string // empty: AccountDisbursement
	Sell     string // of airtime and data packages; empty: the one of Disburse
}

// Full returns the accounts with every name filled in.
func (a Accounts) Full() Accounts {
	a.Collect = cmp.Or(a.Collect, AccountCollection)
	a.Disburse = cmp.Or(a.Disburse, AccountDisbursement)
	a.Sell = cmp.Or(a.Sell, a.Disburse)
	return a
}

// Names returns each account's name once.
func (a Accounts) Names() []string {
	full := a.Full()
	names := []string{full.Collect, full.Disburse, full.Sell}
	slices.Sort(names)
	return slices.Compact(names)
}
