package funds

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/checkup"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
)

// providersTest tests the set-up of providers with the settings of this machine, which must be the server's.
type providersTest struct {
	frame.Common
	frame.Reasoned
	Provider string `arg:"" optional:"" help:"Name of the provider, such as paystack. Default: all configured providers."`
	Mode     string `name:"mode" enum:"test,live," default:"" placeholder:"test|live" help:"Mode to test: test or live. Default: both."`
	Sim      string `name:"sim" env:"MAKOLA_SIM" placeholder:"URL" help:"URL of the simulator. Default: the simulator of a development server with the same data folder."`

	Egress    config.Egress    `embed:""`
	MTN       config.MTN       `embed:"" prefix:"mtn-" envprefix:"MAKOLA_MTN_"`
	Hubtel    config.Hubtel    `embed:"" prefix:"hubtel-" envprefix:"MAKOLA_HUBTEL_"`
	Paystack  config.Paystack  `embed:"" prefix:"paystack-" envprefix:"MAKOLA_PAYSTACK_"`
	PawaPay   config.PawaPay   `embed:"" prefix:"pawapay-" envprefix:"MAKOLA_PAWAPAY_"`
	Moolre    config.Moolre    `embed:"" prefix:"moolre-" envprefix:"MAKOLA_MOOLRE_"`
	HubtelSMS config.HubtelSMS `embed:"" prefix:"hubtel-sms-" envprefix:"MAKOLA_HUBTEL_SMS_"`
	Arkesel   config.Arkesel   `embed:"" prefix:"arkesel-" envprefix:"MAKOLA_ARKESEL_"`

	SMSRoutes []config.SMSRoute `name:"sms-route" env:"MAKOLA_SMS_ROUTES" placeholder:"NETWORK:SENDER:PROVIDERS" help:"Routes of texts of the server, to show those that name the provider."`
}

var checkColumns = []frame.Column[checkup.Result]{
	{Name: "provider", Value: func(r checkup.Result) any { return r.Provider }},
	{Name: "mode", Value: func(r checkup.Result) any { return r.Mode }},
	{Name: "state", Value: func(r checkup.Result) any { return string(r.State) }},
	{Name: "check", Value: func(r checkup.Result) any { return r.Subject }},
	{Name: "fact", Value: func(r checkup.Result) any { return r.Fact }},
	{Name: "fix", Value: func(r checkup.Result) any { return r.Fix }},
}

// Run prints the results. It fails if a check fails.
func (c *providersTest) Run(e *frame.Env) error {
	if err := frame.ReadableFlag(e.Flags); err != nil {
		return err
	}
	return c.WithSecret(e, func(o *frame.Opened, secret config.Secret) error {
		all, err := c.test(e, o, secret)
		if err != nil {
			return err
		}
		if err := frame.PrintAll(e.Stdout, c.Output, checkColumns, all); err != nil {
			return err
		}
		failed := 0
		for _, r := range all {
			if r.State == checkup.Fail {
				failed++
			}
		}
		if failed > 0 {
			return problem.New(problem.Internal, "unhealthy", fmt.Sprintf("%d of %d checks fail", failed, len(all)))
		}
		return nil
	})
}

// test tests the providers, one after the other, and writes each test into the audit log.
func (c *providersTest) test(e *frame.Env, o *frame.Opened, secret config.Secret) ([]checkup.Result, error) {
	proxy, err := c.Egress.Proxy(slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	sim := c.Sim
	if sim == "" && !o.Production() {
		sim = app.SimulatorOf(c.Storage)
	}
	adapters := app.NewAdapters(config.Server{MTN: c.MTN, Hubtel: c.Hubtel, Paystack: c.Paystack, PawaPay: c.PawaPay, Moolre: c.Moolre, HubtelSMS: c.HubtelSMS, Arkesel: c.Arkesel}, sim, provider.ClientOptions{Clock: o.Clock, Proxy: proxy})
	defer adapters.Close()
	p := o.Payments(secret)
	defer p.Close()
	m := o.Messaging()
	defer m.Close()
	tests := checkup.New(checkup.Deps{DB: o.DB, Clock: o.Clock, Texts: adapters.Texts, Book: p.Reader, Binds: m.Binds, TextRoutes: c.SMSRoutes,
		Routes: route.New(o.DB, o.Clock, slog.New(slog.DiscardHandler), app.Providers(), adapters.Rails)})
	names, err := tests.Names(e.Ctx)
	if err != nil {
		return nil, err
	}
	if c.Provider != "" {
		names = []string{c.Provider}
	}
	all := []checkup.Result{}
	for _, name := range names {
		if err := o.Change(e.Ctx, audit.Entry{Action: checkup.Action, Subject: name}, func(*db.Tx) (any, error) { return nil, nil }); err != nil {
			return nil, err
		}
		found, err := tests.Test(e.Ctx, name, c.Mode)
		if err != nil {
			return nil, err
		}
		all = slices.Concat(all, found)
	}
	return all, nil
}
