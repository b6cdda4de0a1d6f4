// Package batches has the pages of an account (/app/TENANT/batches) on which people pay many others by one file: upload it, mend its
// rows, request it, follow it, and take its results away.
//
// Files: routes.go lists the pages, list.go has all batches of the account, upload.go takes a file, mapping.go asks for its columns, batch.go is the page of a batch,
// rows.go shows and mends rows, settle.go gives many rows a network or a bank, names.go compares registered names, send.go requests, pauses, resumes and cancels, results.go has the files and drafts of earlier rows.
//
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.977 generate
package batches

import (
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/payments"
)

// Pages has the handlers of the pages and their dependencies.
type Pages struct {
	Batches   *batch.Batches
	Payments  *payments.Payments
	Audit     *audit.Log
	Approvals *approvals.Pages
}
