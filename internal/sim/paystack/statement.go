package paystack

import (
	"fmt"
	"strconv"

	"github.com/makola/makola/internal/sim"
)

// statement renders the rows of the balance ledger as a file, with the members of GET /balance/ledger as headings. Amounts are pesewas.
func statement(lines []sim.Line) [][]string {
	rows := [][]string{{"id", "createdAt", "reason", "model_responsible", "model_row", "difference", "currency", "balance"}}
	for _, l := range lines {
		id, model, row := 149_000_000+10*l.Entry.Number+int64(l.Copy), "Transfer", ""
		switch e := l.Entry; {
		case e.Number == 0:
			id, model = 148_000_000+l.Number, "Adjustment"
		case e.Kind == sim.Collection:
			model, row = "Transaction", fmt.Sprint(transactionID(e))
		case isRefund(e):
			model, row = "Refund", fmt.Sprint(refundID(e))
		default:
			row = fmt.Sprint(transferID(e))
		}
		rows = append(rows, []string{strconv.FormatInt(id, 10), stamp(l.At), l.Entry.Text, model, row, strconv.FormatInt(int64(l.Amount-l.Fee), 10), currency, strconv.FormatInt(int64(l.Balance), 10)})
	}
	return rows
}
