package payments

import (
	"context"
	"time"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

// answersSomething says whether a provider answered a question, whatever it
// said.
func answersSomething(o provider.Outcome) bool {
	return o.Class == provider.Accepted || o.NotFound || o.Reason == provider.ReasonMismatch
}

// askTime is what a provider may take to answer a question.
const askTime = 3 * time.Second

// ask asks the payment's rail what became of it. An answer that speaks of
// another payment comes back as Unknown with ReasonMismatch. A question that is
// cut short does no harm: ctx bounds it, and askTime from the moment at which it
// has its place in the line.
func (r *rails) ask(ctx context.Context, rail provider.Rail, pay book.Payment) provider.Outcome {
	leave, err := r.questions.enter(ctx, rail)
	if err != nil {
		return provider.Outcome{Reason: provider.ReasonUnavailable, Message: "no place in the line of questions in time"}
	}
	defer leave()
	ctx, cancel := context.WithTimeout(provider.About(ctx, pay.ID), askTime)
	defer cancel()
	o := question(ctx, rail, pay)
	if o.Class != provider.Accepted {
		o.Class = provider.Unknown // a question proves nothing about the payment
	} else if provider.Mismatch(o, provider.Expect{Reference: pay.AttemptReference, Amount: pay.Gross(), Party: pay.Account}) {
		o = provider.Outcome{Reason: provider.ReasonMismatch, Code: o.Code, Message: o.Message, UpstreamID: o.UpstreamID}
	}
	r.metrics.asked(pay, answersSomething(o))
	return o
}

// question makes the call.
func question(ctx context.Context, rail provider.Rail, pay book.Payment) provider.Outcome {
	r := provider.StatusRequest{
		ProviderReference: pay.AttemptReference, Amount: pay.Gross(),
		MSISDN: pay.MSISDN(), SentAt: sentSince(pay, rail),
	}
	if pay.Channel == book.ChannelBank {
		r.Account = pay.Account
	}
	switch {
	case pay.Kind == book.KindCollection && rail.Collector != nil:
		return rail.Collector.CollectStatus(ctx, r)
	case pay.Kind == book.KindPayout && rail.Disburser != nil:
		return rail.Disburser.DisburseStatus(ctx, r)
	case pay.Kind == book.KindTopUp && rail.TopUpper != nil:
		return rail.TopUpper.TopUpStatus(ctx, r)
	case pay.Kind == book.KindBundle && rail.Bundles != nil:
		return rail.Bundles.BundleStatus(ctx, r)
	}
	return provider.Outcome{Reason: provider.ReasonUnavailable, Message: "the rail cannot be asked about this"}
}
