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
	floatWays = []page.Option{{Value: "in", Text: "Deposit"}, {Value: "out", Text: "Withdrawal"}}
	// floatAccounts are the accounts at providers.
	floatAccounts = []page.Option{{Value: provider.AccountDisbursement, Text: "Disbursement: payouts"}, {Value: provider.AccountCollection, Text: "Collection"},
		{Value: provider.AccountServices, Text: "Services: airtime and data"}, {Value: "", Text: "Unassigned"}}
	moneyModes  = []page.Option{{Value: string(tenant.Live), Text: "Live"}, {Value: string(tenant.Test), Text: "Test"}}
	endings     = []page.Option{{Value: "paid", Text: "Paid"}, {Value: "unpaid", Text: "Not paid"}}
	suspenseFor = []page.Option{{Value: string(changes.Customer), Text: "Customer"}, {Value: string(changes.House), Text: "Installation"}, {Value: string(changes.Provider), Text: "Provider: accept its last status"}}
)

// floatOrder is the form that books a deposit or withdrawal at a provider.
func (ps *Pages) floatOrder() approvals.Form {
	return approvals.Form{Path: "/float/add", Title: "Book deposit or withdrawal", May: roles.ChangeTreasury, Submit: "Book amount", Inputs: []console.Input{{Name: "provider", Max: 40}, {Name: "mode", Max: 4}, {Name: "account", Max: 12}, {Name: "way", Max: 3}, {Name: "amount", Max: 20}, {Name: "reference", Max: changes.MaxReference}},
		Lead: func(*console.Visit) (string, error) {
			return "Book a deposit or withdrawal that was made at the provider, outside Makola. Afterwards the float equals the balance that the provider reports.", nil
		},
		Fields: func(v *console.Visit) ([]page.Field, error) {
			return []page.Field{{Name: "provider", Label: "Provider", Value: v.Given("provider", ""), Options: ps.providerOptions()}, {Name: "mode", Label: "Mode", Value: v.Given("mode", string(tenant.Live)), Options: moneyModes},
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
	return page.Field{Name: "amount", Label: "Amount (GHS)", Value: v.Given("amount", ""), Max: 20, Required: true, Hint: "Enter an amount such as 1250.00."}
}

func referenceField(v *console.Visit) page.Field {
	return page.Field{Name: "reference", Label: "Reference", Value: v.Given("reference", ""), Max: changes.MaxReference, Hint: "Enter the bank slip number, if any. A reference is booked only once."}
}

// creditOrders are the forms that sell and refund SMS credits.
func (ps *Pages) creditOrders() (orders []approvals.Form) {
	for _, o := range []struct {
		does, title, lead, priced string
		ask                       func(*changes.Changes, *console.Visit, string, string, int64, money.Pesewas) (changes.Request, error)
	}{
		{"sell", "Sell SMS credits", "For credits that the account has paid for outside Makola.", "Price (GHS)",
			func(a *changes.Changes, v *console.Visit, id, tenantID string, credits int64, price money.Pesewas) (changes.Request, error) {
				return a.SellCredits(v.Ctx, approvals.By(v), id, v.R.PostFormValue("reference"), tenantID, credits, price, v.R.PostFormValue("reason"))
			}},
		{"refund", "Refund SMS credits", "For credits that were sold by mistake or are returned, up to the current balance.", "Refunded price (GHS)",
			func(a *changes.Changes, v *console.Visit, id, tenantID string, credits int64, price money.Pesewas) (changes.Request, error) {
				return a.RefundCredits(v.Ctx, approvals.By(v), id, v.R.PostFormValue("reference"), tenantID, credits, price, v.R.PostFormValue("reason"))
			}},
	} {
		orders = append(orders, approvals.Form{Path: "/credits/" + o.does, Title: o.title, May: roles.ChangeMoney, Submit: o.title, Danger: o.does == "refund",
			Inputs: []console.Input{{Name: "credits", Max: 12}, {Name: "price", Max: 20}, {Name: "reference", Max: changes.MaxReference}}, Lead: approvals.OfAccount(o.lead),
			Fields: func(v *console.Visit) ([]page.Field, error) {
				return []page.Field{{Name: "credits", Label: "Credits", Value: v.Given("credits", ""), Max: 12, Required: true, Hint: "Enter a whole number. One credit pays for one message segment."},
					{Name: "price", Label: o.priced, Value: v.Given("price", ""), Max: 20, Hint: "Leave empty for no payment."}, referenceField(v)}, nil
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

// transferOrder is the form that moves money to the wallet of another account.
func (ps *Pages) transferOrder() approvals.Form {
	return approvals.Form{Path: "/transfer", Title: "Transfer to another wallet", May: roles.ChangeMoney, Submit: "Transfer money", Danger: true, Inputs: []console.Input{{Name: "to", Max: 120}, {Name: "amount", Max: 20}, {Name: "reference", Max: changes.MaxReference}},
		Lead: approvals.OfAccount("The money moves to the wallet of another account of the same mode, without a fee. Both accounts see a transfer."),
		Fields: func(v *console.Visit) ([]page.Field, error) {
			to, err := v.AccountChoice("to", "To account", v.Given("to", ""), page.Option{Text: "Choose an account"})
			return []page.Field{to, amountField(v), referenceField(v)}, err
		},
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			amount, err := v.PositiveAmount("amount")
			if err != nil {
				return changes.Request{}, err
			}
			value := v.R.PostFormValue
			to, err := v.AccountIn("to", value("to"))
			if err != nil {
				return changes.Request{}, err
			}
			return ps.Approvals.Changes.Transfer(v.Ctx, approvals.By(v), id, value("reference"), v.R.PathValue("id"), to, amount, value("reason"))
		}}
}

// recoverOrder is the form that recovers the debt of an account.
func (ps *Pages) recoverOrder() approvals.Form {
	return approvals.Form{Path: "/recover", Title: "Recover debt", May: roles.ChangeMoney, Submit: "Recover debt", Danger: true,
		Lead: func(v *console.Visit) (string, error) {
			t, err := v.About()
			if err != nil {
				return "", err
			}
			owed, err := ps.Records.Owed(v, t)
			return console.AccountName(t) + " owes " + page.Cedis(owed) + " after a reversal that its wallet could not cover. Up to its wallet balance is recovered. Payouts stay stopped if the reversal stopped them.", err
		},
		Ask: func(v *console.Visit, id string) (changes.Request, error) {
			return ps.Approvals.Changes.Recover(v.Ctx, approvals.By(v), id, v.R.PathValue("id"), v.R.PostFormValue("reason"))
		}}
}

// ofPayment returns the lead of a form about the payment of the page.
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
		lead := fmt.Sprintf("%s %s of %s: %s, %s, submitted %s. %s.", words.KindWords[p.Kind], records.ReferenceOf(v, p), console.AccountName(t), page.Cedis(p.Amount), words.ProviderName(p.Rail), page.Times(p.Submissions), words.BadgeOf(p).Word)
		if p.Held() > 0 && p.Status.Open() {
			lead += " " + page.Cedis(p.Held()) + " is on hold."
		}
		return lead + " " + text, nil
	}
}

// paymentOrders are the forms that resolve a payment from a statement, reverse a resolution and clear suspense.
func (ps *Pages) paymentOrders() []approvals.Form {
	return []approvals.Form{
		{Path: "/payments/{id}/resolve", Title: "Resolve from statement", May: roles.ChangeTreasury, Submit: "Resolve payment", Danger: true, Inputs: []console.Input{{Name: "ending", Max: 6}, {Name: "provider_fee", Max: 20}, {Name: "commission", Max: 20}},
			Lead: ps.ofPayment("Enter what the provider's statement shows. If the payment was not paid, its money returns to the wallet and can be paid again."),
			Fields: func(v *console.Visit) ([]page.Field, error) {
				return []page.Field{{Name: "ending", Label: "Outcome on the statement", Value: v.Given("ending", ""), Options: append([]page.Option{{Text: "Choose"}}, endings...)},
					{Name: "provider_fee", Label: "Provider's fee (GHS)", Value: v.Given("provider_fee", ""), Max: 20, Hint: "Enter it only for a paid payment. Leave empty if unknown."},
					{Name: "commission", Label: "Provider's commission (GHS)", Value: v.Given("commission", ""), Max: 20, Hint: "Enter it only for a paid payment. Leave empty if unknown."}}, nil
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
		{Path: "/payments/{id}/contradict", Title: "Reverse resolution", May: roles.ChangeTreasury, Submit: "Reverse resolution", Danger: true, Inputs: []console.Input{{Name: "ending", Max: 6}},
			Lead: ps.ofPayment("For a payment that was resolved wrongly from a statement. Its amount moves to suspense, which you clear afterwards."),
			Fields: func(v *console.Visit) ([]page.Field, error) {
				return []page.Field{{Name: "ending", Label: "Correct outcome", Value: v.Given("ending", ""), Options: append([]page.Option{{Text: "Choose"}}, endings...)}}, nil
			},
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				ending, err := v.Choice("ending", endings)
				if err != nil {
					return changes.Request{}, err
				}
				return ps.Approvals.Changes.Contradict(v.Ctx, approvals.By(v), id, v.R.PathValue("id"), ending == "paid", v.R.PostFormValue("reason"))
			}},
		{Path: "/payments/{id}/decide", Title: "Clear suspense", May: roles.ChangeTreasury, Submit: "Clear suspense", Danger: true, Inputs: []console.Input{{Name: "for", Max: 8}},
			Lead: ps.ofPayment("The provider contradicted itself. Choose who receives the amount in suspense, or who pays a missing amount."),
			Fields: func(v *console.Visit) ([]page.Field, error) {
				return []page.Field{{Name: "for", Label: "In favour of", Value: v.Given("for", ""), Options: append([]page.Option{{Text: "Choose"}}, suspenseFor...)}}, nil
			},
			Ask: func(v *console.Visit, id string) (changes.Request, error) {
				return ps.Approvals.Changes.Decide(v.Ctx, approvals.By(v), id, v.R.PathValue("id"), changes.Side(v.R.PostFormValue("for")), v.R.PostFormValue("reason"))
			}},
	}
}
