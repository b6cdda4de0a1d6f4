package sheet

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// textWriter writes CSV for programs: UTF-8 with its mark, commas, CR LF, every text in quotes, numbers and times bare.
type textWriter struct{ to *bufio.Writer }

func newTextWriter(to io.Writer) *textWriter {
	w := &textWriter{bufio.NewWriter(to)}
	_, _ = w.to.WriteString(markUTF8) // the next row returns the error
	return w
}

func (w *textWriter) row(values []Value) error {
	for i, v := range values {
		if i > 0 {
			_ = w.to.WriteByte(',')
		}
		_, _ = w.to.WriteString(v.plain())
	}
	_, err := w.to.WriteString("\r\n")
	return err
}

func (w *textWriter) close() error { return w.to.Flush() }

// plain writes a value for CSV.
func (v Value) plain() string {
	switch v.kind {
	case valueAmount:
		return cedis(v.number)
	case valueInteger:
		return strconv.FormatInt(v.number, 10)
	case valueTime, valueDay:
		if v.at.IsZero() {
			return ""
		}
		if v.kind == valueDay {
			return v.at.Format(time.DateOnly)
		}
		return v.at.Format(time.RFC3339)
	}
	return `"` + strings.ReplaceAll(inert(visible(v.text)), `"`, `""`) + `"`
}

// cedis writes pesewas as a decimal number.
func cedis(pesewas int64) string {
	sign, size := "", uint64(pesewas)
	if pesewas < 0 {
		sign, size = "-", -size
	}
	return fmt.Sprintf("%s%d.%02d", sign, size/100, size%100)
}

const (
	// formulas begin a formula or a command in some spreadsheet.
	formulas = "=+-@|%\uff1d\uff0b\uff0d\uff20"
	// dividers begin a cell in a program that takes another character than the comma for the divider.
	dividers = ",;|\t\n"
)

// inert puts an apostrophe before anything that a spreadsheet could take for a formula: at the start and after every
// character that could separate cells, also behind spaces and quotes there.
func inert(text string) string {
	var out strings.Builder
	start := true
	for _, r := range text {
		switch {
		case start && strings.ContainsRune(formulas, r):
			out.WriteByte('\'')
			start = false
		case start && (r == ' ' || r == '\u00a0' || r == '"'):
		default:
			start = false
		}
		out.WriteRune(r)
		start = start || strings.ContainsRune(dividers, r)
	}
	return out.String()
}
