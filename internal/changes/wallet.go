package changes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

// KindFund credits a tenant's wallet, because the tenant has paid us outside of Makola. KindAdjust corrects a wallet
// in either direction.
const (
	KindFund   = "wallet.fund"
	KindAdjust = "wallet.adjust"
)

// wallet is the payload of a change of a wallet as the requester saw it. Its members and their order are hashed, so they
// never change.
type wallet struct {
	Tenant string        `json:"tenant"`
	Name   string        `json:"name"`
	Mode   string        `json:"mode"`
	Amount money.Pesewas `json:"pesewas"` // added to the wallet; negative: taken from it
	// Reference is the requester's own reference, which can be booked once for each kind. If it is empty, the
	// request's id is booked.
	Reference string `json:"reference,omitempty"`
	Bank      string `json:"bank,omitempty"` // bank account that received a deposit; empty: none
	Slip      string `json:"slip,omitempty"` // number of the bank's slip, accepted once for each bank account
	Line      string `json:"line,omitempty"` // line of the bank's statement that pays for a deposit, used once
}

// mover credits a tenant's wallet, or debits it for a negative amount. also runs in the transaction that moves the
// money.
type mover func(t *treasury.Treasury, ctx context.Context, w wallet, reason, actor string, also ...func(*db.Tx) error) error

func (a *Changes) fundKind() Kind {
	return a.walletKind(KindFund, "Deposit to a wallet", func(t *treasury.Treasury, ctx context.Context, w wallet, reason, actor string, also ...func(*db.Tx) error) error {
		if w.Bank == "" {
			return t.Fund(ctx, w.Tenant, w.Amount, reason, actor, also...)
		}
		return t.FundFrom(ctx, w.Tenant, w.Amount, w.Bank, reason, actor, also...)
	}).by(a.lookFund, tenantField, amountField, referenceField, bankField, slipField, lineField)
}

func (a *Changes) adjustKind() Kind {
	return a.walletKind(KindAdjust, "Correction of a wallet", func(t *treasury.Treasury, ctx context.Context, w wallet, reason, actor string, also ...func(*db.Tx) error) error {
		return t.Adjust(ctx, w.Tenant, w.Amount, reason, actor, also...)
	}).by(a.lookAdjust, tenantField, wayField, amountField, referenceField)
}

func (a *Changes) walletKind(name, title string, verb mover) Kind {
	return Kind{Name: name, Title: title, Rule: Rule{Make: roles.ChangeMoney, Check: roles.ApproveMoney}, Check: a.checkWallet,
		Apply: func(ctx context.Context, request *Request, finish Finish) error {
			return a.move(ctx, verb, *request, finish)
		}}
}

// Fund requests a credit to a tenant's wallet. id is the id of the form or of the command.
func (a *Changes) Fund(ctx context.Context, by By, id, tenantID string, amount money.Pesewas, reason string) (Request, error) {
	return a.FundFrom(ctx, by, id, Deposit{Tenant: tenantID, Amount: amount}, reason)
}

// Deposit is a customer's money that arrived at a bank account of the company.
type Deposit struct {
	Tenant    string
	Amount    money.Pesewas
	Reference string
	Bank      string // empty if the installation has no bank accounts
	Slip      string // the number of the bank's slip
	Line      string // the id of the line of the bank's statement, in place of a slip
}

// FundFrom requests a credit to a tenant's wallet for a deposit. Only one deposit with the same slip of a bank
// account is applied.
func (a *Changes) FundFrom(ctx context.Context, by By, id string, d Deposit, reason string) (Request, error) {
	return a.Do(ctx, by, KindFund, id, Values{FieldTenant: d.Tenant, amountField.Name: d.Amount.String(), referenceField.Name: d.Reference, bankField.Name: d.Bank, slipField.Name: d.Slip, lineField.Name: d.Line}, reason)
}

// Adjust requests a correction of a wallet by an amount. A negative amount debits the wallet.
func (a *Changes) Adjust(ctx context.Context, by By, id, tenantID string, amount money.Pesewas, reason string) (Request, error) {
	return a.AdjustUnder(ctx, by, id, "", tenantID, amount, reason)
}

// AdjustUnder is Adjust with a reference of the requester.
func (a *Changes) AdjustUnder(ctx context.Context, by By, id, reference, tenantID string, amount money.Pesewas, reason string) (Request, error) {
	return a.Do(ctx, by, KindAdjust, id, moving(Values{FieldTenant: tenantID, referenceField.Name: reference}, amount), reason)
}

