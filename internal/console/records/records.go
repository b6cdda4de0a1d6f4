// Package records has the pages of payments, messages and failed requests on both sites of the console: lists, details and files.
//
// Files: lists.go and search.go list payments, payment.go shows one with its timeline, whereabouts.go
// where its money is and which of that an account sees, notes.go the notes of operators and who takes care of it, receipt.go its
// receipt, refund.go its refund, campaigns.go has messages, incoming.go texts from handsets and numbers that opted out, requests.go
// failed API requests, webhooks.go the webhooks of an account, files.go and bookkeeping.go files for download, charts.go charts of figures, balances.go and statement.go balances, filters.go the
// parameters of lists, masks.go masked numbers.
//
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.977 generate
package records

import (
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/inbox"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/notice"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/statement"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

// Pages has the handlers of the pages, and their dependencies.
type Pages struct {
	Inbox      *inbox.Store
	Contacts   *contacts.Store
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
	Notices    *notice.Notices
	// NumberKey hashes the numbers of searches for the audit log.
	NumberKey []byte
}
