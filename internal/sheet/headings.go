package sheet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Form lists the fields of one kind of file.
type Form struct {
	// Fields are in the order of the columns of a file without headings. The first field with Looks is the key. A
	// file without headings is recognised by the values of the key.
	Fields []Field
}

// Field is one value of a row.
type Field struct {
	Name     string   // name of the field, which is also one of its headings
	Headings []string // further headings; case, spaces and punctuation are ignored
	Required bool     // the file must have a column for it
	// Looks reports whether a text has the form of the field. If several columns fit, the one with the most such
	// cells is chosen. If Looks is nil, the first column that fits is chosen.
	Looks func(text string) bool
}

// Choice is a column that was chosen for a field although another one may have been meant.
type Choice struct {
	Field   string
	Heading string   // or the number of the column, if there are no headings
	Others  []string // other columns that fit
}

// key returns the index of the field by which rows are recognised, or -1.
func (f Form) key() int {
	return slices.IndexFunc(f.Fields, func(field Field) bool { return field.Looks != nil })
}

func (f Form) index(name string) int {
	return slices.IndexFunc(f.Fields, func(field Field) bool { return field.Name == name })
}

// plainHeading normalizes a heading: "Phone No." and "phone_no" become equal.
func plainHeading(text string) string {
	words := strings.FieldsFunc(strings.ToLower(norm.NFKC.String(text)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return strings.Join(words, " ")
}

// columns has the possible columns of each field, the most likely first.
type columns struct {
	heading []Cell  // nil: the file has no headings
	fit     [][]int // possible columns by field
	chosen  []int   // chosen column by field; -1: none
	looks   [][]int // by field: number of cells in each possible column that look like the field
	placed  bool    // a person has chosen the columns
}

// place sets the columns that a person has chosen, as the only possible ones.
func (c *columns) place(form Form, places map[string]int) {
	c.placed = true
	for i, field := range form.Fields {
		c.fit[i] = nil
		if place, is := places[field.Name]; is {
			c.fit[i] = []int{place}
		}
	}
}

// fits returns the columns that may have a field according to their headings, in the order of the field's names.
func (f Field) fits(heading []string) []int {
	var found []int
	for _, name := range append([]string{f.Name}, f.Headings...) {
		for i, text := range heading {
			if text != "" && text == plainHeading(name) && !slices.Contains(found, i) {
				found = append(found, i)
			}
		}
	}
	return found
}

// headed returns the possible columns if the first row has headings. given has the headings that the caller chose for fields. ok is
// false if no column fits the key field.
func (f Form) headed(first []Cell, given map[string]string) (c columns, ok bool, err error) {
	heading := make([]string, len(first))
	for i, cell := range first {
		heading[i] = plainHeading(cell.Text)
	}
	c = columns{heading: first, fit: make([][]int, len(f.Fields))}
	for i, field := range f.Fields {
		c.fit[i] = field.fits(heading)
		if chosen, is := given[field.Name]; is {
			if c.fit[i] = (Field{Name: chosen}).fits(heading); len(c.fit[i]) == 0 {
				return c, false, refuse(fmt.Sprintf("has no heading %q; its headings are %s", chosen, quoted(first)))
			}
		}
	}
	for i, field := range f.Fields {
		if chosen, is := given[field.Name]; is { // a column that was chosen for one field is not possible for others
			for j := range f.Fields {
				if _, also := given[f.Fields[j].Name]; j != i && !also {
					c.fit[j] = slices.DeleteFunc(c.fit[j], func(k int) bool { return heading[k] == plainHeading(chosen) })
				}
			}
		}
	}
	key := f.key()
	return c, len(given) > 0 || key >= 0 && len(c.fit[key]) > 0, nil
}

// unheaded returns the possible columns of a file without headings, by their order. The key may be in any column.
func (f Form) unheaded(first []Cell) (c columns, ok bool) {
	c.fit = make([][]int, len(f.Fields))
	key := f.key()
	for i := range f.Fields {
		c.fit[i] = []int{i} // even if the first row is shorter than others
	}
	if key < 0 {
		return c, true
	}
	for i, cell := range first {
		if f.Fields[key].Looks(cell.Text) {
			ok = true
		}
		if !slices.Contains(c.fit[key], i) {
			c.fit[key] = append(c.fit[key], i)
		}
	}
	return c, ok
}

// count counts the cells of one row that look like a field, in columns between which it must choose.
func (f Form) count(c *columns, row []Cell) {
	if c.looks == nil {
		c.looks = make([][]int, len(f.Fields))
	}
	for i, field := range f.Fields {
		if field.Looks == nil || len(c.fit[i]) < 2 {
			continue
		}
		if c.looks[i] == nil {
			c.looks[i] = make([]int, len(c.fit[i]))
		}
		for j, column := range c.fit[i] {
			if column < len(row) && field.Looks(row[column].Text) {
				c.looks[i][j]++
			}
		}
	}
}

// choose chooses one column for each field. Each column is used once. Fields with Looks come first, then the others
// in their order.
func (f Form) choose(c *columns) ([]Choice, error) {
	c.chosen = make([]int, len(f.Fields))
	order := make([]int, len(f.Fields))
	for i := range order {
		c.chosen[i], order[i] = -1, i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(looksFirst(f.Fields[a]), looksFirst(f.Fields[b]))
	})
	var choices []Choice
	for _, i := range order {
		best := -1
		for j, column := range c.fit[i] {
			if slices.Contains(c.chosen, column) {
				continue
			}
			if best < 0 || c.looks != nil && c.looks[i] != nil && c.looks[i][j] > c.looks[i][best] {
				best = j
			}
		}
		if best >= 0 {
			c.chosen[i] = c.fit[i][best]
		}
		if choice, is := f.choice(c, i, best); is {
			choices = append(choices, choice)
		}
	}
	if c.heading == nil && !c.placed {
		f.moveUp(c)
	}
	for i, field := range f.Fields {
		if field.Required && c.chosen[i] < 0 {
			return nil, f.missing(c, field)
		}
	}
	return choices, nil
}

func looksFirst(f Field) int {
	if f.Looks != nil {
		return 0
	}
	return 1
}

// choice reports whether a person should see which column was chosen. With headings, that is so if other columns fit
// as well. Without headings, it is so if the field is not in its usual place.
func (f Form) choice(c *columns, i, best int) (Choice, bool) {
	if best < 0 || len(c.fit[i]) < 2 || c.heading == nil && best == 0 {
		return Choice{}, false
	}
	made := Choice{Field: f.Fields[i].Name, Heading: c.name(c.fit[i][best])}
	for j, column := range c.fit[i] {
		if j != best {
			made.Others = append(made.Others, c.name(column))
		}
	}
	return made, true
}

// moveUp shifts the other fields, in their order, to the columns that the key left free.
func (f Form) moveUp(c *columns) {
	key := f.key()
	if key < 0 || c.chosen[key] == key {
		return
	}
	next := 0
	for i := range f.Fields {
		if i == key {
			continue
		}
		if next == c.chosen[key] {
			next++
		}
		c.chosen[i] = next
		next++
	}
}

// name returns the heading or number of a column, for people.
func (c *columns) name(column int) string {
	if column < len(c.heading) {
		return c.heading[column].Text
	}
	return fmt.Sprintf("column %d", column+1)
}

// missing returns the error for a missing column.
func (f Form) missing(c *columns, field Field) error {
	if c.heading == nil {
		return refuse("has no column for " + field.Name + ": without a heading the columns are " + f.names())
	}
	return refuse(fmt.Sprintf("has no column for %s; its headings are %s. Rename a heading, or choose the column", field.Name, quoted(c.heading)))
}

func (f Form) names() string {
	names := make([]string, len(f.Fields))
	for i, field := range f.Fields {
		names[i] = field.Name
	}
	return strings.Join(names, ", ")
}

// maxShown is the maximum number of headings in an error, and of characters of each.
const maxShown = 20

func quoted(cells []Cell) string {
	var names []string
	for _, cell := range cells {
		if cell.Text == "" {
			continue
		}
		if len(names) == maxShown {
			names = append(names, "...")
			break
		}
		text := []rune(cell.Text)
		names = append(names, fmt.Sprintf("%q", string(text[:min(len(text), 2*maxShown)])))
	}
	return strings.Join(names, ", ")
}
