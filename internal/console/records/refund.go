package records

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// refusesRefund are the kinds of refusals of a refund that a page explains.
var refusesRefund = []problem.Kind{problem.Invalid, problem.InProgress, problem.Forbidden}

// planRefund returns the refund of all that is left of a collection. Its refusal, if any, is returned as a text.
func (ps *Pages) planRefund(v *console.Visit, of book.Payment) (refund book.Payment, why string, err error) {
	refund, err = ps.Payments.PlannedRefund(v.Ctx, of, 0)
	var e *problem.Error
	if errors.As(err, &e) && slices.Contains(refusesRefund, e.Kind) {
		return refund, strings.TrimSuffix(e.Message, "."), nil
	}
	return refund, "", err
}

// offerRefund adds the link to the form that refunds a collection, or the reason against a refund.
func (ps *Pages) offerRefund(v *console.Visit, s *story) (err error) {
	if v.Route.Site != console.Tenants || s.payment.Kind != book.KindCollection || !v.Can(roles.RequestPayouts) || v.Viewing {
		return nil
	}
	if _, s.noRefund, err = ps.planRefund(v, s.payment); err == nil && s.noRefund == "" {
		s.links = append(s.links, page.Link{Href: s.base + "/payments/" + s.payment.ID + "/refund", Text: "Refund"})
	}
	return err
}

// RefundForm returns the form that refunds a collection of an account.
func (ps *Pages) RefundForm() approvals.Form {
	return approvals.Form{Path: "/payments/{id}/refund", Title: "Refund", May: roles.RequestPayouts, Submit: "Refund", Danger: true, Inputs: []console.Input{{Name: "amount", Max: 20}, {Name: "fee", Max: 20}},
		Lead: func(v *console.Visit) (string, error) {
			of, refund, why, err := ps.toRefund(v)
			if err != nil || why != "" {
				return "It cannot be refunded. " + why + ".", err
			}
			way := "a payout to the payer's number"
			if refund.RefundWay == book.RefundByRail {
				way = "a refund by the provider"
			}
			return fmt.Sprintf("Collection %s from %s %s. You can still refund %s, with a fee of %s for the whole amount. The money goes back as %s, who may see the reason. The next page shows the fee for your amount.", ReferenceOf(v, of), words.Channel(of.Channel), Account(v, of.Account),
				page.Cedis(refund.Amount), page.Cedis(refund.Charges), way), nil
		},
		Fields: func(v *console.Visit) ([]page.Field, error) {
			_, refund, _, err := ps.toRefund(v)
			return []page.Field{{Name: "amount", Label: "Amount (GHS)", Value: v.Given("amount", refund.Amount.String()), Max: 20, Required: true}}, err
		},
		Confirm: ps.confirmRefund,
		Ask:     ps.refund,
		Then: func(v *console.Visit, made changes.Request) string {
			return v.Base() + "/payments/" + made.ID
		}}
}

// toRefund returns the collection of the path with the refund of all that is left of it.
func (ps *Pages) toRefund(v *console.Visit) (of, refund book.Payment, why string, err error) {
	if of, err = ps.Find(v); err == nil && of.Kind != book.KindCollection {
		err = console.ErrNoPage()
	}
	if err == nil {
		refund, why, err = ps.planRefund(v, of)
	}
	return of, refund, why, err
}

// confirmRefund shows the total debit of the wallet, with the fee for the amount that the person entered. The form of
// this second page contains that fee.
func (ps *Pages) confirmRefund(v *console.Visit) (*approvals.Confirmation, error) {
	if v.R.PostFormValue("fee") != "" {
		return nil, nil // Ask compares the fee
	}
	r, err := ps.Approvals.Changes.Preview(v.Ctx, approvals.By(v), changes.KindRefund, ps.refundValues(v))
	if err != nil {
		return nil, err
	}
	fee, err := changes.RefundFee(r)
	if err != nil {
		return nil, err
	}
	return &approvals.Confirmation{Submit: "Refund " + page.Cedis(r.Amount), Lead: fmt.Sprintf("%s. The total debit of the wallet is %s. Nothing was requested yet.", r.Sentence, page.Cedis(r.Amount+fee)),
		Fields: []page.Field{{Name: "amount", Type: "hidden", Value: r.Amount.String()}, {Name: "fee", Type: "hidden", Value: fee.String()}}}, nil
}

// refundValues returns the values of the form.
func (ps *Pages) refundValues(v *console.Visit) changes.Values {
	return changes.Values{changes.FieldTenant: v.Tenant.ID, "collection": v.R.PathValue("id"), "amount": strings.TrimSpace(v.R.PostFormValue("amount")), "fee": v.R.PostFormValue("fee")}
}

// refund requests the refund of the form. A refund that the provider refused outright has a page, too.
func (ps *Pages) refund(v *console.Visit, id string) (changes.Request, error) {
	if err := v.NeedFactor(); err != nil {
		return changes.Request{}, err
	}
	made, err := ps.Approvals.Changes.Do(v.Ctx, approvals.By(v), changes.KindRefund, id, ps.refundValues(v), v.R.PostFormValue("reason"))
	if problem.Is(err, problem.Refused) {
		if pay, found, lost := ps.Approvals.Changes.PayoutOf(v.Ctx, v.Tenant.ID, id, ""); lost == nil && found {
			return changes.Request{ID: pay.ID}, nil
		}
	}
	return made, err
}
