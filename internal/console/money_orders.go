package console

import (
	"fmt"
	"slices"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

// choice reads which of the options a form means.
func (v *visit) choice(name string, options []page.Option) (string, error) {
	value := v.r.PostFormValue(name)
	if !slices.ContainsFunc(options, func(o page.Option) bool { return o.Value == value }) {
		return "", problem.Field(name, "must be one of the list")
	}
	return value, nil
}

var (
	floatWays = []page.Option{{Value: "in", Text: "Paid in at the provider"}, {Value: "out", Text: "Taken out there"}}
	// floatAccounts are the accounts that any provider may keep for us.
	floatAccounts = []page.Option{{Value: provider.AccountDisbursement, Text: "Disbursement: payouts"}, {Value: provider.AccountCollection, Text: "Collection"},
		{Value: provider.AccountServices, Text: "Services: airtime and data"}, {Value: "", Text: "Unassigned"}}
	moneyModes  = []page.Option{{Value: string(tenant.Live), Text: "Live"}, {Value: string(tenant.Test), Text: "Test"}}
	endings     = []page.Option{{Value: "paid", Text: "It was paid"}, {Value: "unpaid", Text: "It was not paid"}}
	suspenseFor = []page.Option{{Value: string(changes.Customer), Text: "The customer"}, {Value: string(changes.House), Text: "The house"}, {Value: string(changes.Provider), Text: "The provider: its last word is right"}}
)

// floatOrder books what was paid in at a provider, or taken out there.
func floatOrder() asking {
	return asking{path: "/float/add", title: "Book money at a provider", may: identity.MakeTreasury, submit: "Book it", inputs: []Input{{"provider", 40}, {"mode", 4}, {"account", 12}, {"way", 3}, {"amount", 20}, {"reference", changes.MaxReference}},
		lead: func(*visit) (string, error) {
			return "What was paid in or taken out at the provider, outside of Makola. The float and the provider's own balance agree after it.", nil
		},
		fields: func(v *visit) ([]page.Field, error) {
			return []page.Field{{Name: "provider", Label: "Provider", Value: v.given("provider", ""), Options: v.providerOptions()}, {Name: "mode", Label: "Money", Value: v.given("mode", string(tenant.Live)), Options: moneyModes},
				{Name: "account", Label: "Account at the provider", Value: v.given("account", provider.AccountDisbursement), Options: floatAccounts},
				{Name: "way", Label: "Direction", Value: v.given("way", "in"), Options: floatWays}, amountField(v), referenceField(v)}, nil
		},
		ask: func(v *visit, id string) (changes.Request, error) {
			amount, err := v.orderedAmount("amount")
			if err != nil {
				return changes.Request{}, err
			}
			way, err := v.choice("way", floatWays)
			if err != nil {
				return changes.Request{}, err
			}
			if way == "out" {
				amount = -amount
			}
			account, err := v.choice("account", floatAccounts)
			if err != nil {
				return changes.Request{}, err
			}
			value := v.r.PostFormValue
			at := treasury.Float{Provider: value("provider"), Account: account, Mode: tenant.Mode(value("mode"))}
			return v.console.Changes.AddFloat(v.ctx, v.by(), id, value("reference"), at, amount, value("reason"))
		}}
}

func amountField(v *visit) page.Field {
	return page.Field{Name: "amount", Label: "Amount in cedis", Value: v.given("amount", ""), Max: 20, Required: true, Hint: "Such as 1250.00."}
}

func referenceField(v *visit) page.Field {
	return page.Field{Name: "reference", Label: "Reference", Value: v.given("reference", ""), Max: changes.MaxReference, Hint: "Such as the number of the bank's slip: it is booked once. May be empty."}
}

// orderedAmount reads an amount of the form that must be there.
func (v *visit) orderedAmount(name string) (money.Pesewas, error) {
	amount, err := v.amountOf(name)
	if err == nil && amount == 0 {
		err = problem.Field(name, "must be above zero")
	}
	return amount, err
}

// creditOrders are the sale of SMS credits and its return.
func creditOrders() (orders []asking) {
	for _, o := range []struct {
		does, title, lead, priced string
		ask                       func(*changes.Changes, *visit, string, string, int64, money.Pesewas) (changes.Request, error)
	}{
		{"sell", "Give SMS credits", "The account has paid for them outside of Makola.", "What was paid for them",
			func(a *changes.Changes, v *visit, id, tenantID string, credits int64, price money.Pesewas) (changes.Request, error) {
				return a.SellCredits(v.ctx, v.by(), id, v.r.PostFormValue("reference"), tenantID, credits, price, v.r.PostFormValue("reason"))
			}},
		{"refund", "Take SMS credits back", "They were sold by mistake, or are returned. Never more than there are.", "What was given back for them",
			func(a *changes.Changes, v *visit, id, tenantID string, credits int64, price money.Pesewas) (changes.Request, error) {
				return a.RefundCredits(v.ctx, v.by(), id, v.r.PostFormValue("reference"), tenantID, credits, price, v.r.PostFormValue("reason"))
			}},
	} {
		orders = append(orders, asking{path: "/credits/" + o.does, title: o.title, may: identity.MakeMoney, submit: o.title, danger: o.does == "refund",
			inputs: []Input{{"credits", 12}, {"price", 20}, {"reference", changes.MaxReference}}, lead: ofAccount(o.lead),
			fields: func(v *visit) ([]page.Field, error) {
				return []page.Field{{Name: "credits", Label: "Credits", Value: v.given("credits", ""), Max: 12, Required: true, Hint: "A credit is one segment of a message."},
					{Name: "price", Label: o.priced, Value: v.given("price", ""), Max: 20, Hint: "In cedis; empty: nothing."}, referenceField(v)}, nil
			},
			ask: func(v *visit, id string) (changes.Request, error) {
				t, err := v.about()
				if err != nil {
					return changes.Request{}, err
				}
				credits, err := v.wholeOf("credits", messaging.MaxSale)
				if err == nil && credits == 0 {
					err = problem.Field("credits", "must be above zero")
				}
				if err != nil {
					return changes.Request{}, err
				}
				price, err := v.amountOf("price")
				if err != nil {
					return changes.Request{}, err
				}
				return o.ask(v.console.Changes, v, id, t.ID, int64(credits), price)
			}})
	}
	return orders
}

// transferOrder moves money from the wallet of the account of the page into another one.
func transferOrder() asking {
	return asking{path: "/transfer", title: "Move money to another wallet", may: identity.MakeMoney, submit: "Move it", danger: true, inputs: []Input{{"to", 36}, {"amount", 20}, {"reference", changes.MaxReference}},
		lead: ofAccount("The money goes out of its wallet into that of another account of the same mode, free of charge. Both see it as a transfer."),
		fields: func(v *visit) ([]page.Field, error) {
			return []page.Field{{Name: "to", Label: "To the account", Value: v.given("to", ""), Max: 36, Required: true, Hint: "The id of the account, which its page has."}, amountField(v), referenceField(v)}, nil
		},
		ask: func(v *visit, id string) (changes.Request, error) {
			amount, err := v.orderedAmount("amount")
			if err != nil {
				return changes.Request{}, err
			}
			value := v.r.PostFormValue
			return v.console.Changes.Transfer(v.ctx, v.by(), id, value("reference"), v.r.PathValue("id"), value("to"), amount, value("reason"))
		}}
}

// recoverOrder takes back what the account of the page owes.
func recoverOrder() asking {
	return asking{path: "/recover", title: "Take back what is owed", may: identity.MakeMoney, submit: "Take it back", danger: true,
		lead: func(v *visit) (string, error) {
			t, err := v.about()
			if err != nil {
				return "", err
			}
			owed, err := v.owed(t)
			return t.Name + " (" + string(t.Mode) + ") owes " + page.Cedis(owed) + " since a reversal that its wallet did not cover. As much is taken as the wallet has. Payouts that the reversal stopped stay stopped.", err
		},
		ask: func(v *visit, id string) (changes.Request, error) {
			return v.console.Changes.Recover(v.ctx, v.by(), id, v.r.PathValue("id"), v.r.PostFormValue("reason"))
		}}
}

// owed is what an account owes since reversals.
func (v *visit) owed(t tenant.Tenant) (money.Pesewas, error) {
	n, err := v.console.Ledger.Balance(v.ctx, ledger.Key{Asset: t.Money(), ID: ledger.Receivable(t.ID)})
	return money.Pesewas(-n), err
}

// ofPayment is the lead of an order about the payment of the page.
func ofPayment(text string) func(v *visit) (string, error) {
	return func(v *visit) (string, error) {
		p, err := v.payment()
		if err != nil {
			return "", err
		}
		t, err := v.console.Tenants.Get(v.ctx, p.Tenant)
		if err != nil {
			return "", err
		}
		state := statusBadges[p.Word()].Word
		if unknown(p) {
			state = "Outcome unknown"
		}
		lead := fmt.Sprintf("%s %s of %s (%s): %s, at %s, submitted %s. %s.", kindWords[p.Kind], v.referenceOf(p), t.Name, t.Mode, page.Cedis(p.Amount), providerName(p.Rail), page.Times(p.Posts), state)
		if p.Held() > 0 && p.Status.Open() {
			lead += " " + page.Cedis(p.Held()) + " are held."
		}
		return lead + " " + text, nil
	}
}

// paymentOrders end a payment by its provider's statement, take such a word back, and empty suspense.
func paymentOrders() []asking {
	return []asking{
		{path: "/payments/{id}/resolve", title: "End it by the statement", may: identity.MakeTreasury, submit: "End it", danger: true, inputs: []Input{{"ending", 6}, {"provider_fee", 20}, {"commission", 20}},
			lead: ofPayment("Say what the provider's statement says of it: a payment that is ended as not paid gives its money back, and can be paid once more."),
			fields: func(v *visit) ([]page.Field, error) {
				return []page.Field{{Name: "ending", Label: "By the statement", Value: v.given("ending", ""), Options: append([]page.Option{{Text: "Choose"}}, endings...)},
					{Name: "provider_fee", Label: "Taken by the provider", Value: v.given("provider_fee", ""), Max: 20, Hint: "In cedis, of a payment that was paid; empty: not known."},
					{Name: "commission", Label: "Given to us by the provider", Value: v.given("commission", ""), Max: 20, Hint: "In cedis, of a payment that was paid; empty: not known."}}, nil
			},
			ask: func(v *visit, id string) (changes.Request, error) {
				ending, err := v.choice("ending", endings)
				if err != nil {
					return changes.Request{}, err
				}
				s := changes.Statement{Paid: ending == "paid"}
				for name, to := range map[string]**money.Pesewas{"provider_fee": &s.Fee, "commission": &s.Commission} {
					if v.r.PostFormValue(name) == "" {
						continue
					}
					n, err := v.amountOf(name)
					if err != nil {
						return changes.Request{}, err
					}
					*to = &n
				}
				return v.console.Changes.Resolve(v.ctx, v.by(), id, v.r.PathValue("id"), s, v.r.PostFormValue("reason"))
			}},
		{path: "/payments/{id}/contradict", title: "Take the word back", may: identity.MakeTreasury, submit: "Take it back", danger: true, inputs: []Input{{"ending", 6}},
			lead: ofPayment("An operator ended it by a statement, and that was wrong. What it leaves in suspense is decided after it."),
			fields: func(v *visit) ([]page.Field, error) {
				return []page.Field{{Name: "ending", Label: "What it really was", Value: v.given("ending", ""), Options: append([]page.Option{{Text: "Choose"}}, endings...)}}, nil
			},
			ask: func(v *visit, id string) (changes.Request, error) {
				ending, err := v.choice("ending", endings)
				if err != nil {
					return changes.Request{}, err
				}
				return v.console.Changes.Contradict(v.ctx, v.by(), id, v.r.PathValue("id"), ending == "paid", v.r.PostFormValue("reason"))
			}},
		{path: "/payments/{id}/decide", title: "Decide about suspense", may: identity.MakeTreasury, submit: "Decide", danger: true, inputs: []Input{{"for", 8}},
			lead: ofPayment("Its provider contradicted itself. Say who gets what that left in suspense, or bears what is missing there."),
			fields: func(v *visit) ([]page.Field, error) {
				return []page.Field{{Name: "for", Label: "For", Value: v.given("for", ""), Options: append([]page.Option{{Text: "Choose"}}, suspenseFor...)}}, nil
			},
			ask: func(v *visit, id string) (changes.Request, error) {
				return v.console.Changes.Decide(v.ctx, v.by(), id, v.r.PathValue("id"), changes.Side(v.r.PostFormValue("for")), v.r.PostFormValue("reason"))
			}},
	}
}

// paymentLinks lead to what may be done about a payment, as far as its page can tell.
func (v *visit) paymentLinks(p book.Payment) (links []page.Link) {
	if v.route.Site != operators || !v.can(identity.MakeTreasury) {
		return nil
	}
	base := "/ops/payments/" + p.ID
	switch {
	case !p.ContradictedAt.IsZero() && p.Kind == book.KindCollection:
		if p.LastWord == string(book.StatusSuccess) {
			links = append(links, page.Link{Href: base + "/decide", Text: "Credit it again"})
		}
	case !p.ContradictedAt.IsZero():
		links = append(links, page.Link{Href: base + "/decide", Text: "Decide about suspense"})
	case p.ContradictedAt.IsZero() && p.Note != "" && !p.SettledAt.IsZero():
		links = append(links, page.Link{Href: base + "/contradict", Text: "Take the word back"})
	case p.Status.Open() && v.console.Payments.Resolvable(p, true) == nil:
		links = append(links, page.Link{Href: base + "/resolve", Text: "End it by the statement"})
	}
	return links
}

// waitingAbout are the acts of this site that wait about a payment: what operators want to do about it, or the payout itself,
// which waits for the account's own people.
func (v *visit) waitingAbout(p book.Payment) ([]page.Row, error) {
	switch {
	case !v.can(identity.ReadActs):
		return nil, nil
	case v.route.Site == operators:
		list, err := v.console.Changes.WaitingAbout(v.ctx, p)
		return v.actRows(list), err
	case !p.Waits():
		return nil, nil
	}
	act, err := v.console.Changes.Get(v.ctx, p.Tenant, p.ID)
	return v.actRows([]changes.Request{act}), err
}
