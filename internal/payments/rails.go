package payments

import (
	"context"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
)

// rails make every call to a provider: submissions and status questions. They know nothing of the book.
type rails struct {
	routes      *route.Table
	clock       *clock.Clock
	callbackURL func(provider.Rail) string // where a rail's callbacks arrive; nil or an empty answer: none are wanted
	questions   questions
}

// operation is what a payment asks of a provider, and the channel on which.
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

// refundWay is how a collection is given back: by the rail that collected, where it has a refund of its own.
func (r *rails) refundWay(of book.Payment) book.RefundWay {
	if rail, ok := r.routes.Rail(of.Rail, of.Mode); ok && rail.Refunder != nil {
		return book.RefundByRail
	}
	return book.RefundByPayout
}

// account names the account at the provider that a payment's money leaves, or comes into. Commands have no rails: they go by
// the accounts that a provider has by default.
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

// choose gives a payment the best rail of now, or looks whether the one that it has may be used. The probe is of that
// rail, and must be given back unless the payment is submitted.
func (r *rails) choose(ctx context.Context, pay *book.Payment, field string) (probe *route.Probe, err error) {
	op, channel := operation(*pay)
	if pay.Rail != "" {
		probe, err = r.routes.Admit(ctx, pay.Rail, op, channel, pay.Tenant, pay.Mode)
	} else {
		var best []provider.Rail
		if best, probe, err = r.routes.Choose(ctx, op, channel, pay.Tenant, pay.Mode); err == nil {
			pay.Rail = best[0].Name
		}
	}
	if err != nil && field != "" && problem.From(err).Code == "not_served" {
		err = problem.Field(field, "is not served at the moment")
	}
	return probe, err
}
