package app

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/smpp"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/textroute"
)

// smsRail is the SMS rail of one mode: message centres, and providers over HTTP. Operators limit connections, and
// receipts arrive at a connected node. So only one node at a time connects, for all operators of the mode, because a
// campaign has numbers of all networks. The other nodes return provider.ErrElsewhere and leave the delivery to it.
type smsRail struct {
	mode    tenant.Mode
	find    func(context.Context) ([]smpp.Bind, error)
	options smpp.Options // without the binds
	holds   atomic.Bool
	client  atomic.Pointer[smpp.Client]
	binds   bool             // a message centre exists or may appear
	texts   *textroute.Table // routes: the provider of each message
}

var errNoSMSC = errors.New("app: no message centre is known yet")

// Submit implements provider.SMSSender.
func (r *smsRail) Submit(ctx context.Context, s provider.Segment, done func(provider.Outcome)) {
	if !r.holds.Load() {
		done(provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Message: provider.ErrElsewhere.Error(), RetryAfter: time.Second})
		return
	}
	r.texts.Submit(ctx, s, done)
}

// Whole implements provider.SMSSender.
func (r *smsRail) Whole(from string, to msisdn.MSISDN) bool { return r.texts.Whole(from, to) }

// Ready implements provider.SMSSender.
func (r *smsRail) Ready(n msisdn.Network) error {
	if !r.holds.Load() {
		return provider.ErrElsewhere
	}
	return r.texts.Ready(n)
}

// smsBinds are the message centres of a rail.
type smsBinds struct{ *smsRail }

// Whole returns false, because message centres take segments.
func (r smsBinds) Whole(string, msisdn.MSISDN) bool { return false }

// Submit implements provider.SMSSender.
func (r smsBinds) Submit(ctx context.Context, s provider.Segment, done func(provider.Outcome)) {
	if client := r.client.Load(); client != nil {
		client.Submit(ctx, s, done)
		return
	}
	done(provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable, Message: errNoSMSC.Error(), RetryAfter: time.Second})
}

// Ready implements provider.SMSSender.
func (r smsBinds) Ready(n msisdn.Network) error {
	if client := r.client.Load(); client != nil {
		return client.Ready(n)
	}
	return errNoSMSC
}

// down returns how many of this node's connections to message centres are not bound.
func (r *smsRail) down() (n int) {
	client := r.client.Load()
	if client == nil || !r.holds.Load() {
		return 0
	}
	for _, s := range client.States() {
		n += s.Connections - s.Bound
	}
	return n
}
