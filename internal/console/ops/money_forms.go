package ops

import (
	"fmt"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/console/records"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

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
func (ps *Pages) floatOrder() approvals.Form {
	return approvals.Form{Path: "/float/add", Title: "Book money at a provider", May: roles.ChangeTreasury, Submit: "Book it", Inputs: []console.Input{{Name: "provider", Max: 40}, {Name: "mode", Max: 4}, {Name: "account", Max: 12}, {Name: "way", Max: 3}, {Name: "amount", Max: 20}, {Name: "reference", Max: changes.MaxReference}},
		Lead: func(*console.Visit) (string, error) {
			return "What was paid in or taken out at the provider, outside of Makola. The float and the provider's own balance agree after it.", nil
		},
		Fields: func(v *console.Visit) ([]page.Field, error) {
			return []page.Field{{Name: "provider", Label: "Provider", Value: v.Given("provider", ""), Options: ps.providerOptions(v)}, {Name: "mode", Label: "Money", Value: v.Given("mode", string(tenant.Live)), Options: moneyModes},
				{Name: "account", Label: "Account at the provider", Value: v.Given("account", provider.AccountDisbursement), Options: floatAccounts},
				{Name: "way", Label: "Direction", Value: v.Given("way", "in"), Options: floatWays}, amountField(v), referenceField(v)}, nil
		},
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			amount, err := v.PositiveAmount("amount")
			if err != nil {
				return changes.Request{}, err
			}
			way, err := v.Choice("way", floatWays)
			if err != nil {
				return changes.Request{}, err
			}
			if way == "out" {
				amount = -amount
			}
			account, err := v.Choice("account", floatAccounts)
			if err != nil {
				return changes.Request{}, err
			}
			value := v.R.PostFormValue
			at := treasury.Float{Provider: value("provider"), Account: account, Mode: tenant.Mode(value("mode"))}
			return ps.Approvals.Changes.AddFloat(v.Ctx, approvals.By(v), id, value("reference"), at, amount, value("reason"))
		}}
}

func amountField(v *console.Visit) page.Field {
	return page.Field{Name: "amount", Label: "Amount in cedis", Value: v.Given("amount", ""), Max: 20, Required: true, Hint: "Such as 1250.00."}
}

func referenceField(v *console.Visit) page.Field {
	return page.Field{Name: "reference", Label: "Reference", Value: v.Given("reference", ""), Max: changes.MaxReference, Hint: "Such as the number of the bank's slip: it is booked once. May be empty."}
}

// creditOrders are the sale of SMS credits and its return.
func (ps *Pages) creditOrders() (orders []approvals.Form) {
	for _, o := range []struct {
		does, title, lead, priced string
		ask                       func(*changes.Changes, *console.Visit, string, string, int64, money.Pesewas) (changes.Request, error)
	}{
		{"sell", "Give SMS credits", "The account has paid for them outside of Makola.", "What was paid for them",
			func(a *changes.Changes, v *console.Visit, id, tenantID string, credits int64, price money.Pesewas) (changes.Request, error) {
				return a.SellCredits(v.Ctx, approvals.By(v), id, v.R.PostFormValue("reference"), tenantID, credits, price, v.R.PostFormValue("reason"))
			}},
		{"refund", "Take SMS credits back", "They were sold by mistake, or are returned. Never more than there are.", "What was given back for them",
			func(a *changes.Changes, v *console.Visit, id, tenantID string, credits int64, price money.Pesewas) (changes.Request, error) {
				return a.RefundCredits(v.Ctx, approvals.By(v), id, v.R.PostFormValue("reference"), tenantID, credits, price, v.R.PostFormValue("reason"))
			}},
	} {
		orders = append(orders, approvals.Form{Path: "/credits/" + o.does, Title: o.title, May: roles.ChangeMoney, Submit: o.title, Danger: o.does == "refund",
			Inputs: []console.Input{{Name: "credits", Max: 12}, {Name: "price", Max: 20}, {Name: "reference", Max: changes.MaxReference}}, Lead: approvals.OfAccount(o.lead),
			Fields: func(v *console.Visit) ([]page.Field, error) {
				return []page.Field{{Name: "credits", Label: "Credits", Value: v.Given("credits", ""), Max: 12, Required: true, Hint: "A credit is one segment of a message."},
					{Name: "price", Label: o.priced, Value: v.Given("price", ""), Max: 20, Hint: "In cedis; empty: nothing."}, referenceField(v)}, nil
			},
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				t, err := v.About()
				if err != nil {
					return changes.Request{}, err
				}
				credits, err := v.Whole("credits", messaging.MaxSale)
				if err == nil && credits == 0 {
					err = problem.Field("credits", "must be above zero")
				}
				if err != nil {
					return changes.Request{}, err
				}
				price, err := v.Amount("price")
				if err != nil {
					return changes.Request{}, err
				}
				return o.ask(ps.Approvals.Changes, v, id, t.ID, int64(credits), price)
			}})
	}
	return orders
}

// transferOrder moves money from the wallet of the account of the page into another one.
func (ps *Pages) transferOrder() approvals.Form {
	return approvals.Form{Path: "/transfer", Title: "Move money to another wallet", May: roles.ChangeMoney, Submit: "Move it", Danger: true, Inputs: []console.Input{{Name: "to", Max: 36}, {Name: "amount", Max: 20}, {Name: "reference", Max: changes.MaxReference}},
		Lead: approvals.OfAccount("The money goes out of its wallet into that of another account of the same mode, free of charge. Both see it as a transfer."),
		Fields: func(v *console.Visit) ([]page.Field, error) {
			return []page.Field{{Name: "to", Label: "To the account", Value: v.Given("to", ""), Max: 36, Required: true, Hint: "The id of the account, which its page has."}, amountField(v), referenceField(v)}, nil
		},
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			amount, err := v.PositiveAmount("amount")
			if err != nil {
				return changes.Request{}, err
			}
			value := v.R.PostFormValue
			return ps.Approvals.Changes.Transfer(v.Ctx, approvals.By(v), id, value("reference"), v.R.PathValue("id"), value("to"), amount, value("reason"))
		}}
}

