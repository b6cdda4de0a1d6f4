package api

import (
	"maps"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// defaultPage and maxPageSize are the sizes of the pages of lists.
const (
	defaultPage = 15
	maxPageSize = 100
)

// pages writes the links and numbers of a page of a list without filters.
func (c *call) pages(number, size, defaultSize int, total int64, rows int) {
	c.filteredPages(sized(url.Values{}, size, defaultSize), number, size, total, rows)
}

// statusPages writes the links and numbers of a page of a list with a filter of status.
func (c *call) statusPages(status string, number, size, defaultSize int, total int64, rows int) {
	query := url.Values{}
	if status != "" {
		query.Set("status", status)
	}
	c.filteredPages(sized(query, size, defaultSize), number, size, total, rows)
}

// sized adds the size of the pages to a query, unless it is the default.
func sized(query url.Values, size, defaultSize int) url.Values {
	if size != defaultSize {
		query.Set("page_size", strconv.Itoa(size))
	}
	return query
}

// filteredPages writes the links and numbers of a page. The links keep the filters of query.
func (c *call) filteredPages(query url.Values, number, size int, total int64, rows int) {
	last := max(1, (total+int64(size)-1)/int64(size))
	from, to := int64(0), int64(0)
	if rows > 0 {
		from = int64(number-1)*int64(size) + 1
		to = from + int64(rows) - 1
	}
	c.links(query, int64(number), last)
	w := &c.out
	w.Object("meta")
	w.Integer("current_page", int64(number))
	w.Integer("from", from)
	w.Integer("last_page", last)
	w.Integer("per_page", int64(size))
	w.Integer("to", to)
	w.Integer("total", total)
	w.End()
}

// links writes the links from one page to the other pages, with the filters.
func (c *call) links(filters url.Values, at, last int64) {
	query := maps.Clone(filters)
	path := c.route.Path
	for i, name := range c.route.params() {
		path = strings.Replace(path, "{"+name+"}", c.params[i], 1)
	}
	link := func(number int64) string {
		query.Set("page", strconv.FormatInt(number, 10))
		return c.api.PublicURL + prefix + path + "?" + query.Encode()
	}
	w := &c.out
	w.Object("links")
	w.Text("first", link(1))
	w.Text("last", link(last))
	if at > 1 {
		w.Text("prev", link(min(at-1, last)))
	} else {
		w.Null("prev")
	}
	if at < last {
		w.Text("next", link(at+1))
	} else {
		w.Null("next")
	}
	w.End()
}

// maxPage limits the page number so that positions cannot overflow.
const maxPage = math.MaxInt32

// daysOf returns the parameters of a period for links to other pages. Both days may be zero.
func daysOf(from, to time.Time) url.Values {
	query := url.Values{}
	if !from.IsZero() {
		query.Set("from", from.Format(time.DateOnly))
	}
	if !to.IsZero() {
		query.Set("to", to.Format(time.DateOnly))
	}
	return query
}
