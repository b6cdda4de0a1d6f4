// Package handsets has the pages of the simulator (/sim): the phones of customers, a receiver of webhooks, faults and the clock.
// They exist in development mode only.
//
// Files: routes.go lists the pages, board.go has the handsets, hooks.go receives webhooks, simulator.go calls the simulator.
//
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.977 generate
package handsets

import (
	"net/http"

	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

// Pages has the handlers of the pages and their dependencies.
type Pages struct {
	Tenants  *tenant.Store
	Ledger   *ledger.Ledger
	Payments *payments.Payments
	Webhooks *webhook.Webhooks
	// Simulator is the control of the simulator (/sim/v1).
	Simulator http.Handler

	hooks hooks
}

func (ps *Pages) sim() simulator { return simulator{ps.Simulator} }
