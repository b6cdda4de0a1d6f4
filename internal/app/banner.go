package app

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
)

// greet prints what a newcomer needs on the first screen of a development server, and logs the same
// facts, without the key, everywhere else.
func (a *App) greet() {
	a.log.Info("ready", "api", a.ready.APIURL, "metrics", a.ready.MetricsURL, "engine", a.db.Engine().String(), "node", a.cfg.Node, "production", a.production)
	if a.opts.Out == nil || a.production {
		return
	}
	base := strings.TrimSuffix(a.ready.APIURL, "/api/v1")
	var text strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&text, "  %-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&text, "Makola %s (%s)                 DEVELOPMENT MODE: simulated money only\n\n", a.opts.Version, runtime.Version())
	line("API", "%s", a.ready.APIURL)
	line("Docs", "%s/docs/testing        OpenAPI: /openapi.json", base)
	line("Health", "%s/readyz             Metrics: %s", base, cmp.Or(a.ready.MetricsURL, "off"))
	line("Data", "%s", a.where())
	if a.sim != nil {
		line("Simulator", "%s        control: %s", a.sim.url, a.ready.SimURL)
	}
	line("Providers", "simulator: mobile money (MTN, Telecel, AirtelTigo), banks, airtime, data, SMS")
	if a.ready.SenderID != "" {
		line("Sender ID", "%s  %s        handset: %s/handsets/0240000001/messages", a.ready.SenderID, demoSender, a.ready.SimURL)
	}
	text.WriteByte('\n')
	key := a.ready.APIKey
	if key != "" {
		line("Test key", "%s        (demo account %q, GHS %s, %d SMS)", key, demoName, demoMoney, demoCredits)
		line("Webhooks", "signed with %s", a.ready.WebhookSecret)
	} else {
		line("Test key", "made at the first start; another: %s key create --tenant %s%s", program(), a.ready.TenantID, a.storageFlags())
		key = "mk_test_..."
	}
	fmt.Fprintf(&text, `
  Try:   export KEY=%s
         curl -s %s/account-api/balance -H "x-api-key: $KEY"
         curl -s %s/payment-api/send/mobilemoney -H "x-api-key: $KEY" -d '{"amount":"5.00","channel":"MTN","account_number":"0240000000","client_reference":"my-first-payout-1"}'
         curl -s %s/payment-api/momopay -H "x-api-key: $KEY" -d '{"amount":2,"network":"MTN","phone_number":"0240000001","transaction_id":"my-first-collection-1"}'
  Stop with Ctrl-C.
`, key, a.ready.APIURL, a.ready.APIURL, a.ready.APIURL)
	_, _ = a.opts.Out.Write([]byte(text.String()))
}

// where says which database this is, with an absolute path.
func (a *App) where() string {
	if a.db.Engine() == db.Postgres {
		return "PostgreSQL"
	}
	path := a.cfg.SQLite()
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	state := "existing"
	if a.ready.APIKey != "" {
		state = "new, demo data loaded"
	}
	return "SQLite  " + path + "  (" + state + ")"
}

// storageFlags are what a command needs to find this server's database; a URL may hold a password.
func (a *App) storageFlags() string {
	switch {
	case a.cfg.Database != "":
		return " --database ..."
	case a.cfg.Data != config.DefaultData:
		return " --data " + a.cfg.Data
	}
	return ""
}

// program is how this program is called again: go run builds it into a temporary folder.
func program() string {
	if path, err := os.Executable(); err == nil && strings.Contains(path, "go-build") {
		return "go run ./cmd/makola"
	}
	return filepath.Base(os.Args[0])
}
