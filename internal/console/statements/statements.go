// Package statements has the pages of the installation (/ops/statements) on which people import statements of providers and banks.
//
// Files: routes.go lists the pages, list.go has all statements and their lines, upload.go receives a file, mapping.go shows how the first
// file of a source is read.
package statements

import (
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/reconcile"
)

// Pages has the handlers of the pages, and their dependencies.
type Pages struct {
	Reconcile *reconcile.Reconcile
	Audit     *audit.Log
}
