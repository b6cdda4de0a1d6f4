package statement

import (
	"github.com/makola/makola/internal/sheet"
)

// Columns returns the columns of a statement's file.
func (s Statement) Columns() []sheet.Column[Entry] {
	amount := sheet.Amount
	if s.Asset.Credits() {
		amount = sheet.Integer
	}
	side := func(n int64) sheet.Value {
		if n <= 0 {
			return sheet.String("")
		}
		return amount(n)
	}
	return []sheet.Column[Entry]{
		{Head: "Date", Value: func(e Entry) sheet.Value { return sheet.Time(e.At) }},
		{Head: "Type", Value: func(e Entry) sheet.Value { return sheet.String(e.Type.Title()) }},
		{Head: "Channel", Value: func(e Entry) sheet.Value { return sheet.String(e.Channel) }},
		{Head: "Reference", Value: func(e Entry) sheet.Value { return sheet.String(e.Reference) }},
		{Head: "Account", Value: func(e Entry) sheet.Value { return sheet.String(e.Account) }},
		{Head: "Name", Value: func(e Entry) sheet.Value { return sheet.String(e.Name) }},
		{Head: "In", Value: func(e Entry) sheet.Value { return side(e.Change) }},
		{Head: "Out", Value: func(e Entry) sheet.Value { return side(-e.Change) }},
		{Head: "Balance", Value: func(e Entry) sheet.Value { return amount(e.Balance) }},
		{Head: "Id", Value: func(e Entry) sheet.Value { return sheet.String(e.Subject) }},
	}
}