func (a *Changes) lookFund(ctx context.Context, o Order) (Draft, error) {
	amount, err := o.Values.amount(amountField.Name)
	if err == nil && amount <= 0 {
		err = problem.Field("amount", "must be above zero")
	}
	if err != nil {
		return Draft{}, err
	}
	d, err := a.lookWallet(ctx, o, amount, "Put %s into the wallet of %s")
	if err != nil {
		return Draft{}, err
	}
	if o.Values[lineField.Name] != "" {
		return a.lookCredit(ctx, o, d)
	}
	return a.lookDeposit(ctx, o, d)
}

// lookDeposit adds to a draft the bank account that received the deposit. It is required once the installation has a
// bank account in that mode.
func (a *Changes) lookDeposit(ctx context.Context, o Order, d Draft) (Draft, error) {
	w := d.Payload.(wallet)
	w.Bank, w.Slip = o.Values[bankField.Name], strings.TrimSpace(o.Values[slipField.Name])
	if w.Bank == "" {
		needs, err := a.Treasury.NeedsBank(ctx, tenant.Mode(w.Mode))
		switch {
		case err != nil:
			return Draft{}, err
		case needs:
			return Draft{}, problem.Field(bankField.Name, "is required: name the bank account that received the deposit")
		case w.Slip != "":
			return Draft{}, problem.Field(slipField.Name, "needs the bank account that issued it")
		}
		return d, nil
	}
	b, err := a.Treasury.Bank(ctx, w.Bank)
	if problem.Is(err, problem.NotFound) {
		err = problem.Field(bankField.Name, "is not a bank account in our books")
	}
	if err == nil {
		err = b.CheckUse(tenant.Mode(w.Mode))
	}
	if err == nil {
		err = treasury.CheckSlip(w.Slip)
	}
	if err == nil {
		err = a.needsLine(ctx, w)
	}
	d.Payload = w
	d.Sentence += fmt.Sprintf(", received at %s, slip %q", b, w.Slip)
	return d, err
}

// needsLine refuses a deposit that names only a slip if the statements of its bank account are imported.
func (a *Changes) needsLine(ctx context.Context, w wallet) error {
	has, err := a.Reconcile.HasStatements(ctx, tenant.Mode(w.Mode), w.Bank)
	if err == nil && has {
		err = problem.Field(lineField.Name, "is required: statements of this bank account are imported, so name the line of the credit")
	}
	return err
}

// lookCredit adds to a draft the line of a bank's statement that pays for the deposit.
func (a *Changes) lookCredit(ctx context.Context, o Order, d Draft) (Draft, error) {
	w := d.Payload.(wallet)
	c, err := a.Reconcile.CreditOf(ctx, o.Values[lineField.Name])
	if err != nil {
		return Draft{}, err
	}
	switch named := o.Values[bankField.Name]; {
	case named != "" && named != c.Bank:
		return Draft{}, problem.Field(bankField.Name, "differs from the account of the line: "+c.Bank)
	case o.Values[slipField.Name] != "":
		return Draft{}, problem.Field(slipField.Name, "must be empty if a line of a statement is named")
	case c.Amount != w.Amount:
		return Draft{}, problem.Field(amountField.Name, "must be the amount of the line: "+c.Amount.String())
	}
	b, err := a.ourBank(ctx, lineField.Name, c.Bank)
	if err == nil {
		err = b.CheckUse(tenant.Mode(w.Mode))
	}
	w.Bank, w.Line = c.Bank, c.ID
	d.Payload = w
	d.Sentence += fmt.Sprintf(", received at %s on %s", b, c.At.Format("2 Jan 2006"))
	if c.File.Uploader != "" {
		d.Barred = append(d.Barred, c.File.Uploader)
	}
	return d, err
}

func (a *Changes) lookAdjust(ctx context.Context, o Order) (Draft, error) {
	amount, err := o.Values.moved()
	if err == nil && amount == 0 {
		err = problem.Field("amount", "must not be zero")
	}
	if err != nil {
		return Draft{}, err
	}
	sentence := "Correct the wallet of %[2]s: put %[1]s into it"
	if amount < 0 {
		sentence = "Correct the wallet of %[2]s: take %[1]s out of it"
	}
	return a.lookWallet(ctx, o, amount, sentence)
}

