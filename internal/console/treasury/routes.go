package treasury

import (
	"net/http"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/roles"
)

// Routes are the pages about the installation's own money.
func (ps *Pages) Routes() []console.Route {
	routes := []console.Route{
		{Method: http.MethodGet, Path: "/ops/banks", Permission: roles.ReadTreasury, Handle: ps.banks},
		{Method: http.MethodGet, Path: "/ops/banks/transfers", Permission: roles.ReadTreasury, Inputs: []console.Input{{Name: "before", Max: 36}}, Handle: ps.transfers},
	}
	for _, f := range ps.forms() {
		routes = append(routes, f.Routes("/ops")...)
	}
	for i := range routes {
		routes[i].Site = console.Operators
	}
	return routes
}

// forms are the pages on which people request changes of the installation's own money.
func (ps *Pages) forms() []approvals.Form {
	banks := approvals.Choices{"bank": ps.bankOptions}
	floats := approvals.Choices{"bank": ps.bankOptions, "provider": ps.providerOptions, "account": accountOptions}
	return []approvals.Form{
		ps.Approvals.Form(changes.KindAddBank, "/banks/add", "Add bank account", "A bank account of the company. From then on every deposit to a wallet of the same money names a bank account and a slip.", nil),
		ps.Approvals.Form(changes.KindCloseBank, "/banks/close", "Close bank account", "Only an account without money in the books, and without money on its way, can be closed.", approvals.Choices{"name": ps.bankOptions}),
		ps.Approvals.Form(changes.KindOpenBanks, "/banks/open", "Book opening balances", "The balances that bank accounts had when their books began. Each account has one opening entry. Wallets and floats do not change.", nil),
		ps.Approvals.Form(changes.KindTopUp, "/banks/top-up", "Send to float", "Book money that left a bank account for a float. It is in transit until you book that it arrived.", floats),
		ps.Approvals.Form(changes.KindSettle, "/banks/settle", "Send to bank account", "Book money that left a float for a bank account. It is in transit until you book that it arrived.", floats),
		ps.Approvals.Form(changes.KindEndTransit, "/banks/arrived", "Book the end", "Book where money in transit ended, and what was charged on the way.", nil),
		ps.Approvals.Form(changes.KindSweep, "/banks/sweep", "Sweep fees", "Book earned fees that left a bank account for the company's own use.", banks),
	}
}
