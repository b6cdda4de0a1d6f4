package funds

import (
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

// take is the flag for a movement in the other direction.
var take = map[string]string{"take": "way=out"}

// Aliases has the commands that request a change of one kind, by command name.
var Aliases = map[string]frame.Alias{
	"wallet fund":     {Kind: changes.KindFund, Sealed: true, Money: true, Show: showWallet},
	"wallet adjust":   {Kind: changes.KindAdjust, Sealed: true, Money: true, Fields: take, Show: showWallet},
	"wallet transfer": {Kind: changes.KindTransfer, Sealed: true, Money: true, Show: showTransfer},
	"wallet recover":  {Kind: changes.KindRecover, Sealed: true, Show: showWallet},
	"float add":       {Kind: changes.KindAddFloat, Sealed: true, Money: true, Fields: take, Show: showFloats},
	"credits sell":    {Kind: changes.KindSellCredits, Money: true, Show: showWallet},
	"credits refund":  {Kind: changes.KindRefundCredits, Money: true, Show: showWallet},

	"bank add":     {Kind: changes.KindAddBank, Sealed: true, Show: showBanks},
	"bank open":    {Kind: changes.KindOpenBanks, Sealed: true, Show: showBanks},
	"bank close":   {Kind: changes.KindCloseBank, Sealed: true, Show: showBanks},
	"bank top-up":  {Kind: changes.KindTopUp, Sealed: true, Show: showOnTheWay},
	"bank settle":  {Kind: changes.KindSettle, Sealed: true, Show: showOnTheWay},
	"bank arrived": {Kind: changes.KindEndTransit, Sealed: true, Fields: map[string]string{"returned": "outcome=" + string(treasury.Returned)}, Fixed: changes.Values{"outcome": string(treasury.Arrived)}, Show: showBanks},
	"bank sweep":   {Kind: changes.KindSweep, Sealed: true, Show: showBanks},

	"day statement": {Kind: changes.KindDayStatement, Sealed: true, Show: showDay},
	"day exception": {Kind: changes.KindDayException, Sealed: true, Fields: map[string]string{"less": "way=less"}, Fixed: changes.Values{"way": "more"}, Show: showDay},
	"day close":     {Kind: changes.KindCloseDay, Sealed: true, Show: showDay},
	"day reopen":    {Kind: changes.KindReopenDay, Sealed: true, Show: showDay},

	"payouts resolve": {Kind: changes.KindResolve, Sealed: true, Fields: map[string]string{"id": "payment", "paid": "ending=paid", "unpaid": "ending=unpaid"}, Show: showEnded},
	"payouts refund":  {Kind: changes.KindOperatorRefund, Sealed: true, Confirm: true, Await: awaitRefund, Show: showRefund},

	"fees set":            {Kind: changes.KindFees, Fields: map[string]string{"rule": "rules", "free": "rules=" + tenant.PlanText(nil)}, Prepare: preparePlan, Show: showPlan},
	"providers pause":     {Kind: changes.KindPause, Show: showProvider},
	"providers resume":    {Kind: changes.KindResume, Show: showProvider},
	"providers route":     {Kind: changes.KindRoute, Fields: map[string]string{"drop": "remove=yes"}, Prepare: prepareRoute, Show: showRoutes},
	"catalogue set":       {Kind: changes.KindCatalogue, Fields: map[string]string{"kind": "catalogue"}, Show: showEntry},
	"catalogue bank-code": {Kind: changes.KindBankCode, Show: showBankCodes},
	"catalogue prefix":    {Kind: changes.KindPrefix, Show: showPrefixes},
}

func showWallet(q *frame.Ask) error {
	return printWallet(q.E, q.O, q.Output, q.Values[changes.FieldTenant])
}

// showTransfer prints the payment of a transfer. A person of a token sees the wallet that paid.
func showTransfer(q *frame.Ask) error {
	if q.O.By.Machine != "" {
		return showPayment(q.E.Ctx, q.O, q.E, q.Output, q.Changes.Payments, q.Request.Made)
	}
	return printWallet(q.E, q.O, q.Output, q.Values["from"])
}

func showFloats(q *frame.Ask) error { return printFloats(q.E, q.O, q.Output) }

func showBanks(q *frame.Ask) error { return printBanks(q.E, q.O, q.Output) }

func showOnTheWay(q *frame.Ask) error { return printTransfers(q.E, q.O, q.Output, true) }

func showDay(q *frame.Ask) error {
	day := dayFlags{Day: q.Values["day"], Mode: q.Values["mode"]}
	day.Output = q.Output
	return day.print(q.E, q.O)
}
