// Package statements has the pages of the installation on which people import statements of providers and banks (/ops/statements), and take care
// of differences from our payments (/ops/exceptions).
//
// Files: routes.go lists the pages, exceptions.go has the differences, list.go all statements and their lines, upload.go receives a file, mapping.go shows how the first
// file of a source is read.
package statements

import (
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/reconcile"
)

// Pages has the handlers of the pages, and their dependencies.
type Pages struct {
	Reconcile *reconcile.Reconcile
	Payments  *payments.Payments
	Audit     *audit.Log
	Approvals *approvals.Pages
}
