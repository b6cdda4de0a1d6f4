package pawapay

import (
	"time"

	"github.com/makola/makola/internal/sim"
)

// statement renders the columns of a statement that pawaPay documents. The signs of amounts and the words of types are inventions. The fee of
// a payment is a row of its own.
func statement(lines []sim.Line) [][]string {
	rows := [][]string{{"Creation Date (UTC)", "MSISDN", "Transaction ID", "Amount", "Currency", "Country", "MNO", "Type"}}
	for _, l := range lines {
		kind := map[sim.LineType]string{sim.LineDeposit: "Top up", sim.LineForeign: "Deposit", sim.LineCharge: "Adjustment", sim.LineReversal: "Compensation"}[l.Type]
		switch {
		case kind != "":
		case l.Entry.Kind == sim.Collection:
			kind = "Deposit"
		case l.Entry.Refunds != "":
			kind = "Refund"
		default:
			kind = "Payout"
		}
		row := func(amount, kind string) []string {
			return []string{l.At.UTC().Format(time.DateTime), l.Entry.Party, l.Entry.Reference, amount, currency, country, wired(l.Entry).provider, kind}
		}
		if rows = append(rows, row(amountText(l.Amount), kind)); l.Fee != 0 {
			rows = append(rows, row(amountText(-l.Fee), "Fee"))
		}
	}
	return rows
}
