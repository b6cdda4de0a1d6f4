package payments

import (
	"context"
	"strings"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
)

// rails make all calls to providers: submissions and status queries. They do not use the book.
type rails struct {
	routes      *route.Table
	tenants     *tenant.Store
	clock       *clock.Clock
	callbackURL func(provider.Rail) string // address of a rail's callbacks; nil or "": none
	queries     queries
}

// operation returns the provider's operation and channel for a payment.
func operation(p book.Payment) (route.Operation, string) {
	switch {
	case p.Kind == book.KindCollection:
		return route.Collect, p.Channel
	case p.Kind == book.KindTopUp:
		return route.TopUp, p.Channel
	case p.Kind == book.KindBundle:
		return route.Bundle, p.Channel
	case p.RefundWay == book.RefundByRail:
		return route.Refund, p.Channel
	case p.Channel == book.ChannelBank:
		return route.DisburseBank, p.BankID
	}
	return route.DisburseWallet, p.Channel
}

// refundWay returns RefundByRail if the rail that collected the money supports refunds, and RefundByPayout otherwise.
func (r *rails) refundWay(of book.Payment) book.RefundWay {
	if rail, ok := r.routes.Rail(of.Rail, of.Mode); ok && rail.Refunder != nil {
		return book.RefundByRail
	}
	return book.RefundByPayout
}

// account returns the name of the account at the provider that the payment debits or credits. Commands have no rails,
// so they get the default account of the provider.
func (r *rails) account(p book.Payment) string {
	rail, _ := r.routes.Rail(p.Rail, p.Mode)
	accounts := rail.Accounts.Full()
	switch p.Kind {
	case book.KindCollection:
		return accounts.Collect
	case book.KindTopUp, book.KindBundle:
		return accounts.Sell
	}
	return accounts.Disburse
}

// choose sets the best available rail of a payment that has none. It checks that the rail of any other payment is
// available. The caller must return the probe unless it submits the payment.
func (r *rails) choose(ctx context.Context, pay *book.Payment, field string) (probe *route.Probe, err error) {
	op, channel := operation(*pay)
	switch {
	case pay.Rail != "" && op == route.DisburseBank: // the rail was chosen by the name of the payee
		var w route.Work
		if w, err = r.work(ctx, *pay); err == nil {
			probe, err = r.routes.AdmitFor(ctx, pay.Rail, w)
		}
	case pay.Rail != "":
		probe, err = r.routes.Admit(ctx, pay.Rail, op, channel, pay.Tenant, pay.Mode)
	default:
		var best []provider.Rail
		if best, probe, err = r.best(ctx, *pay); err == nil {
			pay.Rail = best[0].Name
		}
	}
	if err != nil && field != "" && problem.From(err).Code == "not_served" {
		err = problem.Field(field, "is not served at the moment")
	}
	return probe, route.OnAmount(err)
}

// best returns the rails that may serve a payment now, best first.
func (r *rails) best(ctx context.Context, pay book.Payment) ([]provider.Rail, *route.Probe, error) {
	w, err := r.work(ctx, pay)
	if err != nil {
		return nil, nil, err
	}
	return r.routes.ChooseFor(ctx, w)
}

// work describes a payment to the table of routes.
func (r *rails) work(ctx context.Context, pay book.Payment) (route.Work, error) {
	op, channel := operation(pay)
	w := route.Work{Operation: op, Channel: channel, Tenant: pay.Tenant, Mode: pay.Mode, Amount: pay.Gross()}
	if op == route.Collect {
		t, err := r.tenants.Get(ctx, pay.Tenant)
		if err != nil {
			return w, err
		}
		w.Email, w.Voucher = t.Email != "", t.Voucher
	}
	return w, nil
}

// keepPayee moves a payout to a bank account away from the rail that returned the holder's name if that rail cannot
// make it. Another rail may make it only if it returns the same name. Without such a rail the payment is unchanged, or the
// error is Unavailable if a rail did not answer. silent has the rails of the set that did not answer. They are not asked
// again.
func (r *rails) keepPayee(ctx context.Context, pay *book.Payment, silent map[string]bool) error {
	if pay.Channel != book.ChannelBank || pay.Rail == "" {
		return nil
	}
	w, err := r.work(ctx, *pay)
	if err != nil {
		return err
	}
	probe, err := r.routes.AdmitFor(ctx, pay.Rail, w)
	probe.GiveBack(ctx) // it is claimed by the choice that follows
	if err == nil || problem.From(err).Kind == problem.Internal {
		return err
	}
	out := err
	others, probe, err := r.routes.ChooseFor(ctx, w)
	probe.GiveBack(ctx)
	if err != nil {
		return nil // the cause is that of the rail that returned the name
	}
	unanswered := false
	for _, other := range others {
		if silent[other.Name] {
			unanswered = true
			continue
		}
		same, answered := r.samePayee(ctx, other, *pay)
		if same {
			pay.Rail = other.Name
			return nil
		}
		if !answered {
			unanswered, silent[other.Name] = true, true
		}
	}
	switch {
	case !unanswered:
		return nil
	case problem.From(out).Kind == problem.Unavailable:
		return out
	}
	return problem.New(problem.Unavailable, "not_served", "This service is not offered at the moment") // it may be tried again
}

// payeeTime limits the lookup of a payee's name before a payment moves to another rail.
const payeeTime = 4 * time.Second

// samePayee reports whether a rail would pay the same payee as the rail that was chosen before. For a bank account it
// looks up the holder with the rail's own bank code. The name must be the same, because a wrong code leads to the
// account of somebody else. answered is false if the rail returned neither a name nor that there is no such account.
func (r *rails) samePayee(ctx context.Context, rail provider.Rail, pay book.Payment) (same, answered bool) {
	switch {
	case pay.Channel != book.ChannelBank:
		return true, true
	case rail.BankNames == nil:
		return false, true
	}
	ctx, cancel := context.WithTimeout(about(ctx, pay), payeeTime)
	defer cancel()
	name, o := rail.BankNames.BankName(ctx, rail.Banks[pay.BankID], pay.Account)
	if o.Class != provider.Accepted {
		return false, o.Class == provider.Rejected && o.Reason == provider.ReasonPayeeNotFound
	}
	return strings.EqualFold(strings.Join(strings.Fields(name), " "), strings.Join(strings.Fields(pay.AccountName), " ")), true
}
