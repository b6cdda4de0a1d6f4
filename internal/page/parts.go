package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
)

// Badge is a state as an icon, a text and a colour.
type Badge struct {
	Tone Tone
	Word string
}

// Tone is the meaning of a colour.
type Tone string

// The tones.
const (
	Plain    Tone = ""
	Good     Tone = "good"
	Sent     Tone = "sent"
	Open     Tone = "open"
	Bad      Tone = "bad"
	Declined Tone = "declined"
	Unknown  Tone = "unknown"
)

// icon returns the sign before the text, so that the colour is never the only sign.
func (t Tone) icon() string {
	switch t {
	case Good:
		return "✓"
	case Sent:
		return "↗"
	case Open:
		return "◔"
	case Bad:
		return "✕"
	case Declined:
		return "⊘"
	case Unknown:
		return "?"
	}
	return "–"
}

// List is a table with filters, pages and a download.
type List struct {
	Title   string
	Count   string // count of the rows, such as "1,204 payments"; empty: not known
	Lead    string // what the list shows, as a sentence; empty: the title is enough
	Filters []Field
	Active  int    // number of filters that narrow the list
	Clear   string // the list without filters
	Grid    Grid
	Newer   string // path that returns the number of newer rows; empty: the list does not grow
	Prev    string
	Next    string
	Shown   string // position of these rows
	Further string // link that searches beyond the scanned rows
	Files   Files  // the list as files
	Actions []Link // the user's actions
	Menu    string // title of the menu that holds the actions; empty: each is a button
	Empty   Empty
}

// narrowing returns the form of the list's filters.
func (l List) narrowing() Narrowing {
	return Narrowing{Fields: l.Filters, Submit: "Apply filters", Active: l.Active, Clear: l.Clear}
}

// Narrowing is a form that narrows a page.
type Narrowing struct {
	Fields []Field
	Submit string
	Active int    // number of fields that narrow the page
	Clear  string // address of the page without them
}

// title is the text of the folded form.
func (n Narrowing) title() string {
	if n.Active > 0 {
		return fmt.Sprintf("Filters (%d applied)", n.Active)
	}
	return "Filters"
}

// folds reports whether the fields are too many for the first screen of a phone.
func (n Narrowing) folds() bool { return len(n.Fields) > 2 }

// Files are the addresses of a list as files; empty: there is none.
type Files struct {
	XLSX  string // for people
	CSV   string // for programs
	Books string // path of the file for bookkeeping programs; empty: none
}

// Grid is a table: its columns, and rows with a cell for each of them.
type Grid struct {
	Columns []Column
	Rows    []Row
}

// Column is the head of a column and its display.
type Column struct {
	Head string
	Display
}

// Display is how a column is laid out at each width.
type Display struct {
	Right bool // numbers
	Minor bool // hidden on a phone
	Under bool // on a phone it is shown under the cell with the row's link
	Wide  bool // hidden on screens narrower than a desktop's
	Link  bool // it has the row's link; if no column has it, the first one gets it
}

// class returns the classes of the column's cells.
func (c Display) class() string {
	var classes []string
	if c.Right {
		classes = append(classes, "right")
	}
	if c.Minor || c.Under {
		classes = append(classes, "minor")
	}
	if c.Wide {
		classes = append(classes, "wide")
	}
	return strings.Join(classes, " ")
}

// Row is one row of a table. Href is the page that it leads to; empty for none.
type Row struct {
	Href  string
	Cells []templ.Component
}

// link returns the index of the column whose cells lead to the page of their row.
func (g Grid) link() int {
	return max(0, slices.IndexFunc(g.Columns, func(c Column) bool { return c.Link }))
}

// under returns the cells of a row that a phone shows below its link.
func (g Grid) under(r Row) (cells []templ.Component) {
	for i, c := range g.Columns {
		if c.Under {
			cells = append(cells, r.Cells[i])
		}
	}
	return cells
}

// Empty explains an empty list and gives the next step.
type Empty struct {
	Title, Text string
	Href, Do    string
}

// Fact is a name with a value.
type Fact struct {
	Name  string
	Value templ.Component
}

// Step is an event in a timeline.
type Step struct {
	At   time.Time
	Tone Tone
	What string
	Text string          // details
	More templ.Component // folded content; nil: none
	Fold string          // title of the folded content
}

// Field is a field of a form.
type Field struct {
	Name, Label, Value string
	Hint               string
	Type               string   // type of the input; empty: text
	Options            []Option // options to choose from
	Several            bool     // more than one option may be chosen; Value has them, separated by commas
	Wrong              string   // error about the value
	Max                int      // maximum number of characters; 0: 200
	Required           bool
	Auto               string // autocomplete, such as username; empty: none
}

// Lines is the type of a field for several lines of text.
const Lines = "lines"

// Option is an option of a field.
type Option struct{ Value, Text string }

// Form is a form with a summary of its errors.
type Form struct {
	ID, Action, Submit string
	Danger             bool
	Fields             []Field
	Table              FieldTable // facts above the fields; none without rows
	Wrong              string     // an error that belongs to no field
	Failed             string     // title of the errors; empty: the general one
}

// FieldTable is a table of fields.
type FieldTable struct {
	Label string
	Heads []string // of the rows' heads, of each field, and of the notes
	Hint  string
	Rows  []FieldRow
}

// FieldRow is one row of a table of fields. Its note is a text that cannot be edited.
type FieldRow struct {
	Head   string
	Fields []Field
	Note   string
}

// failed is the title above the errors of a form.
func (f Form) failed() string {
	if f.Failed != "" {
		return f.Failed
	}
	return "Check the form"
}

// faulty returns the fields with errors.
func (f Form) faulty() []Field {
	var all []Field
	for _, row := range f.Table.Rows {
		for _, field := range row.Fields {
			if field.Wrong != "" {
				field.Label = row.Head + ", " + field.Label
				all = append(all, field)
			}
		}
	}
	for _, field := range f.Fields {
		if field.Wrong != "" {
			all = append(all, field)
		}
	}
	return all
}

// sendsFile reports whether a field of the form is a file.
func (f Form) sendsFile() bool {
	return slices.ContainsFunc(f.Fields, func(field Field) bool { return field.Type == "file" })
}

// chosen reports whether an option is chosen.
func (f Field) chosen(o Option) bool {
	if f.Several {
		return slices.Contains(strings.Split(f.Value, ","), o.Value)
	}
	return o.Value == f.Value
}

func (f Field) most() int {
	if f.Max == 0 {
		return 200
	}
	return f.Max
}

func (f Field) auto() string {
	if f.Auto == "" {
		return "off"
	}
	return f.Auto
}

func (f Field) kind() string {
	if f.Type == "" {
		return "text"
	}
	return f.Type
}

// unkeyed returns groups without keyboard shortcuts, for a second copy of the navigation.
func unkeyed(groups []Group) []Group {
	bare := make([]Group, len(groups))
	for i, g := range groups {
		bare[i] = Group{Title: g.Title, Links: slices.Clone(g.Links)}
		for j := range bare[i].Links {
			bare[i].Links[j].Key = ""
		}
	}
	return bare
}