// recoverOrder takes back what the account of the page owes.
func (ps *Pages) recoverOrder() approvals.Form {
	return approvals.Form{Path: "/recover", Title: "Take back what is owed", May: roles.ChangeMoney, Submit: "Take it back", Danger: true,
		Lead: func(v *console.Visit) (string, error) {
			t, err := v.About()
			if err != nil {
				return "", err
			}
			owed, err := ps.Records.Owed(v, t)
			return t.Name + " (" + string(t.Mode) + ") owes " + page.Cedis(owed) + " since a reversal that its wallet did not cover. As much is taken as the wallet has. Payouts that the reversal stopped stay stopped.", err
		},
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			return ps.Approvals.Changes.Recover(v.Ctx, approvals.By(v), id, v.R.PathValue("id"), v.R.PostFormValue("reason"))
		}}
}

// ofPayment is the lead of an order about the payment of the page.
func (ps *Pages) ofPayment(text string) func(v *console.Visit) (string, error) {
	return func(v *console.Visit) (string, error) {
		p, err := ps.Records.Find(v)
		if err != nil {
			return "", err
		}
		t, err := ps.Tenants.Get(v.Ctx, p.Tenant)
		if err != nil {
			return "", err
		}
		state := words.StatusBadges[p.Word()].Word
		if words.Unknown(p) {
			state = "Outcome unknown"
		}
		lead := fmt.Sprintf("%s %s of %s (%s): %s, at %s, submitted %s. %s.", words.KindWords[p.Kind], records.ReferenceOf(v, p), t.Name, t.Mode, page.Cedis(p.Amount), words.ProviderName(p.Rail), page.Times(p.Posts), state)
		if p.Held() > 0 && p.Status.Open() {
			lead += " " + page.Cedis(p.Held()) + " are held."
		}
		return lead + " " + text, nil
	}
}

// paymentOrders end a payment by its provider's statement, take such a word back, and empty suspense.
func (ps *Pages) paymentOrders() []approvals.Form {
	return []approvals.Form{
		{Path: "/payments/{id}/resolve", Title: "End it by the statement", May: roles.ChangeTreasury, Submit: "End it", Danger: true, Inputs: []console.Input{{Name: "ending", Max: 6}, {Name: "provider_fee", Max: 20}, {Name: "commission", Max: 20}},
			Lead: ps.ofPayment("Say what the provider's statement says of it: a payment that is ended as not paid gives its money back, and can be paid once more."),
			Fields: func(v *console.Visit) ([]page.Field, error) {
				return []page.Field{{Name: "ending", Label: "By the statement", Value: v.Given("ending", ""), Options: append([]page.Option{{Text: "Choose"}}, endings...)},
					{Name: "provider_fee", Label: "Taken by the provider", Value: v.Given("provider_fee", ""), Max: 20, Hint: "In cedis, of a payment that was paid; empty: not known."},
					{Name: "commission", Label: "Given to us by the provider", Value: v.Given("commission", ""), Max: 20, Hint: "In cedis, of a payment that was paid; empty: not known."}}, nil
			},
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				ending, err := v.Choice("ending", endings)
				if err != nil {
					return changes.Request{}, err
				}
				s := changes.Statement{Paid: ending == "paid"}
				for name, to := range map[string]**money.Pesewas{"provider_fee": &s.Fee, "commission": &s.Commission} {
					if v.R.PostFormValue(name) == "" {
						continue
					}
					n, err := v.Amount(name)
					if err != nil {
						return changes.Request{}, err
					}
					*to = &n
				}
				return ps.Approvals.Changes.Resolve(v.Ctx, approvals.By(v), id, v.R.PathValue("id"), s, v.R.PostFormValue("reason"))
			}},
		{Path: "/payments/{id}/contradict", Title: "Take the word back", May: roles.ChangeTreasury, Submit: "Take it back", Danger: true, Inputs: []console.Input{{Name: "ending", Max: 6}},
			Lead: ps.ofPayment("An operator ended it by a statement, and that was wrong. What it leaves in suspense is decided after it."),
			Fields: func(v *console.Visit) ([]page.Field, error) {
				return []page.Field{{Name: "ending", Label: "What it really was", Value: v.Given("ending", ""), Options: append([]page.Option{{Text: "Choose"}}, endings...)}}, nil
			},
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				ending, err := v.Choice("ending", endings)
				if err != nil {
					return changes.Request{}, err
				}
				return ps.Approvals.Changes.Contradict(v.Ctx, approvals.By(v), id, v.R.PathValue("id"), ending == "paid", v.R.PostFormValue("reason"))
			}},
		{Path: "/payments/{id}/decide", Title: "Decide about suspense", May: roles.ChangeTreasury, Submit: "Decide", Danger: true, Inputs: []console.Input{{Name: "for", Max: 8}},
			Lead: ps.ofPayment("Its provider contradicted itself. Say who gets what that left in suspense, or bears what is missing there."),
			Fields: func(v *console.Visit) ([]page.Field, error) {
				return []page.Field{{Name: "for", Label: "For", Value: v.Given("for", ""), Options: append([]page.Option{{Text: "Choose"}}, suspenseFor...)}}, nil
			},
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				return ps.Approvals.Changes.Decide(v.Ctx, approvals.By(v), id, v.R.PathValue("id"), changes.Side(v.R.PostFormValue("for")), v.R.PostFormValue("reason"))
			}},
	}
}
