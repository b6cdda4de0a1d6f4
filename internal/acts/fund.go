package acts

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/makola/makola/internal/approval"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// KindFund puts money into a tenant's wallet: the tenant has paid us outside of Makola.
const KindFund = "wallet.fund"

// funded is what its maker asked for and saw. Its members and their order are what is hashed: they never change.
type funded struct {
	Tenant string        `json:"tenant"`
	Name   string        `json:"name"`
	Mode   string        `json:"mode"`
	Amount money.Pesewas `json:"pesewas"`
}

func fundKind() kind {
	return kind{rule: approval.Rule{Make: identity.MakeMoney, Check: identity.CheckMoney}, do: (*Acts).doFund}
}

// Fund asks for money to be put into a tenant's wallet. id is that of the form.
func (a *Acts) Fund(ctx context.Context, by approval.By, id, tenantID string, amount money.Pesewas, reason string) (approval.Act, error) {
	if amount <= 0 {
		return approval.Act{}, problem.Field("amount", "must be above zero")
	}
	t, err := a.Tenants.Get(ctx, tenantID)
	if err != nil {
		return approval.Act{}, err
	}
	sentence := fmt.Sprintf("Put %s into the wallet of %s (%s, %s)", t.Money().Text(int64(amount)), t.Name, t.Mode, t.ID)
	return a.make(ctx, by, draft{id, KindFund, t.ID, sentence, reason, amount, funded{t.ID, t.Name, string(t.Mode), amount}})
}

// doFund moves the money, books it under the act's id and ends the act in one transaction.
func (a *Acts) doFund(ctx context.Context, act approval.Act, actor string, end finish) error {
	var f funded
	if err := json.Unmarshal(act.Payload, &f); err != nil {
		return fmt.Errorf("acts: the payload of %s: %w", act.ID, err)
	}
	return a.Deps.Fund(ctx, f.Tenant, f.Amount, act.Reason, actor, func(tx *db.Tx) error {
		t, err := a.Tenants.Locked(tx, f.Tenant)
		if err != nil {
			return err
		}
		if t.Name != f.Name || string(t.Mode) != f.Mode {
			return problem.New(problem.Invalid, "changed_since", fmt.Sprintf("The account is called %s now, and was %s when this was made", t.Name, f.Name))
		}
		wallet := t.Wallet()
		before, err := a.Ledger.BalanceIn(tx, wallet)
		if err != nil {
			return err
		}
		after := before + int64(f.Amount)
		if err := end(tx, []audit.Change{{What: "wallet of " + t.Name, Before: wallet.Asset.Text(before), After: wallet.Asset.Text(after)}}); err != nil {
			return err
		}
		return a.Ledger.Book(tx, ledger.Booking{Kind: KindFund, Reference: act.ID, Account: wallet, Amount: int64(f.Amount), Act: act.ID})
	})
}
