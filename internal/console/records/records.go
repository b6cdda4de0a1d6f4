// Package records has the pages of what was done, on both sites of the console: payments, messages and refused requests, as lists,
// as details and as files.
//
// Files: lists.go and search.go list payments, payment.go shows one with its story, campaigns.go messages, requests.go the
// requests that the JSON interface refused, files.go and bookkeeping.go the files of these, balances.go and statement.go the
// money of an account,
// filters.go and routes.go the parameters of lists, masks.go what a visitor may see of a number.
//
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.977 generate
package records

import (
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/statement"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

// Pages has the handlers of the pages, and what they need.
type Pages struct {
	Tenants    *tenant.Store
	Audit      *audit.Log
	Ledger     *ledger.Ledger
	Payments   *payments.Payments
	Messaging  *messaging.Messaging
	Webhooks   *webhook.Webhooks
	Requests   *requestlog.Log
	Routes     *route.Table
	Approvals  *approvals.Pages
	Statements *statement.Reader
	// NumberKey hashes the numbers that people search for, in the audit log.
	NumberKey []byte
}
