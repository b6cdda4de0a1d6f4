package api

import (
	"net/url"
	"strconv"

	"github.com/makola/makola/internal/payments/book"
)

func collections(c *call) error { return c.history(book.KindCollection) }

func transfers(c *call) error { return c.history(book.KindPayout) }

// history returns a page of one kind of payments.
func (c *call) history(kind book.Kind) error {
	f, err := c.form()
	if err != nil {
		return err
	}
	from, to := f.days()
	filter := book.Filter{
		Kind:      kind,
		Status:    f.choice("status", false, "success", "submitted", "pending", "failed", "invalid", "declined"),
		Reference: f.line("transaction_id", false, idMax),
		From:      from,
		To:        to,
		Page:      f.number("page", 1, 1, maxPage),
		Size:      f.number("page_size", book.DefaultPageSize, 1, book.MaxPageSize),
	}
	if err := f.err(); err != nil {
		return err
	}
	page, err := c.api.Payments.History(c.ctx, c.caller.Tenant, filter)
	if err != nil {
		return err
	}
	w := &c.out
	w.Object("")
	w.List("data")
	for _, p := range page.Rows {
		w.row(p)
	}
	w.End()
	c.links(filters(filter), int64(page.Page), page.LastPage)
	w.Object("meta")
	w.Integer("current_page", int64(page.Page))
	w.Integer("from", page.From)
	w.Integer("last_page", page.LastPage)
	w.Integer("per_page", int64(page.Size))
	w.Integer("to", page.To)
	w.Integer("total", page.Total)
	w.End()
	w.End()
	return nil
}

// filters returns the query parameters that the links to other pages keep.
func filters(f book.Filter) url.Values {
	query := daysOf(f.From, f.To)
	keep := func(name, value string) {
		if value != "" {
			query.Set(name, value)
		}
	}
	keep("status", f.Status)
	keep("transaction_id", f.Reference)
	if f.Size != book.DefaultPageSize {
		keep("page_size", strconv.Itoa(f.Size))
	}
	return query
}
