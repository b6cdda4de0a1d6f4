package changes

import (
	"context"
	"fmt"
	"slices"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/treasury"
)

// KindTopUp books money that left a bank account for a float, KindSettle money that left a float for a bank account.
// The money is in transit until KindEndTransit books that it arrived or returned.
const (
	KindTopUp      = "float.top_up"
	KindSettle     = "float.settle"
	KindEndTransit = "transit.end"
)

// sending is the requested transfer. The digest covers its members in this order, so they never change.
type sending struct {
	Bank      string        `json:"bank"`
	Mode      string        `json:"mode"`
	Provider  string        `json:"provider"`
	Account   string        `json:"account"`
	Amount    money.Pesewas `json:"pesewas"`
	Reference string        `json:"reference,omitempty"`
}

// ending is the requested end of a transfer. The digest covers its members in this order, so they never change.
type ending struct {
	Transfer string        `json:"transfer"`
	Asset    string        `json:"asset"`
	Source   string        `json:"source"`
	Target   string        `json:"target"`
	Amount   money.Pesewas `json:"pesewas"`
	Outcome  string        `json:"outcome"`
	Fee      money.Pesewas `json:"fee"`
}

func (p sending) transit(kind, id string) treasury.Transit {
	asset := assetOf(p.Mode)
	m := treasury.Transit{ID: id, Asset: asset, Source: ledger.Bank(p.Bank), Target: ledger.FloatAt(p.Provider, p.Account), Amount: p.Amount, Reference: p.Reference}
	if kind == KindSettle {
		m.Source, m.Target = m.Target, m.Source
	}
	return m
}

func (p ending) transit() treasury.Transit {
	return treasury.Transit{ID: p.Transfer, Asset: ledger.Asset(p.Asset), Source: ledger.AccountID(p.Source), Target: ledger.AccountID(p.Target), Amount: p.Amount, State: treasury.Sent}
}

// transitKinds are the kinds about our own money between bank accounts and floats.
func (a *Changes) transitKinds() []Kind {
	rule := Rule{Make: roles.ChangeTreasury, Check: roles.ApproveMoney}
	fields := []Field{ourBankField, {Name: "provider", Label: "Provider", Max: 40, Required: true},
		{Name: "account", Label: "Account at the provider", Hint: "Enter collection, disbursement or services. Leave empty for unassigned money.", Max: 12}, amountField, referenceField}
	return []Kind{
		{Name: KindTopUp, Title: "Top-up of a float", Rule: rule, Look: a.lookSend(KindTopUp), Check: a.checkSend, Apply: a.send, Fields: fields},
		{Name: KindSettle, Title: "Settlement to a bank account", Rule: rule, Look: a.lookSend(KindSettle), Check: a.checkSend, Apply: a.send, Fields: fields},
		{Name: KindEndTransit, Title: "End of a transfer in transit", Rule: rule, Look: a.lookEnd, Check: a.checkEnd, Apply: a.end, Fields: []Field{
			{Name: "transfer", Label: "Transfer", Hint: "The id of the transfer.", Max: 36, Required: true},
			{Name: "outcome", Label: "Outcome", Options: []string{string(treasury.Arrived), string(treasury.Returned)}, Max: 8, Required: true},
			{Name: "fee", Label: "Fee in cedis", Hint: "Enter the fee that was charged on the way. The rest arrived.", Max: 20}}},
	}
}

func (a *Changes) lookSend(kind string) func(ctx context.Context, o Order) (Draft, error) {
	return func(ctx context.Context, o Order) (Draft, error) {
		v := o.Values
		amount, err := v.amount(amountField.Name)
		if err == nil && amount <= 0 {
			err = problem.Field("amount", "must be above zero")
		}
		if err != nil {
			return Draft{}, err
		}
		b, err := a.ourBank(ctx, "bank", v["bank"])
		if err != nil {
			return Draft{}, err
		}
		at := treasury.Float{Provider: v["provider"], Account: v["account"], Mode: b.Mode}
		if err := a.Treasury.CheckAddFloat(ctx, at, amount); err != nil {
			return Draft{}, err
		}
		waiting, err := a.Treasury.OnTheWay(ctx)
		if err == nil && len(waiting) >= treasury.MostOpen {
			err = problem.Field("amount", fmt.Sprintf("cannot be sent: %d transfers are on their way. End some first", treasury.MostOpen))
		}
		from, to := "the bank account "+b.String(), "the float at "+at.String()
		if kind == KindSettle {
			from, to = to, from
		}
		reference := v[referenceField.Name]
		sentence := fmt.Sprintf("Book a transfer of %s from %s to %s", b.Key().Asset.Text(int64(amount)), from, to) + under(reference)
		return Draft{Amount: amount, Sentence: sentence, Payload: sending{b.Name, string(b.Mode), at.Provider, at.Account, amount, reference}}, err
	}
}

