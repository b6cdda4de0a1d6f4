package changes

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/treasury"
)

// KindFund puts money into a tenant's wallet: the tenant has paid us outside of Makola. KindAdjust corrects a wallet, in
// either direction.
const (
	KindFund   = "wallet.fund"
	KindAdjust = "wallet.adjust"
)

// wallet is what the maker of an act about a wallet asked for and saw. Its members and their order are what is hashed: they
// never change.
type wallet struct {
	Tenant string        `json:"tenant"`
	Name   string        `json:"name"`
	Mode   string        `json:"mode"`
	Amount money.Pesewas `json:"pesewas"` // into the wallet; out of it below zero
	// Reference is its maker's, which its kind takes once; empty: the act's id stands for it.
	Reference string `json:"reference,omitempty"`
}

// mover moves money into a tenant's wallet, or out of it below zero; also runs in the transaction that moves it.
type mover func(t *treasury.Treasury, ctx context.Context, tenant string, amount money.Pesewas, reason, actor string, also ...func(*db.Tx) error) error

func walletKind(does string, verb mover) kind {
	return kind{
		does: does,
		rule: Rule{Make: identity.MakeMoney, Check: identity.CheckMoney},
		do: func(a *Changes, ctx context.Context, act *Request, actor string, end finish) error {
			return a.move(ctx, verb, *act, actor, end)
		},
	}
}

// byAmount requests a movement of a wallet by its fields.
func byAmount(request func(a *Changes, ctx context.Context, by By, id, reference, tenant string, amount money.Pesewas, reason string) (Request, error)) func(*Changes, context.Context, By, string, Values, string) (Request, error) {
	return func(a *Changes, ctx context.Context, by By, id string, v Values, reason string) (Request, error) {
		amount, err := v.moved()
		if err != nil {
			return Request{}, err
		}
		return request(a, ctx, by, id, v[referenceField.Name], v[FieldTenant], amount, reason)
	}
}

// Fund asks for money to be put into a tenant's wallet. id is that of the form, or of the command.
func (a *Changes) Fund(ctx context.Context, by By, id, tenantID string, amount money.Pesewas, reason string) (Request, error) {
	return a.FundUnder(ctx, by, id, "", tenantID, amount, reason)
}

// FundUnder is Fund under a reference of its maker's, such as the number of a bank slip: of all acts of a kind under one
// reference one is done.
func (a *Changes) FundUnder(ctx context.Context, by By, id, reference, tenantID string, amount money.Pesewas, reason string) (Request, error) {
	if amount <= 0 {
		return Request{}, problem.Field("amount", "must be above zero")
	}
	return a.ask(ctx, by, draft{id: id, kind: KindFund, tenant: tenantID, reason: reason}, reference, amount, "Put %s into the wallet of %s (%s, %s)")
}

// Adjust asks for a wallet to be corrected by an amount, which is below zero where it is taken out.
func (a *Changes) Adjust(ctx context.Context, by By, id, tenantID string, amount money.Pesewas, reason string) (Request, error) {
	return a.AdjustUnder(ctx, by, id, "", tenantID, amount, reason)
}

// AdjustUnder is Adjust under a reference of its maker's.
func (a *Changes) AdjustUnder(ctx context.Context, by By, id, reference, tenantID string, amount money.Pesewas, reason string) (Request, error) {
	if amount == 0 {
		return Request{}, problem.Field("amount", "must not be zero")
	}
	sentence := "Correct the wallet of %[2]s (%[3]s, %[4]s): put %[1]s into it"
	if amount < 0 {
		sentence = "Correct the wallet of %[2]s (%[3]s, %[4]s): take %[1]s out of it"
	}
	return a.ask(ctx, by, draft{id: id, kind: KindAdjust, tenant: tenantID, reason: reason}, reference, amount, sentence)
}

// ask makes an act about a tenant's wallet; the sentence gets the amount, and the tenant's name, mode and id.
func (a *Changes) ask(ctx context.Context, by By, d draft, reference string, amount money.Pesewas, sentence string) (Request, error) {
	if err := checkReference(reference); err != nil {
		return Request{}, err
	}
	t, err := a.Tenants.Get(ctx, d.tenant)
	if err != nil {
		return Request{}, err
	}
	if err := a.Treasury.CheckAdjust(ctx, t, amount); err != nil {
		return Request{}, err
	}
	d.amount = max(amount, -amount)
	d.sentence = fmt.Sprintf(sentence, t.Money().Text(int64(d.amount)), t.Name, t.Mode, t.ID) + under(reference)
	d.payload = wallet{t.ID, t.Name, string(t.Mode), amount, reference}
	return a.make(ctx, by, d)
}

// move moves the money, books it under the act's id and ends the act in one transaction.
func (a *Changes) move(ctx context.Context, verb mover, act Request, actor string, end finish) error {
	var w wallet
	if err := json.Unmarshal(act.Payload, &w); err != nil {
		return fmt.Errorf("changes: the payload of %s: %w", act.ID, err)
	}
	return verb(a.Treasury, ctx, w.Tenant, w.Amount, act.Reason, actor, func(tx *db.Tx) error {
		t, err := a.Tenants.Locked(tx, w.Tenant)
		if err != nil {
			return err
		}
		if t.Name != w.Name || string(t.Mode) != w.Mode {
			return problem.New(problem.Invalid, "changed_since", fmt.Sprintf("The account is called %s now, and was %s when this was made", t.Name, w.Name))
		}
		key := t.Wallet()
		before, err := a.Ledger.BalanceIn(tx, key)
		if err != nil {
			return err
		}
		after := before + int64(w.Amount)
		if err := end(tx, []audit.Change{{What: "wallet of " + t.Name, Before: key.Asset.Text(before), After: key.Asset.Text(after)}}); err != nil {
			return err
		}
		return a.book(tx, act, w.Reference, key, int64(w.Amount))
	})
}
