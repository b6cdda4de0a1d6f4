// Package tenant has the pages of an account (/app/TENANT) that the installation does not have: its home page, the lists of its
// payments with exact totals, and the form for a payout.
//
// Files: routes.go lists the pages, home.go is the first one, lists.go has the payments of each kind, new_payout.go the payout.
//
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.977 generate
package tenant

import (
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/console/records"
	"github.com/makola/makola/internal/console/settings"
	"github.com/makola/makola/internal/figures"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/ratelimit"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
)

// Pages has the handlers of the pages, and their dependencies.
type Pages struct {
	Tenants   *tenant.Store
	Limits    *ratelimit.Limiter
	Ledger    *ledger.Ledger
	Payments  *payments.Payments
	Rails     *route.Table
	Figures   *figures.Figures
	Senders   *senderid.Store
	Approvals *approvals.Pages
	Records   *records.Pages
	Settings  *settings.Pages
	// FormKey signs the forms that move money. All nodes have the same key.
	FormKey []byte
}
