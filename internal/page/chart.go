package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"
)

// A Chart shows numbers over time as bars or as a line, with a table of the same numbers.
type Chart struct {
	Title  string
	Line   bool      // one series as a line instead of stacked bars
	Labels []string  // labels of the points: hours or days
	Series []Series  // at most four
	Text   ValueText // writes a value
	Top    int64     // the value at the upper edge; 0: the largest
	Beside *Series   // a line across the bars; nil: none
}

// A Series has a value for each label. A value below zero is a gap.
type Series struct {
	Name   string
	Values []int64
}

// ValueText writes a value as people read it.
type ValueText func(int64) string

// The coordinates of a drawing. It is stretched to the width of the page, so it has no text.
const (
	chartWide = 1000
	chartHigh = 100
	barShare  = 70 // width of a bar, in percent of its column
)

// top returns the value at the upper edge: the largest one, or 1.
func (c Chart) top() int64 {
	top := c.Top
	if top > 0 {
		return top
	}
	for i := range c.Labels {
		var sum int64
		for _, s := range c.Series {
			sum += max(0, s.Values[i])
		}
		top = max(top, sum)
		if c.Beside != nil {
			top = max(top, c.Beside.Values[i])
		}
	}
	return max(1, top)
}

// empty reports whether there is nothing to draw.
func (c Chart) empty() bool {
	for _, s := range c.Series {
		if slices.ContainsFunc(s.Values, func(v int64) bool { return c.Line && v >= 0 || v > 0 }) {
			return false
		}
	}
	return true
}

// A rectangle is a rectangle of a drawing.
type rectangle struct{ x, y, width, height, class, title string }

func coordinate(tenths int64) string { return strconv.FormatFloat(float64(tenths)/10, 'f', 1, 64) }

// bars returns the rectangles of stacked bars.
func (c Chart) bars() (list []rectangle) {
	top, n := c.top(), int64(len(c.Labels))
	for i, label := range c.Labels {
		var below int64
		for k, s := range c.Series {
			v := max(0, s.Values[i])
			if v == 0 {
				continue
			}
			from, to := chartHigh*10*below/top, chartHigh*10*(below+v)/top
			below += v
			place := chartWide * 10 / n
			list = append(list, rectangle{
				x: coordinate(place*int64(i) + place*(100-barShare)/200), width: coordinate(place * barShare / 100),
				y: coordinate(chartHigh*10 - to), height: coordinate(max(4, to-from)), class: fmt.Sprintf("s%d", k), title: label + ", " + s.Name + ": " + c.Text(v),
			})
		}
	}
	return list
}

// paths returns the parts of a line between its gaps, each as the points of a polyline.
func (c Chart) paths(s Series) (parts []string) {
	var points []string
	top, n := c.top(), int64(len(c.Labels))
	end := func() {
		if len(points) == 1 { // a single point is drawn as a short dash
			x, y, _ := strings.Cut(points[0], ",")
			at, _ := strconv.ParseFloat(x, 64) // the text was written by coordinate
			points = append(points, strconv.FormatFloat(at+4, 'f', 1, 64)+","+y)
		}
		if len(points) > 0 {
			parts = append(parts, strings.Join(points, " "))
		}
		points = nil
	}
	for i, v := range s.Values {
		if v < 0 {
			end()
			continue
		}
		points = append(points, coordinate((2*int64(i)+1)*chartWide*10/(2*n))+","+coordinate(chartHigh*10-chartHigh*10*min(v, top)/top))
	}
	end()
	return parts
}

// ends returns the labels under the drawing: the first, the middle and the last.
func (c Chart) ends() []string {
	n := len(c.Labels)
	if n < 3 {
		return c.Labels
	}
	return []string{c.Labels[0], c.Labels[n/2], c.Labels[n-1]}
}

// all returns the series with the line across the bars.
func (c Chart) all() []Series {
	if c.Beside == nil {
		return c.Series
	}
	return append(c.Series[:len(c.Series):len(c.Series)], *c.Beside)
}

// grid returns the table behind the chart, the newest first.
func (c Chart) grid() (g Grid) {
	g.Columns = []Column{{Head: "Time"}}
	for _, s := range c.all() {
		g.Columns = append(g.Columns, Column{Head: s.Name, Display: Display{Right: true}})
	}
	for i := len(c.Labels) - 1; i >= 0; i-- {
		r := Row{Cells: []templ.Component{Text(c.Labels[i])}}
		for _, s := range c.all() {
			text := "–"
			if s.Values[i] >= 0 {
				text = c.Text(s.Values[i])
			}
			r.Cells = append(r.Cells, Text(text))
		}
		g.Rows = append(g.Rows, r)
	}
	return g
}

// said describes the chart for screen readers.
func (c Chart) said() string {
	return fmt.Sprintf("%s, %s to %s. The numbers are in the table below.", c.Title, c.Labels[0], c.Labels[len(c.Labels)-1])
}

// Tenths writes a share in tenths of a percent: 98.5%.
func Tenths(tenths int64) string {
	if tenths%10 == 0 {
		return strconv.FormatInt(tenths/10, 10) + "%"
	}
	return fmt.Sprintf("%d.%d%%", tenths/10, tenths%10)
}
