// Package treasury has the pages of the installation about its own money: bank accounts of the company, money on its way between them
// and the floats, customer funds, the journal, and days that are closed.
//
// Files: routes.go lists the pages, banks.go has the bank accounts and transfers, funds.go customer funds and the
// journal, days.go days and months.
//
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.977 generate
package treasury

import (
	"github.com/makola/makola/internal/closing"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/treasury"
)

// Pages has the handlers of the pages, and their dependencies.
type Pages struct {
	Treasury  *treasury.Treasury
	Books     *closing.Books
	Ledger    *ledger.Ledger
	Rails     *route.Table
	Approvals *approvals.Pages
}
