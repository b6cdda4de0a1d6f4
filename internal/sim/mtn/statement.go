package mtn

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/sim"
)

// heading is that of the portal's file: 28 columns, and Currency six times.
var heading = strings.Split("Id,External Transaction Id,Date,Status,Type,Provider Category,Information,Note/Message,From,From Name,From Handler Name,To,To Name,To Handler Name,"+
	"Initiated By,On Behalf Of,Amount,Currency,Fee,Currency,Discount,Currency,Promotion,Currency,Coupon,Currency,Balance,Currency", ",")

const (
	ourFRI   = "FRI:51a0/ID" // the account of the business
	ourName  = "MAKOLA TEST"
	stranger = "233249999999"
)

// lineTypes are MTN's words for lines without an order.
var lineTypes = map[sim.LineType]string{sim.LineDeposit: "Deposit", sim.LineForeign: "Transfer", sim.LineCharge: "Debit", sim.LineReversal: "Reversal"}

// statement renders the portal's file. Amounts and fees are signed, and the date begins with the year.
func statement(lines []sim.Line) [][]string {
	rows := [][]string{heading}
	for _, l := range lines {
		rows = append(rows, statementRow(l))
	}
	return rows
}

func statementRow(l sim.Line) []string {
	id, external, kind, note := lineID(l), "", lineTypes[l.Type], ""
	other, name := "", ""
	switch {
	case l.Entry.Number > 0:
		external, note = externalID(l.Entry), l.Entry.Text
		other, name = fri(l.Entry.Party), fullName(l.Entry.Party)
		if kind == "" && l.Entry.Kind == sim.Collection {
			kind = "Payment"
		} else if kind == "" {
			kind = "Transfer"
		}
	case l.Type == sim.LineForeign:
		other, name = fri(stranger), fullName(stranger)
	case l.Type == sim.LineCharge:
		other, name, note = "FRI:1/ID", "MTN", "Account fee"
	default:
		other, name, note = "FRI:2/ID", "BANK", "Float deposit"
	}
	from, fromName, to, toName := other, name, ourFRI, ourName
	if l.Amount < 0 {
		from, fromName, to, toName = to, toName, from, fromName
	}
	at := l.At.UTC().Format(time.DateTime)
	return []string{id, external, at, "Successful", kind, "", "", note, from, fromName, "", to, toName, "", "", "",
		l.Amount.String(), ghanaCurrency, l.Fee.String(), ghanaCurrency, "", ghanaCurrency, "", ghanaCurrency, "", ghanaCurrency, l.Balance.String(), ghanaCurrency}
}

// externalID returns the externalId of a request, or the reference of a movement that has none.
func externalID(e sim.Entry) string {
	var b struct {
		External string `json:"externalId"`
	}
	if json.Unmarshal([]byte("{"+e.Wire+"}"), &b) != nil {
		return e.Reference
	}
	return cmp.Or(b.External, e.Reference)
}

// lineID returns the financial transaction id of a line.
func lineID(l sim.Line) string {
	switch {
	case l.Entry.Number == 0:
		return strconv.FormatInt(7_000_000_000+l.Number, 10)
	case l.Copy > 0:
		return strconv.Itoa(4+l.Copy) + transactionID(l.Entry)[1:]
	}
	return transactionID(l.Entry)
}

func fri(party string) string { return fmt.Sprintf("FRI:%s/MSISDN", party) }

func fullName(party string) string {
	given, family, _ := sim.Name(party)
	return strings.TrimSpace(given + " " + family)
}
