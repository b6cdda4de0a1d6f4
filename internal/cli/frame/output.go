package frame

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/usertext"
)

// Column is one column of the output. One list of columns makes the table, the JSON and the CSV. A value is a string,
// a bool, an int64, a time.Time (zero: none), an amount, a []string or JSON.
type Column[T any] struct {
	Name  string
	Value func(T) any
}

// wideTable is the form of a table with all its columns.
const wideTable = "wide"

// Narrow limits a table to the columns with these names, in the given order. The other formats keep all
// columns.
func Narrow[T any](format string, columns []Column[T], names ...string) []Column[T] {
	if format != "table" {
		return columns
	}
	few := make([]Column[T], 0, len(names))
	for _, name := range names {
		at := slices.IndexFunc(columns, func(c Column[T]) bool { return c.Name == name })
		few = append(few, columns[at])
	}
	return few
}

// PrintAll prints a list as a table with a line for each item, as a JSON array, or as CSV.
func PrintAll[T any](w io.Writer, format string, columns []Column[T], rows []T) error {
	switch format {
	case "json":
		var b bytes.Buffer
		b.WriteString("[")
		for i, row := range rows {
			if i > 0 {
				b.WriteString(",")
			}
			if err := object(&b, columns, row); err != nil {
				return err
			}
		}
		b.WriteString("]")
		return Indented(w, b.Bytes())
	case "csv":
		return asCSV(w, columns, rows)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, c := range columns {
		if i > 0 {
			fmt.Fprint(t, "\t")
		}
		fmt.Fprint(t, strings.ToUpper(strings.ReplaceAll(c.Name, "_", " ")))
	}
	fmt.Fprintln(t)
	for _, row := range rows {
		for i, c := range columns {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, Cell(c.Value(row)))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// PrintOne prints one item with a line for each member, as a JSON object, or as CSV.
func PrintOne[T any](w io.Writer, format string, columns []Column[T], row T) error {
	switch format {
	case "json":
		var b bytes.Buffer
		if err := object(&b, columns, row); err != nil {
			return err
		}
		return Indented(w, b.Bytes())
	case "csv":
		return asCSV(w, columns, []T{row})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range columns {
		name, value := strings.ReplaceAll(c.Name, "_", " "), c.Value(row)
		lines, many := value.([]string)
		if !many || len(lines) < 2 {
			lines = []string{text(value)}
		}
		for _, line := range lines {
			fmt.Fprintf(t, "%s\t%s\n", name, Cell(line))
			name = ""
		}
	}
	return t.Flush()
}

func asCSV[T any](w io.Writer, columns []Column[T], rows []T) error {
	made := make([]sheet.Column[T], len(columns))
	for i, c := range columns {
		made[i] = sheet.Column[T]{Head: c.Name, Value: func(row T) sheet.Value { return sheetValue(c.Value(row)) }}
	}
	out, err := sheet.NewWriter(w, sheet.CSV, made)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := out.Write(row); err != nil {
			return err
		}
	}
	return out.Close()
}

// sheetValue returns a value with its type. Customers' texts stay texts, so that a spreadsheet does not run them as
// formulas.
func sheetValue(value any) sheet.Value {
	switch v := value.(type) {
	case int64:
		return sheet.Integer(v)
	case money.Pesewas:
		return sheet.Amount(int64(v))
	case time.Time:
		return sheet.Time(v)
	}
	return sheet.String(text(value))
}

// object formats a row as JSON with its members in the order of the columns.
func object[T any](b *bytes.Buffer, columns []Column[T], row T) error {
	b.WriteString("{")
	for i, c := range columns {
		if i > 0 {
			b.WriteString(",")
		}
		value := c.Value(row)
		switch v := value.(type) {
		case time.Time:
			value = nil
			if !v.IsZero() {
				value = text(v)
			}
		case money.Pesewas:
			value = v.String()
		case []string:
			if v == nil {
				value = []string{}
			}
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%q:%s", c.Name, encoded)
	}
	b.WriteString("}")
	return nil
}

// Indented writes JSON with indentation.
func Indented(w io.Writer, text []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes())
	return err
}

// text formats a value for CSV.
func text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return map[bool]string{true: "yes", false: "no"}[v]
	case int64:
		return strconv.FormatInt(v, 10)
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return v.UTC().Format(time.RFC3339)
	case []string:
		return strings.Join(v, " ")
	case json.RawMessage:
		return string(v)
	}
	return fmt.Sprint(value)
}

// Cell formats a value for a terminal. The result is never empty and contains no character that a terminal would act
// on.
func Cell(value any) string {
	s := strings.Map(func(r rune) rune {
		if usertext.IsControl(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, usertext.Visible(text(value)))
	if s == "" {
		return "-"
	}
	return s
}
