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
	mode, day := console.Input{Name: "mode", Max: 4}, console.Input{Name: "day", Max: 10}
	period := []console.Input{mode, {Name: "from", Max: 10}, {Name: "to", Max: 10}}
	routes = append(routes,
		console.Route{Method: http.MethodGet, Path: "/ops/funds", Permission: roles.ReadTreasury, Slow: true, Inputs: []console.Input{mode, day}, Handle: ps.funds},
		console.Route{Method: http.MethodGet, Path: "/ops/funds.csv", Permission: roles.ReadTreasury, Also: roles.ExportPayments, Inputs: []console.Input{mode, day}, File: true, Handle: ps.fundsFile},
		console.Route{Method: http.MethodGet, Path: "/ops/journal", Permission: roles.ReadTreasury, Inputs: append([]console.Input{{Name: "account", Max: 120}, {Name: "after", Max: maxCursor}}, period...), Handle: ps.journal},
		console.Route{Method: http.MethodGet, Path: "/ops/journal.csv", Permission: roles.ReadTreasury, Also: roles.ExportPayments, Inputs: period, File: true, Handle: ps.journalFile},
		console.Route{Method: http.MethodGet, Path: "/ops/journal/codes", Permission: roles.ReadTreasury, Slow: true, Inputs: period, Handle: ps.codes},
		console.Route{Method: http.MethodGet, Path: "/ops/days", Permission: roles.ReadTreasury, Inputs: []console.Input{mode}, Handle: ps.days},
		console.Route{Method: http.MethodGet, Path: "/ops/days/day", Permission: roles.ReadTreasury, Slow: true, Inputs: []console.Input{mode, day}, Handle: ps.day},
		console.Route{Method: http.MethodGet, Path: "/ops/days/month", Permission: roles.ReadTreasury, Slow: true, Inputs: []console.Input{mode, day}, Handle: ps.month})
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
		ps.Approvals.Form(changes.KindAddBank, "/banks/add", "Add bank account", "Add a bank account of the company. After that, every deposit to a wallet of the same mode must name a bank account and a slip.", nil),
		ps.Approvals.Form(changes.KindCloseBank, "/banks/close", "Close bank account", "Only an account without a balance and without money in transit can be closed.", approvals.Choices{"name": ps.bankOptions}),
		ps.Approvals.Form(changes.KindOpenBanks, "/banks/open", "Book opening balances", "Opening balances of bank accounts. Each account has one opening entry. Wallets and floats do not change.", nil),
		ps.Approvals.Form(changes.KindTopUp, "/banks/top-up", "Send to float", "Book money that left a bank account for a float. It is in transit until you book that it arrived.", floats),
		ps.Approvals.Form(changes.KindSettle, "/banks/settle", "Send to bank account", "Book money that left a float for a bank account. It is in transit until you book that it arrived.", floats),
		ps.Approvals.Form(changes.KindEndTransit, "/banks/arrived", "Book the end", "Book the end of money in transit, and the fee that was charged on the way.", approvals.Choices{"transfer": ps.transferOptions}),
		ps.Approvals.Form(changes.KindDayStatement, "/days/statement", "Store balances", "Enter the closing balances of the statements of a day, in Accra's time.", nil),
		ps.Approvals.Form(changes.KindDayException, "/days/exception", "Add exception", "An exception explains a part of the difference between a statement and our books.", nil),
		ps.Approvals.Form(changes.KindCloseDay, "/days/close", "Close day", "You and the approver sign the figures of the day as they are now. Differences without an exception stay on record as unexplained.", nil),
		ps.Approvals.Form(changes.KindReopenDay, "/days/reopen", "Reopen day", "Only the last closed day can be reopened. The page of the day shows the reason.", nil),
		ps.Approvals.Form(changes.KindAccountCode, "/journal/code", "Set code", "The journal writes this code for the account.", nil),
		ps.Approvals.Form(changes.KindSweep, "/banks/sweep", "Sweep fees", "Book earned fees that left a bank account for the company's own use.", banks),
	}
}
