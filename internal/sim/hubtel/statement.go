package hubtel

import (
	"fmt"
	"time"

	"github.com/makola/makola/internal/sim"
)

// statement renders the file of a statement. We have seen no file from Hubtel, so the headings are names of its interface, as in the
// profile of docs/operations/reconcile.md.
func statement(lines []sim.Line) [][]string {
	rows := [][]string{{"Date", "Transaction ID", "Client Reference", "Status", "Transaction Type", "Customer Number", "Amount", "Currency", "Charges", "Balance", "Description"}}
	for _, l := range lines {
		id, kind, text := lineID(l), "Commission Service", l.Entry.Text
		switch {
		case l.Type == sim.LineReversal:
			kind = "Reversal"
		case l.Type == sim.LineCharge:
			kind, text = "Charge", "Account fee"
		case l.Type == sim.LineDeposit:
			kind, text = "Deposit", "Transfer from the bank"
		case l.Type == sim.LineForeign || l.Entry.Kind == sim.Collection:
			kind = "Receive Money"
		case l.Entry.Kind == sim.Payout:
			kind = "Send Money"
		}
		rows = append(rows, []string{l.At.UTC().Format(time.DateTime), id, l.Entry.Reference, "Success", kind, l.Entry.Party, l.Amount.String(), "GHS", l.Fee.String(), l.Balance.String(), text})
	}
	return rows
}

// lineID returns Hubtel's id of a line.
func lineID(l sim.Line) string {
	switch {
	case l.Entry.Number == 0:
		return fmt.Sprintf("51b0%028x", l.Number)
	case l.Copy > 0:
		return fmt.Sprintf("51a%d%028x", l.Copy, l.Entry.Number)
	}
	return orderID(l.Entry)
}
