package provider

import (
	"cmp"
	"slices"
)

// The accounts that a provider may keep for us. The names show their use.
const (
	AccountCollection   = "collection"   // receives collections
	AccountDisbursement = "disbursement" // pays payouts
	AccountServices     = "services"     // pays for airtime and data packages, if they have a separate account
)

// AccountNames returns all names that an account at a provider may have.
func AccountNames() []string {
	return []string{AccountCollection, AccountDisbursement, AccountServices}
}

// Accounts names the accounts at the provider that a rail uses. The zero value means one account for collections and
// one for everything else.
type Accounts struct {
	Collect  string // empty: AccountCollection
	Disburse string // empty: AccountDisbursement
	Sell     string // account of airtime and data packages; empty: the account of Disburse
}

// Full returns the accounts with all names set.
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
