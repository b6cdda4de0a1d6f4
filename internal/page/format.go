package page

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/usertext"
)

// Cedis writes an amount as people read it: GHS 1,250.00, with a true minus sign.
func Cedis(amount money.Pesewas) string {
	text := amount.String()
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "\u2212", text[1:]
	}
	return sign + "GHS " + money.Grouped(text)
}

// Count writes a whole number as people read it: 12,500.
func Count[N int | int64](n N) string { return money.Grouped(strconv.FormatInt(int64(n), 10)) }

// When writes a time as people read it, in Accra's time, which is UTC.
func When(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2 Jan 2006, 15:04:05")
}

// Times returns a count: once, twice, 3 times.
func Times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return strconv.Itoa(n) + " times"
}

// Masked hides the middle of a phone or account number: 024 •••• 123.
func Masked(number string) string {
	if len(number) < 7 {
		return strings.Repeat("•", len(number))
	}
	return number[:3] + " •••• " + number[len(number)-3:]
}

// Visible replaces the control characters of other people's texts, because they would hide or reverse the text next to
// them.
func Visible(text string) string { return usertext.Visible(text) }

// Indented returns a JSON body with line breaks and indents. Any other text stays as it is.
func Indented(body []byte) string {
	if !json.Valid(body) {
		return string(body)
	}
	var text bytes.Buffer
	if err := json.Indent(&text, body, "", "  "); err != nil {
		return string(body)
	}
	return text.String()
}
