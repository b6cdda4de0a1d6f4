package payments

import (
	"context"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
)

// rails make all calls to providers: submissions and status queries. They do not use the book.
type rails struct {
	routes      *route.Table
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

// refundWay returns the rail's own refund where the rail that collected has one, otherwise a payout.
func (r *rails) refundWay(of book.Payment) book.RefundWay {
	if rail, ok := r.routes.Rail(of.Rail, of.Mode); ok && rail.Refunder != nil {
		return book.RefundByRail
	}
	return book.RefundByPayout
}

// account returns the name of the account at the provider that the payment debits or credits. Commands have no rails
// and use the default accounts.
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

// choose sets the best available rail of a payment, or checks the one that it has. The caller must return the probe
// unless it submits the payment.
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
