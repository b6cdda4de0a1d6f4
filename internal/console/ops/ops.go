// Package ops has the pages of the installation (/ops): the overview, accounts and their payments, providers and floats, routes, jobs,
// checks and the audit log, and the forms by which operators request changes.
//
// Files: routes.go lists the pages. overview.go has the overview, operate.go accounts, the state of providers and checks, floats.go
// balances at providers, their latency and pauses, provider.go the test of a provider's set-up, attention.go the payments that need attention, payments.go the payments of all
// accounts, audits.go the audit log, notices.go the messages to people. account_forms.go has the forms about accounts and sender IDs, money_forms.go those about
// floats, credits and the ends of payments, operation_forms.go those about providers, routes and jobs, fees.go those of fee
// plans, wallet.go those about wallets. waiting.go counts what awaits the visitor for the navigation.
//
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.977 generate
package ops

import (
	"context"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/checkup"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/console/records"
	"github.com/makola/makola/internal/console/settings"
	"github.com/makola/makola/internal/figures"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/notice"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
)

// Pages has the handlers of the pages, and their dependencies.
type Pages struct {
	Tenants   *tenant.Store
	Access    *access.Access
	Audit     *audit.Log
	Payments  *payments.Payments
	Messaging *messaging.Messaging
	Senders   *senderid.Store
	Jobs      *jobs.Queue
	Reconcile *reconcile.Reconcile // it counts exceptions for the navigation
	Rails     *route.Table
	Checkup   *checkup.Checkup
	Approvals *approvals.Pages
	Records   *records.Pages
	Settings  *settings.Pages
	Figures   *figures.Figures
	// LastBackup returns the time of the last backup; found is false if none is recorded.
	LastBackup func(ctx context.Context) (at time.Time, found bool, err error)
	Notices    *notice.Notices
	// Checks returns the results of the last checks of the books.
	Checks func() []Check
}
