package changes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

// KindAddBank adds a bank account of the company, and KindCloseBank closes one. KindOpenBanks books the opening
// balances of bank accounts. KindSweep moves earned fees from a bank account to the company's own use.
const (
	KindAddBank   = "bank.add"
	KindCloseBank = "bank.close"
	KindOpenBanks = "bank.open"
	KindSweep     = "fees.sweep"
)

// bank is the requested bank account. The digest covers its members in this order, so they never change.
type bank struct {
	Name   string `json:"name"`
	Mode   string `json:"mode"`
	Bank   string `json:"bank"`
	Number string `json:"number"`
}

// openings are the requested opening balances. The digest covers its members in this order, so they never change.
type openings struct {
	Mode string             `json:"mode"`
	List []treasury.Opening `json:"list"`
}

// swept is the requested sweep. The digest covers its members in this order, so they never change.
type swept struct {
	Bank      string        `json:"bank"`
	Mode      string        `json:"mode"`
	Amount    money.Pesewas `json:"pesewas"`
	Reference string        `json:"reference,omitempty"`
}

var (
	modeField      = Field{Name: "mode", Label: "Money", Options: []string{string(tenant.Live), string(tenant.Test)}, Max: 4, Required: true}
	ourBankField   = Field{Name: "bank", Label: "Bank account", Hint: "Enter the name of a bank account of the company.", Max: 30, Required: true}
	closeNameField = Field{Name: "name", Label: "Bank account", Hint: "Enter the name of a bank account of the company.", Max: 30, Required: true}
)

// bankKinds are the kinds about bank accounts of the company.
func (a *Changes) bankKinds() []Kind {
	treasurer := Rule{Make: roles.ChangeTreasury, Check: roles.ApproveMoney}
	return []Kind{
		written(a, KindAddBank, "Bank account of the company", treasurer, a.addBank).by(a.lookAddBank,
			Field{Name: "name", Label: "Name in the books", Hint: "Such as gcb-main: small letters, digits and dashes.", Max: 30, Required: true}, modeField,
			Field{Name: "bank", Label: "Bank", Hint: "Such as GCB Bank.", Max: 80, Required: true},
			Field{Name: "number", Label: "Account number", Max: 40, Required: true}).showing(a.checkAddBank),
		written(a, KindCloseBank, "Closure of a bank account", treasurer, a.closeBank).by(a.lookCloseBank, closeNameField).showing(a.checkCloseBank),
		{Name: KindOpenBanks, Title: "Opening balances of bank accounts", Rule: treasurer, Look: a.lookOpenings, Check: a.checkOpenings, Apply: a.openBanks,
			Fields: []Field{modeField, {Name: "balances", Label: "Balances", Hint: "Enter a bank account and its balance in cedis, such as gcb-main=12500.00. Separate several by spaces.", Max: 4000, Required: true}}},
		{Name: KindSweep, Title: "Sweep of fees", Rule: treasurer, Look: a.lookSweep, Check: a.checkSweep, Apply: a.sweep, Fields: []Field{ourBankField, amountField, referenceField}},
	}
}

func (a *Changes) lookAddBank(ctx context.Context, o Order) (Draft, error) {
	v := o.Values
	b, err := treasury.CheckBank(treasury.Bank{Name: v["name"], Mode: tenant.Mode(v["mode"]), Bank: v["bank"], Number: v["number"]})
	if err == nil {
		err = a.Treasury.CheckNewBank(ctx, b)
	}
	return Draft{Sentence: fmt.Sprintf("Add the bank account %s for %s money", b, b.Mode), Payload: bank{b.Name, string(b.Mode), b.Bank, b.Number}}, err
}

// checkAddBank returns the account. For the first bank account it warns that each deposit must name a bank account
// from then on.
func (a *Changes) checkAddBank(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[bank](r)
	if err != nil {
		return nil, err
	}
	b := treasury.Bank{Name: p.Name, Mode: tenant.Mode(p.Mode), Bank: p.Bank, Number: p.Number}
	if err := a.Treasury.CheckNewBank(ctx, b); err != nil {
		return nil, err
	}
	list := []Fact{{Name: "Bank", Value: b.Bank}, {Name: "Account number", Value: b.Ending()}}
	needs, err := a.Treasury.NeedsBank(ctx, b.Mode)
	if err == nil && !needs {
		list = append(list, warning(fmt.Sprintf("This is the first bank account for %s money. From then on every deposit to a wallet must name a bank account and a slip.", p.Mode)))
	}
	return list, err
}

