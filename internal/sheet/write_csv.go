package sheet

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// textWriter writes CSV for programs: UTF-8 with a byte order mark, commas, CR LF. All texts are quoted; numbers and
// times are not.
type textWriter struct{ to *bufio.Writer }

func newTextWriter(to io.Writer) *textWriter {
	w := &textWriter{bufio.NewWriter(to)}
	_, _ = w.to.WriteString(markUTF8) // the next row returns an error
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

// plain formats a value for CSV.
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

// cedis formats pesewas as a decimal number of cedis.
func cedis(pesewas int64) string {
	sign, size := "", uint64(pesewas)
	if pesewas < 0 {
		sign, size = "-", -size
	}
	return fmt.Sprintf("%s%d.%02d", sign, size/100, size%100)
}

const (
	// formulas has the characters that begin a formula or a command in some spreadsheet.
	formulas = "=+-@|%\uff1d\uff0b\uff0d\uff20"
	// dividers has the characters that begin a new cell in a program that splits at another character than the comma.
	dividers = ",;|\t\n"
)

// inert puts an apostrophe before anything that a spreadsheet could treat as a formula. It checks the start of the
// text and the text after each divider, ignoring spaces and quotes.
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
