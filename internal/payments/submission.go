package payments

import (
	"context"
	"time"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// submit sends a payment to its rail, for the first time or again. The call has a timeout of its own and continues if
// the client disconnects. It starts within leaveTime of submittableAt or not at all; onItsWay depends on this limit.
func (r *rails) submit(ctx context.Context, rail provider.Rail, pay book.Payment, submittableAt moment) provider.Outcome {
	ctx, cancel := detached(ctx, submitTime)
	defer cancel()
	if submittableAt.IsZero() || momentOf(r.clock).Sub(submittableAt) >= leaveTime {
		return provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Message: "too late to submit the payment"}
	}
	op, _ := operation(pay)
	begun := time.Now()
	o := r.call(about(ctx, pay), rail, pay)
	r.routes.Report(rail, op, o, time.Since(begun))
	if o.Echo != nil && provider.Mismatch(o, provider.Expect{Reference: pay.AttemptReference, Amount: pay.Gross(), Party: pay.Account}) {
		o = provider.Outcome{Reason: provider.ReasonMismatch, Code: o.Code, Message: o.Message}
	}
	return o
}

// detached returns a context that is not cancelled with the caller's context, and has a timeout of d.
func detached(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d)
}

func (r *rails) call(ctx context.Context, rail provider.Rail, pay book.Payment) provider.Outcome {
	callback := r.callbackURL(rail)
	network := msisdn.Network(pay.Channel)
	switch {
	case pay.Kind == book.KindCollection && rail.Collector != nil:
		return r.collect(ctx, rail, pay, provider.CollectRequest{
			ProviderReference: pay.AttemptReference, Reference: pay.Reference, Amount: pay.Gross(),
			MSISDN: pay.MSISDN(), Network: network, Label: pay.Label, CallbackURL: callback,
		})
	case pay.RefundWay == book.RefundByRail:
		if rail.Refunder == nil {
			return unserved("the rail has no refund")
		}
		return rail.Refunder.Refund(ctx, provider.RefundRequest{
			ProviderReference: pay.AttemptReference, Collected: pay.Details.Collected, Reference: pay.Reference, Amount: pay.Gross(),
			Label: pay.Label, CallbackURL: callback,
		})
	case pay.Kind == book.KindPayout && rail.Disburser != nil:
		d := provider.DisburseRequest{
			ProviderReference: pay.AttemptReference, Reference: pay.Reference, Amount: pay.Gross(),
			Name: pay.AccountName, AccountType: pay.Details.AccountType, Label: pay.Label, CallbackURL: callback,
		}
		if pay.Channel == book.ChannelBank {
			d.BankCode, d.Account = rail.Banks[pay.BankID], pay.Account
			if d.BankCode == "" {
				return unserved("the provider has no code for the bank")
			}
		} else {
			d.MSISDN, d.Network = pay.MSISDN(), network
		}
		return rail.Disburser.Disburse(ctx, d)
	case pay.Kind == book.KindTopUp && rail.TopUpper != nil:
		return rail.TopUpper.TopUp(ctx, provider.TopUpRequest{
			ProviderReference: pay.AttemptReference, Amount: pay.Gross(), MSISDN: pay.MSISDN(), Network: network, CallbackURL: callback,
		})
	case pay.Kind == book.KindBundle && rail.Bundles != nil:
		return rail.Bundles.BuyBundle(ctx, provider.BundleRequest{
			ProviderReference: pay.AttemptReference, Service: pay.Details.Service, MSISDN: pay.MSISDN(), Network: network, CallbackURL: callback,
			Offer: provider.Offer{Display: pay.Details.Display, Value: pay.Details.Value, Amount: pay.Amount},
		})
	}
	return unserved("the provider does not offer this operation")
}

// collect submits a collection, with the account's e-mail address where the rail needs one.
func (r *rails) collect(ctx context.Context, rail provider.Rail, pay book.Payment, c provider.CollectRequest) provider.Outcome {
	if rail.Needs.Email {
		t, err := r.tenants.Get(ctx, pay.Tenant)
		if err != nil || t.Email == "" {
			return unserved("the account has no e-mail address, which the provider needs")
		}
		c.Email = t.Email
	}
	return rail.Collector.Collect(ctx, c)
}

// unserved returns the outcome of a submission that was not tried.
func unserved(why string) provider.Outcome {
	return provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Message: why}
}
