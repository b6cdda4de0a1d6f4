package api

import (
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/statement"
)

// statementRows is the maximum number of rows on a page of a statement.
const statementRows = 1000

// balances are the values of the field balance.
const (
	balanceWallet = "wallet"
	balanceSMS    = "sms"
)

// statementPage returns a page of the movements of a balance in a period, and the balances before and after the
// period.
func statementPage(c *call) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	from, to := f.days()
	which := f.choice("balance", false, balanceWallet, balanceSMS)
	number, size := f.number("page", 1, 1, maxPage), f.number("page_size", maxPageSize, 1, statementRows)
	if err := f.err(); err != nil {
		return err
	}
	end := to
	if !to.IsZero() {
		end = to.AddDate(0, 0, 1)
	}
	s, err := c.api.Statements.Open(c.ctx, c.tenant, which == balanceSMS, from, end)
	if err != nil {
		return err
	}
	entries, err := c.api.Statements.Page(c.ctx, s, int64(number-1)*int64(size), size)
	if err != nil {
		return err
	}
	w := c.success("Statement fetched successfully")
	c.writeStatement(w, s, entries)
	query := daysOf(from, to)
	if which != "" {
		query.Set("balance", which)
	}
	c.filteredPages(sized(query, size, maxPageSize), number, size, s.Total(), len(entries))
	w.End()
	return nil
}

func (c *call) writeStatement(w *writer, s statement.Statement, entries []statement.Entry) {
	amount := func(name string, n int64) { w.Cedis(name, money.Pesewas(n)) }
	unit := currency
	if s.Asset.Credits() {
		amount, unit = w.Integer, "SMS"
	}
	w.Object("data")
	w.Text("currency", unit)
	amount("opening_balance", s.Opening)
	amount("closing_balance", s.Closing)
	w.List("movements")
	for _, e := range entries {
		w.Object("")
		w.Integer("number", e.Number)
		w.Time("created_at", e.At)
		w.Text("type", string(e.Type))
		w.Text("channel", e.Channel)
		w.Text("reference", e.Reference)
		w.Text("account_number", e.Account)
		w.Text("account_name", e.Name)
		amount("amount", e.Change)
		amount("balance", e.Balance)
		w.End()
	}
	w.End()
	w.End()
}
