package console

import (
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/sheet"
)

// Column is one column of a table of T. A page shows Head and Cell, a file has Name and Value.
type Column[T any] struct {
	Head string // on pages; empty: the column is in files only
	Cell func(T) templ.Component
	page.Display
	Name  string // in files; empty: the column is on pages only
	Value func(T) sheet.Value
}

// How a column is displayed.
var (
	Minor = page.Display{Minor: true}
	Under = page.Display{Under: true}
	Wide  = page.Display{Wide: true}
	Link  = page.Display{Link: true}
	Right = page.Display{Right: true}
)

// Laid returns the column with another display.
func (c Column[T]) Laid(l page.Display) Column[T] {
	l.Right = l.Right || c.Right
	c.Display = l
	return c
}

// OnPage returns the column with its head if shown is true, and otherwise for files only.
func (c Column[T]) OnPage(shown bool) Column[T] {
	if !shown {
		c.Head = ""
	}
	return c
}

// Shown returns a column that only pages have.
func Shown[T any](head string, cell func(T) templ.Component) Column[T] {
	return Column[T]{Head: head, Cell: cell}
}

// Filed returns a column that only files have.
func Filed[T any](name string, value func(T) sheet.Value) Column[T] {
	return Column[T]{Name: name, Value: value}
}

// Text is a column of texts. An empty head or name leaves it out of pages or files.
func Text[T any](head, name string, of func(T) string) Column[T] {
	return Column[T]{Head: head, Name: name, Cell: func(row T) templ.Component { return page.Text(of(row)) }, Value: func(row T) sheet.Value { return sheet.String(of(row)) }}
}

// ID is a column of ids and references.
func ID[T any](head, name string, of func(T) string) Column[T] {
	c := Text(head, name, of)
	c.Cell = func(row T) templ.Component { return page.ID(of(row)) }
	return c
}

// Coded returns a column with codes in files, and words or badges on pages.
func Coded[T any](head, name string, cell func(T) templ.Component, code func(T) string) Column[T] {
	c := Text(head, name, code)
	c.Cell = cell
	return c
}

// Time is a column of times. A page shows the minute.
func Time[T any](head, name string, of func(T) time.Time) Column[T] {
	return Column[T]{Head: head, Name: name, Cell: func(row T) templ.Component { return page.Minute(of(row)) }, Value: func(row T) sheet.Value { return sheet.Time(of(row)) }}
}

// Money is a column of amounts.
func Money[T any](head, name string, of func(T) money.Pesewas) Column[T] {
	return Column[T]{Head: head, Name: name, Display: Right, Cell: func(row T) templ.Component { return page.Money(of(row)) }, Value: func(row T) sheet.Value { return sheet.Amount(int64(of(row))) }}
}

// Count is a column of whole numbers.
func Count[T any](head, name string, of func(T) int64) Column[T] {
	return Column[T]{Head: head, Name: name, Display: Right,
		Cell:  func(row T) templ.Component { return page.Text(page.Count(of(row))) },
		Value: func(row T) sheet.Value { return sheet.Integer(of(row)) }}
}

// Grid returns rows as a table of a page. href returns the page of a row. It is nil if rows have no pages.
func Grid[T any](columns []Column[T], rows []T, href func(T) string) page.Grid {
	var g page.Grid
	for _, c := range columns {
		if c.Head != "" {
			g.Columns = append(g.Columns, page.Column{Head: c.Head, Display: c.Display})
		}
	}
	for _, row := range rows {
		r := page.Row{Cells: make([]templ.Component, 0, len(g.Columns))}
		if href != nil {
			r.Href = href(row)
		}
		for _, c := range columns {
			if c.Head != "" {
				r.Cells = append(r.Cells, c.Cell(row))
			}
		}
		g.Rows = append(g.Rows, r)
	}
	return g
}

// filed returns the columns of a file.
func filed[T any](columns []Column[T]) (list []sheet.Column[T]) {
	for _, c := range columns {
		if c.Name != "" {
			list = append(list, sheet.Column[T]{Head: c.Name, Value: c.Value})
		}
	}
	return list
}

// Keyed cuts a list that was read with one extra row to the length of a page, and adds the links to the previous and
// the next page.
func Keyed[T any](v *Visit, l *page.List, param string, rows []T, id func(T) string) []T {
	if v.Param(param) != "" {
		l.Prev = v.Query(param, "")
	}
	if len(rows) <= PageRows {
		return rows
	}
	l.Next = v.Query(param, id(rows[PageRows-1]))
	return rows[:PageRows]
}