// lookWallet drafts a movement of a tenant's wallet. sentence gets the amount and the tenant.
func (a *Changes) lookWallet(ctx context.Context, o Order, amount money.Pesewas, sentence string) (Draft, error) {
	t, err := a.Tenants.Get(ctx, o.Values[FieldTenant])
	if err != nil {
		return Draft{}, err
	}
	if err := a.Treasury.CheckAdjust(ctx, t, amount); err != nil {
		return Draft{}, err
	}
	title, err := a.titled(ctx, o.By.Place, t)
	if err != nil {
		return Draft{}, err
	}
	reference := o.Values[referenceField.Name]
	d := Draft{Tenant: t.ID, Amount: max(amount, -amount), Payload: wallet{Tenant: t.ID, Name: t.Name, Mode: string(t.Mode), Amount: amount, Reference: reference}}
	d.Sentence = fmt.Sprintf(sentence, t.Money().Text(int64(d.Amount)), title) + under(reference)
	return d, nil
}

// checkWallet returns the wallet's balances, and warns of possible duplicates.
func (a *Changes) checkWallet(ctx context.Context, r Request) ([]Fact, error) {
	w, err := payloadOf[wallet](r)
	if err != nil {
		return nil, err
	}
	t, err := a.Tenants.Get(ctx, w.Tenant)
	if err != nil {
		return nil, err
	}
	list, err := a.balances(ctx, "wallet of "+t.Name, t.Wallet(), int64(w.Amount))
	if err != nil {
		return nil, err
	}
	deposit, err := a.checkDeposit(ctx, w)
	if err != nil {
		return nil, err
	}
	alike, err := a.alike(ctx, r, t.Wallet(), int64(w.Amount))
	return slices.Concat(list, deposit, alike), err
}

// checkDeposit returns the balance of the bank account that received a deposit. It warns if the slip was used for
// another deposit.
func (a *Changes) checkDeposit(ctx context.Context, w wallet) ([]Fact, error) {
	if w.Bank == "" {
		return nil, nil
	}
	b, err := a.Treasury.Bank(ctx, w.Bank)
	if err != nil {
		return nil, err
	}
	list, err := a.balances(ctx, "bank account "+b.String(), b.Key(), int64(w.Amount))
	if err != nil {
		return nil, err
	}
	if w.Line != "" {
		c, err := a.Reconcile.CreditOf(ctx, w.Line)
		return append(list, Fact{Name: "File", Value: fmt.Sprintf("%s, row %d, imported by %s", c.File.Name, c.Row, c.File.UploaderName)}), err
	}
	used, found, err := a.Treasury.SlipUsed(ctx, w.Bank, w.Slip)
	if found {
		list = append(list, warning(fmt.Sprintf("The slip %q of this bank account paid for %s at %s.", used.Number, b.Key().Asset.Text(int64(used.Amount)), at(used.At))))
	}
	return list, err
}

// useBank records the slip of a deposit in tx. It refuses a deposit without a bank account if one is now required.
func (a *Changes) useBank(tx *db.Tx, request Request, w wallet) error {
	if request.Kind != KindFund {
		return nil
	}
	if w.Line != "" {
		return a.Reconcile.UseCredit(tx, w.Line, w.Amount, request.ID, request.Actor)
	}
	if w.Bank != "" {
		return a.Treasury.UseSlip(tx, treasury.Slip{Bank: w.Bank, Number: w.Slip, Amount: w.Amount, Request: request.ID})
	}
	needs, err := a.Treasury.NeedsBankIn(tx, tenant.Mode(w.Mode))
	if err == nil && needs {
		err = problem.New(problem.Invalid, CodeChanged, "A bank account was added since this was requested: request the deposit again and name the bank account")
	}
	return err
}

// move moves the money, books it under the request's id and ends the request in one transaction.
func (a *Changes) move(ctx context.Context, verb mover, request Request, finish Finish) error {
	w, err := payloadOf[wallet](request)
	if err != nil {
		return err
	}
	return verb(a.Treasury, ctx, w, request.Reason, request.Actor, func(tx *db.Tx) error {
		t, err := a.Tenants.Locked(tx, w.Tenant)
		if err != nil {
			return err
		}
		if t.Name != w.Name || string(t.Mode) != w.Mode {
			return problem.New(problem.Invalid, CodeChanged, fmt.Sprintf("The account is now called %s. It was called %s when this was requested", t.Name, w.Name))
		}
		key := t.Wallet()
		before, err := a.Ledger.BalanceIn(tx, key)
		if err != nil {
			return err
		}
		after := before + int64(w.Amount)
		if err := finish(tx, []audit.Change{{What: "wallet of " + t.Name, Before: key.Asset.Text(before), After: key.Asset.Text(after)}}); err != nil {
			return err
		}
		if err := a.useBank(tx, request, w); err != nil {
			return err
		}
		return a.book(tx, request, cmp.Or(w.Reference, w.Line), key, int64(w.Amount))
	})
}