// checkSend returns both accounts before and after. It warns of an insufficient balance and of a possible duplicate.
func (a *Changes) checkSend(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[sending](r)
	if err != nil {
		return nil, err
	}
	m := p.transit(r.Kind, r.ID)
	source := ledger.Key{Asset: m.Asset, ID: m.Source}
	list, err := a.balances(ctx, heldName(m.Source), source, -int64(m.Amount))
	if err != nil {
		return nil, err
	}
	has, err := a.Ledger.Balance(ctx, source)
	if err != nil {
		return nil, err
	}
	if -has < int64(m.Amount) {
		list = append(list, warning("In our books: "+heldName(m.Source)+" has only "+m.Asset.Text(-has)+"."))
	}
	transit, err := a.balances(ctx, "account of money in transit", ledger.Key{Asset: m.Asset, ID: ledger.Transit}, int64(m.Amount))
	if err != nil {
		return nil, err
	}
	alike, err := a.alike(ctx, r, source, -int64(m.Amount))
	return slices.Concat(list, transit, alike), err
}

// heldName returns the name of an account whose money a provider or bank holds.
func heldName(id ledger.AccountID) string {
	if id.IsBank() {
		return "bank account " + string(id)
	}
	return string(id)
}

func (a *Changes) send(ctx context.Context, request *Request, finish Finish) error {
	p, err := payloadOf[sending](*request)
	if err != nil {
		return err
	}
	m := p.transit(request.Kind, request.ID)
	source := ledger.Key{Asset: m.Asset, ID: m.Source}
	err = a.Treasury.Send(ctx, m, request.Reason, request.Actor, func(tx *db.Tx) error {
		change, err := a.heldChange(tx, heldName(m.Source), source, -m.Amount)
		if err == nil {
			err = finish(tx, []audit.Change{change})
		}
		if err != nil {
			return err
		}
		return a.book(tx, *request, p.Reference, source, -int64(m.Amount))
	})
	request.Made = m.ID
	return err
}

func (a *Changes) lookEnd(ctx context.Context, o Order) (Draft, error) {
	fee, err := o.Values.notNegative("fee")
	if err != nil {
		return Draft{}, err
	}
	m, err := a.Treasury.Transit(ctx, o.Values["transfer"])
	if problem.Is(err, problem.NotFound) {
		err = problem.Field("transfer", "is not a transfer between bank accounts and floats")
	}
	to := treasury.TransitState(o.Values["outcome"])
	if err == nil {
		err = treasury.CheckEnd(m, to, fee)
	}
	if err != nil {
		return Draft{}, err
	}
	sentence := fmt.Sprintf("Book that %s from %s arrived at %s", m.Asset.Text(int64(m.Amount)), heldName(m.Source), heldName(m.Target))
	if to == treasury.Returned {
		sentence = fmt.Sprintf("Book that %s for %s returned to %s", m.Asset.Text(int64(m.Amount)), heldName(m.Target), heldName(m.Source))
	}
	if fee > 0 {
		sentence += ", less a fee of " + m.Asset.Text(int64(fee))
	}
	return Draft{Amount: m.Amount, Sentence: sentence, Payload: ending{m.ID, string(m.Asset), string(m.Source), string(m.Target), m.Amount, string(to), fee}}, nil
}

// checkEnd returns the time at which the money was sent. It also returns the balance of the receiving account before
// and after.
func (a *Changes) checkEnd(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[ending](r)
	if err != nil {
		return nil, err
	}
	m, err := a.Treasury.Transit(ctx, p.Transfer)
	if err != nil {
		return nil, err
	}
	if m.State != treasury.Sent {
		return nil, errChanged("The transfer")
	}
	end := m.Target
	if treasury.TransitState(p.Outcome) == treasury.Returned {
		end = m.Source
	}
	list, err := a.balances(ctx, heldName(end), ledger.Key{Asset: m.Asset, ID: end}, int64(m.Amount-p.Fee))
	return append([]Fact{{Name: "Sent", Value: at(m.SentAt)}}, list...), err
}

func (a *Changes) end(ctx context.Context, request *Request, finish Finish) error {
	p, err := payloadOf[ending](*request)
	if err != nil {
		return err
	}
	m, to := p.transit(), treasury.TransitState(p.Outcome)
	return a.Treasury.End(ctx, m, to, p.Fee, request.Reason, request.Actor, func(tx *db.Tx) error {
		return finish(tx, []audit.Change{{What: "transfer from " + string(m.Source) + " to " + string(m.Target), Before: string(treasury.Sent), After: p.Outcome}})
	})
}
