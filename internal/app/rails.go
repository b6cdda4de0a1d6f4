package app

import (
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/outbound"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/hubtel"
	"github.com/makola/makola/internal/provider/moolre"
	"github.com/makola/makola/internal/provider/mtnmomo"
	"github.com/makola/makola/internal/provider/pawapay"
	"github.com/makola/makola/internal/provider/paystack"
	"github.com/makola/makola/internal/recovery"
	simhubtel "github.com/makola/makola/internal/sim/hubtel"
	simmoolre "github.com/makola/makola/internal/sim/moolre"
	simmtn "github.com/makola/makola/internal/sim/mtn"
	simpawapay "github.com/makola/makola/internal/sim/pawapay"
	simpaystack "github.com/makola/makola/internal/sim/paystack"
	"github.com/makola/makola/internal/tenant"
)

// Providers returns the names of the payment providers that have an adapter.
func Providers() []string {
	return []string{mtnmomo.Name, hubtel.Name, paystack.Name, pawapay.Name, moolre.Name}
}

// Adapters has an adapter for each account with a provider.
type Adapters struct {
	Rails   []provider.Rail
	Texts   []provider.TextRail
	closers []func()
}

// Close closes the idle connections.
func (a *Adapters) Close() {
	for _, closeClient := range a.closers {
		closeClient()
	}
}

// NewAdapters makes the adapters. Live money uses the configured adapters. Test money uses the same adapters with the
// simulator at simURL, or no adapters if simURL is empty. options has the clock, the observer of exchanges and the
// proxy. To add a provider, add its lines here and its name above.
func NewAdapters(cfg config.Server, simURL string, options provider.ClientOptions) *Adapters {
	type account struct {
		mode     tenant.Mode
		proxy    *outbound.Proxy // nil for the simulator
		mtn      config.MTN
		hubtel   config.Hubtel
		paystack config.Paystack
		pawapay  config.PawaPay
		moolre   config.Moolre
	}
	a, simURL := &Adapters{}, simBase(simURL)
	accounts := []account{{tenant.Live, options.Proxy, cfg.MTN, cfg.Hubtel, cfg.Paystack, cfg.PawaPay, cfg.Moolre}}
	if simURL != "" {
		accounts = append(accounts, account{tenant.Test, nil, simmtn.Config(simURL), simhubtel.Config(simURL), simpaystack.Config(simURL), simpawapay.Config(simURL),
			simmoolre.Config(simURL)})
	}
	add := func(r provider.Rail, closeClient func()) {
		for _, l := range cfg.ProviderLimits {
			if l.Provider == r.Name {
				r.Limits = append(r.Limits, provider.Limit{Operation: l.Operation, Channel: l.Channel, Min: l.Min, Max: l.Max})
			}
		}
		a.Rails, a.closers = append(a.Rails, r), append(a.closers, closeClient)
	}
	for _, each := range accounts {
		o := options
		o.Mode, o.Proxy, o.MaxConns = string(each.mode), each.proxy, providerConnections
		if each.mtn.Enabled() {
			adapter := mtnmomo.New(each.mtn, o)
			add(adapter.Rail(), adapter.Close)
		}
		if each.hubtel.Enabled() {
			adapter := hubtel.New(each.hubtel, o)
			add(adapter.Rail(), adapter.Close)
		}
		if each.paystack.Enabled() {
			adapter := paystack.New(each.paystack, o)
			add(adapter.Rail(), adapter.Close)
		}
		if each.pawapay.Enabled() {
			adapter := pawapay.New(each.pawapay, o)
			add(adapter.Rail(), adapter.Close)
		}
		if each.moolre.Enabled() {
			adapter := moolre.New(each.moolre, o)
			add(adapter.Rail(), adapter.Close)
		}
	}
	a.addTexts(cfg, simURL, options)
	return a
}

// accounts lists our accounts at providers for live money. A recovery compares them. The list excludes the
// simulator's accounts.
func (a *App) accounts() (list []recovery.Account) {
	add := func(rail string, enabled bool, names ...string) {
		if enabled {
			list = append(list, recovery.Account{Rail: rail, Mode: string(tenant.Live), Fingerprint: recovery.Fingerprint(names...)})
		}
	}
	mtn, hub := a.cfg.MTN, a.cfg.Hubtel
	add(mtnmomo.Name, mtn.Enabled(), mtn.Environment, mtn.CollectionUser, mtn.DisbursementUser)
	add(hubtel.Name, hub.Enabled(), hub.ClientID, hub.POSSales, hub.Prepaid, hub.Commission)
	// Only a key or token identifies the business at Paystack and pawaPay, so a new one looks like another account.
	add(paystack.Name, a.cfg.Paystack.Enabled(), a.cfg.Paystack.SecretKey.Reveal())
	add(pawapay.Name, a.cfg.PawaPay.Enabled(), a.cfg.PawaPay.URL, a.cfg.PawaPay.Token.Reveal())
	add(moolre.Name, a.cfg.Moolre.Enabled(), a.cfg.Moolre.URL, a.cfg.Moolre.AccountNumber)
	return list
}

// providerConnections is the largest number of connections that a node keeps to one host of a provider. If a provider
// takes 200 ms for an answer, each connection carries five requests a second. This is enough for all submissions and
// status queries of one rail.
const providerConnections = 640
