package page

import (
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/money"
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

// When writes a time as people read it, in Accra's time, which is UTC.
func When(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format("2 Jan 2006, 15:04:05")
}

// Times says how often: once, twice, 3 times.
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

// Visible shows the characters of other people's texts that would hide or turn around what stands beside them.
func Visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
			return '\ufffd'
		case r < ' ' && r != '\n' && r != '\t', r == 0x7f:
			return '\ufffd'
		}
		return r
	}, text)
}
