package payments

import (
	"context"
	"time"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
)

// post sends a payment to its rail, for the first time or again. The call has a
// time of its own: nobody who waits for the answer can cut it short. It begins
// within leaveTime of the row's saying that it may, or not at all: see resolvable.
func (p *Payments) post(ctx context.Context, rail provider.Rail, pay Payment) provider.Outcome {
	ctx, cancel := detached(ctx, submitTime)
	defer cancel()
	if p.clock.Since(pay.mayLeaveSince()).Abs() >= leaveTime {
		return provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Message: "the time to send it was over"}
	}
	op, _ := operation(pay)
	begun := time.Now()
	o := p.send(provider.About(ctx, pay.ID), rail, pay)
	p.routes.Report(rail, op, o, time.Since(begun))
	return o
}

func (p *Payments) send(ctx context.Context, rail provider.Rail, pay Payment) provider.Outcome {
	callback := p.callbackURL(rail)
	network := msisdn.Network(pay.Channel)
	switch {
	case pay.Kind == KindCollection && rail.Collector != nil:
		return rail.Collector.Collect(ctx, provider.CollectRequest{
			ProviderReference: pay.AttemptReference, Reference: pay.Reference, Amount: pay.Gross(),
			MSISDN: pay.MSISDN(), Network: network, Label: pay.Label, CallbackURL: callback,
		})
	case pay.Kind == KindPayout && rail.Disburser != nil:
		r := provider.DisburseRequest{
			ProviderReference: pay.AttemptReference, Reference: pay.Reference, Amount: pay.Gross(),
			Name: pay.AccountName, AccountType: pay.Details.AccountType, Label: pay.Label, CallbackURL: callback,
		}
		if pay.Channel == ChannelBank {
			r.BankCode, r.Account = rail.Banks[pay.BankID], pay.Account
			if r.BankCode == "" {
				return unserved("no code for the bank")
			}
		} else {
			r.MSISDN, r.Network = pay.MSISDN(), network
		}
		return rail.Disburser.Disburse(ctx, r)
	case pay.Kind == KindTopUp && rail.TopUpper != nil:
		return rail.TopUpper.TopUp(ctx, provider.TopUpRequest{
			ProviderReference: pay.AttemptReference, Amount: pay.Gross(), MSISDN: pay.MSISDN(), Network: network, CallbackURL: callback,
		})
	case pay.Kind == KindBundle && rail.Bundles != nil:
		return rail.Bundles.BuyBundle(ctx, provider.BundleRequest{
			ProviderReference: pay.AttemptReference, Service: pay.Details.Service, MSISDN: pay.MSISDN(), Network: network, CallbackURL: callback,
			Offer: provider.Offer{Display: pay.Details.Display, Value: pay.Details.Value, Amount: pay.Amount},
		})
	}
	return unserved("the rail cannot do this")
}

// unserved is a POST that could not even be tried.
func unserved(why string) provider.Outcome {
	return provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Message: why}
}

// ask asks the payment's rail what became of it. An answer that speaks of
// another payment comes back as Unknown with ReasonMismatch. A question that is
// cut short does no harm: ctx bounds it.
func (p *Payments) ask(ctx context.Context, rail provider.Rail, pay Payment) provider.Outcome {
	ctx, cancel := context.WithTimeout(provider.About(ctx, pay.ID), askTime)
	defer cancel()
	r := provider.StatusRequest{
		ProviderReference: pay.AttemptReference, UpstreamID: pay.UpstreamID, Amount: pay.Gross(),
		MSISDN: pay.MSISDN(), SentAt: pay.CreatedAt,
	}
	if !pay.SendingAt.IsZero() && !rail.MayRepeat { // it may have waited long for its provider
		r.SentAt = pay.SendingAt
	}
	if pay.Channel == ChannelBank {
		r.Account = pay.Account
	}
	var o provider.Outcome
	switch {
	case pay.Kind == KindCollection && rail.Collector != nil:
		o = rail.Collector.CollectStatus(ctx, r)
	case pay.Kind == KindPayout && rail.Disburser != nil:
		o = rail.Disburser.DisburseStatus(ctx, r)
	case pay.Kind == KindTopUp && rail.TopUpper != nil:
		o = rail.TopUpper.TopUpStatus(ctx, r)
	case pay.Kind == KindBundle && rail.Bundles != nil:
		o = rail.Bundles.BundleStatus(ctx, r)
	default:
		return provider.Outcome{Reason: provider.ReasonUnavailable, Message: "the rail cannot be asked about this"}
	}
	if o.Class != provider.Accepted {
		o.Class = provider.Unknown // a question proves nothing about the payment
		return o
	}
	if provider.Mismatch(o, provider.Expect{Reference: pay.AttemptReference, Amount: pay.Gross(), Party: pay.Account}) {
		return provider.Outcome{Reason: provider.ReasonMismatch, Code: o.Code, Message: o.Message, UpstreamID: o.UpstreamID}
	}
	return o
}

// requery asks for an open payment on behalf of somebody who waits (checkstatus),
// at most once in two seconds for one payment and within ctx, and settles what
// is final. It answers the row as it is afterwards, or as it was.
func (p *Payments) requery(ctx context.Context, pay Payment) (Payment, error) {
	if pay.Status != StatusPending || !p.live.asked.may(pay.ID, p.clock.Now()) {
		return pay, nil
	}
	rail, ok := p.routes.Rail(pay.Rail, pay.Mode)
	if !ok {
		return pay, nil
	}
	s, final := finalWord(pay, p.ask(ctx, rail, pay))
	if !final {
		return pay, nil
	}
	done, err := p.settle(ctx, s)
	if err != nil {
		return pay, err
	}
	return done.payment, nil
}

// finalWord turns a provider's answer about a payment into the settlement that
// it asks for, if it is the last word.
func finalWord(pay Payment, o provider.Outcome) (settlement, bool) {
	if !o.Final() {
		return settlement{}, false
	}
	s := settlement{payment: pay, event: EventSucceeded, outcome: o}
	if o.State == provider.Failed {
		s.event, s.reason = EventFailed, reasonOf(o)
	}
	return s, true
}

func reasonOf(o provider.Outcome) string {
	if o.Reason == "" {
		return provider.ReasonUnknown
	}
	return o.Reason
}