func (a *Changes) addBank(tx *db.Tx, _ Request, p bank) ([]audit.Change, error) {
	b := treasury.Bank{Name: p.Name, Mode: tenant.Mode(p.Mode), Bank: p.Bank, Number: p.Number}
	return []audit.Change{{What: "bank account " + b.Name, After: b.Bank + ", " + b.Ending()}}, a.Treasury.AddBank(tx, b)
}

func (a *Changes) lookCloseBank(ctx context.Context, o Order) (Draft, error) {
	b, err := a.Treasury.CheckCloseBank(ctx, o.Values["name"])
	if problem.Is(err, problem.NotFound) {
		err = problem.Field("name", "is not a bank account in our books")
	}
	return Draft{Sentence: fmt.Sprintf("Close the bank account %s", b), Payload: bank{Name: b.Name, Mode: string(b.Mode), Bank: b.Bank, Number: b.Number}}, err
}

// checkCloseBank returns the balance of the account.
func (a *Changes) checkCloseBank(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[bank](r)
	if err != nil {
		return nil, err
	}
	b, err := a.Treasury.CheckCloseBank(ctx, p.Name)
	if err != nil {
		return nil, err
	}
	has, err := a.Ledger.Balance(ctx, b.Key())
	return []Fact{{Name: "Bank", Value: b.Bank}, {Name: "In the books now", Value: b.Key().Asset.Text(-has)}}, err
}

func (a *Changes) closeBank(tx *db.Tx, _ Request, p bank) ([]audit.Change, error) {
	b, err := a.Treasury.CloseBank(tx, p.Name)
	return []audit.Change{{What: "bank account " + b.Name, Before: "open", After: "closed"}}, err
}

// ourBank finds the open bank account that a field names.
func (a *Changes) ourBank(ctx context.Context, field, name string) (treasury.Bank, error) {
	b, err := a.Treasury.Bank(ctx, name)
	if problem.Is(err, problem.NotFound) {
		err = problem.Field(field, "must be bank accounts in our books, unlike "+name)
	}
	if err == nil && b.Closed {
		err = problem.Field(field, "is closed: "+name)
	}
	return b, err
}

func (a *Changes) lookOpenings(ctx context.Context, o Order) (Draft, error) {
	p, total := openings{Mode: o.Values["mode"]}, money.Pesewas(0)
	var texts []string
	for _, word := range strings.Fields(o.Values["balances"]) {
		name, text, _ := strings.Cut(word, "=")
		amount, err := Values{"balances": text}.amount("balances")
		switch {
		case err != nil || amount == 0:
			return Draft{}, problem.Field("balances", "must have the form gcb-main=12500.00, and is "+word)
		case slices.ContainsFunc(p.List, func(o treasury.Opening) bool { return o.Bank == name }):
			return Draft{}, problem.Field("balances", "name "+name+" twice")
		}
		b, err := a.ourBank(ctx, "balances", name)
		if err == nil {
			err = b.CheckUse(tenant.Mode(p.Mode))
		}
		if err == nil && b.Opened {
			err = problem.Field("balances", "name "+name+", whose opening entry is booked already")
		}
		if err != nil {
			return Draft{}, err
		}
		p.List = append(p.List, treasury.Opening{Bank: name, Amount: amount})
		texts = append(texts, fmt.Sprintf("%s at %s", b.Key().Asset.Text(int64(amount)), b))
		if total += max(amount, -amount); total < 0 || total > money.Most {
			return Draft{}, problem.Field("balances", "are too large")
		}
	}
	if len(p.List) == 0 || len(p.List) > treasury.MostBanks {
		return Draft{}, problem.Field("balances", "are required, such as gcb-main=12500.00")
	}
	slices.SortFunc(p.List, func(a, b treasury.Opening) int { return cmp.Compare(a.Bank, b.Bank) })
	slices.Sort(texts)
	return Draft{Amount: total, Sentence: "Book the opening balances " + strings.Join(texts, ", "), Payload: p}, nil
}

