package tenant

import (
	"cmp"
	"slices"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/records"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/roles"
)

// tenantHome is the first page of an account.
func (ps *Pages) tenantHome(v *console.Visit) (console.Answer, error) {
	var balances []page.Fact
	var err error
	if v.Can(roles.ReadBalances) {
		if balances, err = ps.Records.Balances(v, v.Tenant); err != nil {
			return console.Answer{}, err
		}
	}
	var latest page.Grid
	if v.Can(roles.ReadPayments) {
		if latest, err = ps.latestOfTenant(v); err != nil {
			return console.Answer{}, err
		}
	}
	forYou, byYou, err := ps.Approvals.Waiting(v)
	if err != nil {
		return console.Answer{}, err
	}
	live, err := v.Part("home", 5, homePage(v, balances, forYou, byYou, latest))
	return console.Answer{Title: v.Tenant.Name, Body: live}, err
}

// latestOfTenant returns the newest payments of all kinds.
func (ps *Pages) latestOfTenant(v *console.Visit) (page.Grid, error) {
	var all []book.Payment
	for _, kind := range tenantLists {
		found, err := ps.Payments.History(v.Ctx, v.Tenant.ID, book.Filter{Kind: kind.kind, Size: 10})
		if err != nil {
			return page.Grid{}, err
		}
		all = append(all, found.Rows...)
	}
	slices.SortFunc(all, func(a, b book.Payment) int { return cmp.Compare(b.ID, a.ID) })
	return records.Grid(v, all[:min(len(all), 10)], false, nil), nil
}
