package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/tenant"
)

// greet prints the first screen of a development server for a newcomer. Elsewhere it logs the same facts without the
// key.
func (a *App) greet(ctx context.Context) error {
	a.log.Info("ready", "api", a.ready.APIURL, "metrics", a.ready.MetricsURL, "engine", a.db.Engine().String(), "node", a.cfg.Node, "production", a.production)
	if a.opts.Out == nil || a.production {
		return nil
	}
	data, err := a.where(context.WithoutCancel(ctx)) // an interrupt must not lose the key, which is printed once
	if err != nil {
		return err
	}
	base := strings.TrimSuffix(a.ready.APIURL, "/api/v1")
	var text strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&text, "  %-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&text, "Makola %s (%s)                 DEVELOPMENT MODE: simulated money only\n\n", a.opts.Version, runtime.Version())
	line("API", "%s", a.ready.APIURL)
	line("Console", "%s        (handsets: /sim)", a.ready.ConsoleURL)
	line("Docs", "%s/docs                OpenAPI: /openapi.json", base)
	line("Health", "%s/readyz             Metrics: %s", base, cmp.Or(a.ready.MetricsURL, "off"))
	line("Data", "%s", data)
	if a.sim != nil {
		line("Simulator", "%s        control: %s", a.sim.url, a.ready.SimURL)
	}
	if a.sim != nil && a.sim.local != nil {
		for _, each := range sandboxes(a.sim.url, a.sim.local.Centre.Account()) {
			for i, text := range each.lines {
				line([]string{each.name, ""}[min(i, 1)], "%s", text)
			}
		}
	}
	line("Providers", "simulator: mobile money (MTN, Telecel, AirtelTigo), banks, airtime, data, SMS")
	if a.ready.SenderID != "" {
		line("Sender ID", "%s  %s        handset: %s/handsets/0240000001/messages", a.ready.SenderID, demoSender, a.ready.SimURL)
	}
	text.WriteByte('\n')
	line("Sign in", "%s        (works once, 30 minutes)", a.ready.SignInURL)
	key := a.ready.APIKey
	if key != "" {
		holds, err := a.demoHolds(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		line("Test key", "%s        (demo account %q, %s)", key, demoName, holds)
		line("Webhooks", "signed with %s", a.ready.WebhookSecret)
	} else {
		line("Test key", "none that can be shown; make one: %s key create --tenant %s%s", program(), a.ready.TenantID, a.storageFlags())
		key = "mk_test_..."
	}
	fresh := a.clock.Now().Format("20060102-150405") // a reference is accepted once
	fmt.Fprintf(&text, `
  Try:   export KEY=%s
         curl -s %s/account-api/balance -H "x-api-key: $KEY"
         curl -s %s/payment-api/send/mobilemoney -H "x-api-key: $KEY" -d '{"amount":"5.00","channel":"MTN","account_number":"0240000000","client_reference":"payout-%s"}'
         curl -s %s/payment-api/momopay -H "x-api-key: $KEY" -d '{"amount":2,"network":"MTN","phone_number":"0240000001","transaction_id":"collection-%s"}'
  Stop with Ctrl-C.
`, key, a.ready.APIURL, a.ready.APIURL, fresh, a.ready.APIURL, fresh)
	_, _ = a.opts.Out.Write([]byte(text.String())) // an error of a closed output is ignored
	return nil
}

// demoHolds describes the demo account's money and credits.
func (a *App) demoHolds(ctx context.Context) (string, error) {
	demo := tenant.Tenant{ID: demoTenant, Mode: tenant.Test}
	wallet, err := a.ledger.Balance(ctx, demo.Wallet())
	if err != nil {
		return "", err
	}
	credits, err := a.ledger.Balance(ctx, demo.SMSCredits())
	return fmt.Sprintf("GHS %s, %s SMS", money.Grouped(money.Pesewas(wallet).String()), money.Grouped(fmt.Sprint(credits))), err
}

// where describes the database, with an absolute path, and its contents.
func (a *App) where(ctx context.Context) (string, error) {
	migrations, err := a.db.MigrationStatus(ctx)
	if err != nil {
		return "", err
	}
	payments, err := a.payments.Count(ctx)
	if err != nil {
		return "", err
	}
	schema := migrations[len(migrations)-1].Number
	noun := "payments"
	if payments == 1 {
		noun = "payment"
	}
	state := fmt.Sprintf("existing, schema %d, %s %s", schema, money.Grouped(fmt.Sprint(payments)), noun)
	if a.demoMade {
		state = fmt.Sprintf("new, schema %d, demo data loaded", schema)
	}
	if a.db.Engine() == db.Postgres {
		return "PostgreSQL  (" + state + ")", nil
	}
	path := a.cfg.SQLite()
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	return "SQLite  " + path + "  (" + state + ")", nil
}

// storageFlags returns the flags by which a command finds this server's database. A URL may contain a password.
func (a *App) storageFlags() string {
	switch {
	case a.cfg.Database != "":
		return " --database ..."
	case a.cfg.Data != config.DefaultData:
		return " --data " + a.cfg.Data
	}
	return ""
}

// program returns the command that calls this program again. go run builds the program into a temporary folder.
func program() string {
	if path, err := os.Executable(); err == nil && strings.Contains(path, "go-build") {
		return "go run ./cmd/makola"
	}
	return filepath.Base(os.Args[0])
}