// checkOpenings returns the unassigned money before and after the change.
func (a *Changes) checkOpenings(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[openings](r)
	if err != nil {
		return nil, err
	}
	asset := assetOf(p.Mode)
	now, err := a.Ledger.Balance(ctx, ledger.Key{Asset: asset, ID: ledger.Funding})
	then := now
	for _, o := range p.List {
		then += int64(o.Amount)
	}
	return becomes("Unassigned money", asset.Text(-now), asset.Text(-then)), err
}

// assetOf returns the ledger asset of a mode's money.
func assetOf(mode string) ledger.Asset { return tenant.Tenant{Mode: tenant.Mode(mode)}.Money() }

func (a *Changes) openBanks(ctx context.Context, request *Request, finish Finish) error {
	p, err := payloadOf[openings](*request)
	if err != nil {
		return err
	}
	return a.Treasury.Open(ctx, assetOf(p.Mode), p.List, request.ID, request.Reason, request.Actor, func(tx *db.Tx) error {
		var list []audit.Change
		for _, o := range p.List {
			list = append(list, audit.Change{What: "opening balance of " + o.Bank, After: assetOf(p.Mode).Text(int64(o.Amount))})
		}
		return finish(tx, list)
	})
}

func (a *Changes) lookSweep(ctx context.Context, o Order) (Draft, error) {
	amount, err := o.Values.amount(amountField.Name)
	if err == nil && amount <= 0 {
		err = problem.Field("amount", "must be above zero")
	}
	if err != nil {
		return Draft{}, err
	}
	b, err := a.ourBank(ctx, "bank", o.Values["bank"])
	if err != nil {
		return Draft{}, err
	}
	earned, err := a.Ledger.Balance(ctx, ledger.Key{Asset: b.Key().Asset, ID: ledger.Fees})
	if err == nil && earned < int64(amount) {
		err = problem.Field("amount", "must be at most "+b.Key().Asset.Text(max(0, earned))+", the earned fees that were not withdrawn yet")
	}
	reference := o.Values[referenceField.Name]
	sentence := fmt.Sprintf("Sweep %s of earned fees from the bank account %s", b.Key().Asset.Text(int64(amount)), b) + under(reference)
	return Draft{Amount: amount, Sentence: sentence, Payload: swept{b.Name, string(b.Mode), amount, reference}}, err
}

// checkSweep returns the fees and the bank account before and after, and warns if the same sweep may already exist.
func (a *Changes) checkSweep(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[swept](r)
	if err != nil {
		return nil, err
	}
	key := treasury.Bank{Name: p.Bank, Mode: tenant.Mode(p.Mode)}.Key()
	fees, err := a.balances(ctx, "account of earned fees", ledger.Key{Asset: key.Asset, ID: ledger.Fees}, -int64(p.Amount))
	if err != nil {
		return nil, err
	}
	held, err := a.balances(ctx, "bank account "+p.Bank, key, -int64(p.Amount))
	if err != nil {
		return nil, err
	}
	alike, err := a.alike(ctx, r, key, -int64(p.Amount))
	return slices.Concat(fees, held, alike), err
}

func (a *Changes) sweep(ctx context.Context, request *Request, finish Finish) error {
	p, err := payloadOf[swept](*request)
	if err != nil {
		return err
	}
	b := treasury.Bank{Name: p.Bank, Mode: tenant.Mode(p.Mode)}
	return a.Treasury.Sweep(ctx, b, p.Amount, request.Reason, request.Actor, func(tx *db.Tx) error {
		change, err := a.heldChange(tx, "bank account "+p.Bank, b.Key(), -p.Amount)
		if err == nil {
			err = finish(tx, []audit.Change{change})
		}
		if err != nil {
			return err
		}
		return a.book(tx, *request, p.Reference, b.Key(), -int64(p.Amount))
	})
}

// heldChange returns the audit entry of a movement: the balance before and after of an account whose money a provider
// or bank holds.
func (a *Changes) heldChange(tx *db.Tx, what string, key ledger.Key, amount money.Pesewas) (audit.Change, error) {
	now, err := a.Ledger.BalanceIn(tx, key)
	return audit.Change{What: what, Before: key.Asset.Text(-now), After: key.Asset.Text(-now + int64(amount))}, err
}
