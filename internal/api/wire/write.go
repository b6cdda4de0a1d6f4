package wire

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/makola/makola/internal/money"
)

// Writer appends one JSON value. Answers are written member by member, in the order and with the types that the
// interface promises. An amount is a number in one endpoint and a string in another. With struct tags this
// difference would not be visible. With an empty name, a method writes an item of a list.
type Writer struct {
	buf   []byte
	stack []byte // the closing brackets of the open objects and lists
}

// Reset clears the writer and keeps its memory.
func (w *Writer) Reset() { w.buf, w.stack = w.buf[:0], w.stack[:0] }

// Bytes returns the JSON written so far. The slice is valid until the next call of Reset.
func (w *Writer) Bytes() []byte { return w.buf }

// next writes a comma if one is needed, and then the name.
func (w *Writer) next(name string) {
	if n := len(w.buf); n > 0 && w.buf[n-1] != '{' && w.buf[n-1] != '[' {
		w.buf = append(w.buf, ',')
	}
	if name != "" {
		w.buf = append(w.buf, '"')
		w.buf = append(w.buf, name...)
		w.buf = append(w.buf, '"', ':')
	}
}

// Object begins an object. End closes it.
func (w *Writer) Object(name string) { w.begin(name, '{', '}') }

// List begins a list. End closes it.
func (w *Writer) List(name string) { w.begin(name, '[', ']') }

func (w *Writer) begin(name string, open, shut byte) {
	w.next(name)
	w.buf = append(w.buf, open)
	w.stack = append(w.stack, shut)
}

// End closes the innermost open object or list.
func (w *Writer) End() {
	last := len(w.stack) - 1
	w.buf = append(w.buf, w.stack[last])
	w.stack = w.stack[:last]
}

// Text writes a string.
func (w *Writer) Text(name, value string) {
	w.next(name)
	w.buf = appendText(w.buf, value)
}

// Texts writes a list of strings. Its name may come from a client, so it is escaped.
func (w *Writer) Texts(name string, values []string) {
	w.next("")
	w.buf = append(appendText(w.buf, name), ':', '[')
	for i, value := range values {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.buf = appendText(w.buf, value)
	}
	w.buf = append(w.buf, ']')
}

// Optional writes a string if it is not empty.
func (w *Writer) Optional(name, value string) {
	if value != "" {
		w.Text(name, value)
	}
}

// Null writes null.
func (w *Writer) Null(name string) {
	w.next(name)
	w.buf = append(w.buf, "null"...)
}

// Flag writes true or false.
func (w *Writer) Flag(name string, value bool) {
	w.next(name)
	w.buf = strconv.AppendBool(w.buf, value)
}

// Integer writes a whole number.
func (w *Writer) Integer(name string, value int64) {
	w.next(name)
	w.buf = strconv.AppendInt(w.buf, value, 10)
}

// Cedis writes an amount as a JSON number: 10, 10.5, 10.55.
func (w *Writer) Cedis(name string, amount money.Pesewas) {
	w.next(name)
	text := amount.String()
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
		if text[len(text)-1] == '.' {
			text = text[:len(text)-1]
			break
		}
	}
	w.buf = append(w.buf, text...)
}

// Amount writes an amount as a string with two decimals.
func (w *Writer) Amount(name string, amount money.Pesewas) {
	w.next(name)
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, amount.String()...)
	w.buf = append(w.buf, '"')
}

// timestamp is ISO 8601 in UTC with a numeric offset.
const timestamp = "2006-01-02T15:04:05-07:00"

// Time writes a time, in UTC.
func (w *Writer) Time(name string, at time.Time) {
	w.next(name)
	w.buf = append(w.buf, '"')
	w.buf = at.UTC().AppendFormat(w.buf, timestamp)
	w.buf = append(w.buf, '"')
}

// JSON writes a value that is JSON text already.
func (w *Writer) JSON(name string, value []byte) {
	w.next(name)
	w.buf = append(w.buf, value...)
}

const hexDigits = "0123456789abcdef"

// appendText appends a string in quotes. Invalid UTF-8 becomes U+FFFD, so that every response is readable, whatever
// the database contains.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		b = append(b, s[start:i]...)
		switch {
		case c >= utf8.RuneSelf:
			b = append(b, `\ufffd`...)
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i += size
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// Moment writes a time, or null if the time is zero.
func (w *Writer) Moment(name string, at time.Time) {
	if at.IsZero() {
		w.Null(name)
		return
	}
	w.Time(name, at)
}
