package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/outbound"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/arkesel"
	"github.com/makola/makola/internal/provider/hubtelsms"
	"github.com/makola/makola/internal/provider/smpp"
	simarkesel "github.com/makola/makola/internal/sim/arkesel"
	simhubtelsms "github.com/makola/makola/internal/sim/hubtelsms"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/textroute"
)

// addTexts makes the adapters for texts over HTTP. Live messages use the configured adapters. Test messages use the
// same adapters with the simulator. To add a provider, add its lines here and its name in config.
func (a *Adapters) addTexts(cfg config.Server, simURL string, options provider.ClientOptions) {
	record := options.Record
	// A campaign would fill the log of exchanges, so only failed exchanges are kept.
	options.Record = func(e provider.Exchange) {
		if record != nil && (e.Err != "" || e.Status >= http.StatusMultipleChoices) {
			record(e)
		}
	}
	add := func(mode tenant.Mode, proxy *outbound.Proxy, h config.HubtelSMS, k config.Arkesel) {
		of := func(window int) provider.ClientOptions {
			o := options
			o.Mode, o.Proxy, o.MaxConns = string(mode), proxy, window+textPolls
			return o
		}
		if h.Enabled() {
			adapter := hubtelsms.New(h, of(h.Window))
			a.closers, a.Texts = append(a.closers, adapter.Close), append(a.Texts, adapter.Rail())
		}
		if k.Enabled() {
			adapter := arkesel.New(k, of(k.Window))
			a.closers, a.Texts = append(a.closers, adapter.Close), append(a.Texts, adapter.Rail())
		}
	}
	add(tenant.Live, options.Proxy, cfg.HubtelSMS, cfg.Arkesel)
	if simURL != "" {
		add(tenant.Test, nil, simhubtelsms.Config(simURL), simarkesel.Config(simURL))
	}
}

// routeTexts gives each rail its table of routes. The routes of the configuration also apply to test messages,
// because the simulator has every provider.
func (a *App) routeTexts() {
	routes := make([]textroute.Route, len(a.cfg.SMSRoutes))
	for i, r := range a.cfg.SMSRoutes {
		routes[i] = textroute.Route{Network: msisdn.Network(r.Network), Sender: r.Sender, Providers: r.Providers}
	}
	metrics := textroute.NewMetrics()
	a.textMetrics = metrics
	for _, r := range a.sms {
		o := textroute.Options{Rails: a.textRailsOf(r.mode), Routes: routes, Callback: a.reportURL, Clock: a.clock, Metrics: metrics}
		if r.binds {
			o.Binds = smsBinds{r}
		}
		r.texts = textroute.New(o)
	}
}

func (a *App) textRailsOf(mode tenant.Mode) (rails []provider.TextRail) {
	for _, r := range a.textRails {
		if r.Mode == string(mode) {
			rails = append(rails, r)
		}
	}
	return rails
}

// reportURL returns the address for the reports of a provider of texts. It is empty if there is none.
func (a *App) reportURL(r provider.TextRail) string {
	return a.callbackURL(provider.Rail{Name: r.Name, Mode: r.Mode})
}

// bindsOf returns the state of a rail's message centres and providers over HTTP. Connections use the machine's clock.
func (a *App) bindsOf(r *smsRail, client *smpp.Client, now time.Time) (binds []messaging.Bind) {
	for _, s := range client.States() {
		binds = append(binds, messaging.Bind{Name: s.Name, Connections: int64(s.Connections), Bound: int64(s.Bound), Since: now.Add(-time.Since(s.Since)), Why: s.Why})
	}
	for _, s := range r.texts.States() {
		b := messaging.Bind{Name: s.Name, Connections: 1, Since: now.Add(-s.Since), Why: s.Why}
		if s.Up {
			b.Bound = 1
		}
		binds = append(binds, b)
	}
	return binds
}

// receiveReport stores a provider's report on a text. A report on an unknown message changes nothing.
func (a *App) receiveReport(ctx context.Context, rail provider.TextRail, r provider.Receipt) error {
	r.UpstreamID, r.At = textroute.ID(rail.Name, r.UpstreamID), a.clock.Now()
	return a.messaging.Receive(ctx, r)()
}

const (
	// pollTextsEvery is the interval between polls of texts. textPolls is the maximum number of concurrent
	// polls.
	pollTextsEvery = time.Minute
	textPolls      = 4
)

// pollTexts polls the states of open messages at providers that push no reports.
func (a *App) pollTexts(ctx context.Context) (all error) {
	for _, rail := range a.textRails {
		if rail.Poller == nil {
			continue
		}
		all = errors.Join(all, a.messaging.PollStates(ctx, tenant.Mode(rail.Mode), rail.Name, textPolls, func(ctx context.Context, id string) (provider.Receipt, bool) {
			r, ok := rail.Poller.TextState(ctx, id)
			r.At = a.clock.Now()
			return r, ok
		}))
	}
	return all
}
