package records

import (
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/tenant"
)

// Owed returns the debt of an account after reversals.
func (ps *Pages) Owed(v *console.Visit, t tenant.Tenant) (money.Pesewas, error) {
	n, err := ps.Ledger.Balance(v.Ctx, ledger.Key{Asset: t.Money(), ID: ledger.Receivable(t.ID)})
	return money.Pesewas(-n), err
}

// Balances returns the balances of an account.
func (ps *Pages) Balances(v *console.Visit, t tenant.Tenant) ([]page.Fact, error) {
	wallet, err := ps.Ledger.Balance(v.Ctx, t.Wallet())
	if err != nil {
		return nil, err
	}
	credits, err := ps.Ledger.Balance(v.Ctx, t.SMSCredits())
	if err != nil {
		return nil, err
	}
	owed, err := ps.Owed(v, t)
	facts := []page.Fact{{Name: "Wallet", Value: page.Money(money.Pesewas(wallet))}, {Name: "SMS credits", Value: page.Text(page.Count(credits))}}
	if owed > 0 {
		facts = append(facts, page.Fact{Name: "Owed after a reversal", Value: page.Money(owed)})
	}
	return facts, err
}
