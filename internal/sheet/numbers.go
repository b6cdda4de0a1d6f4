package sheet

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// mostDigits is the number of digits that a spreadsheet keeps.
const mostDigits = 15

const (
	whyDigits   = "has a number of 16 digits or more, but a spreadsheet keeps only 15: format the column as text and type the number again"
	whyExponent = "has a number such as 2.4E+11, whose digits are lost: format the column as text and type it again"
)

var numberForm = regexp.MustCompile(`^([+-]?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,3}))?$`)

// number converts a stored number to decimal digits. A number with an exponent is exact only if it has enough digits.
// Digits of a fraction beyond 15 are dropped, because they are rounding errors of binary numbers (0.1 + 0.2). A whole
// number of 16 digits or more has lost some of the typed digits.
func number(stored string) Cell {
	match := numberForm.FindStringSubmatch(stored)
	if match == nil {
		return Cell{stored, Number, "has a damaged number"}
	}
	sign, whole, fraction := match[1], match[2], match[3]
	if exponent, _ := strconv.Atoi(match[4]); exponent > 0 {
		if exponent > len(fraction) {
			return Cell{stored, Number, whyExponent}
		}
		whole, fraction = whole+fraction[:exponent], fraction[exponent:]
	} else if exponent < 0 {
		if exponent < -mostDigits {
			return Cell{stored, Number, whyExponent}
		}
		whole = strings.Repeat("0", -exponent) + whole
		cut := len(whole) + exponent
		whole, fraction = whole[:cut], whole[cut:]+fraction
	}
	whole = strings.TrimLeft(whole, "0")
	fraction = strings.TrimRight(fraction, "0")
	if len(whole) > mostDigits {
		return Cell{stored, Number, whyDigits}
	}
	if len(whole)+len(fraction) > mostDigits {
		value, _ := strconv.ParseFloat(whole+"."+fraction, 64)
		whole, fraction, _ = strings.Cut(strconv.FormatFloat(value, 'f', mostDigits-len(whole), 64), ".")
		whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	}
	text := whole
	if text == "" {
		text = "0"
	}
	if fraction != "" {
		text += "." + fraction
	}
	if sign == "-" && text != "0" {
		text = "-" + text
	}
	return Cell{Text: text, Kind: Number}
}

// day is the format of a date in a cell.
const day = "2006-01-02T15:04:05"

// date converts a number of days since the workbook's first day to a date. Excel counts 29 February 1900, which did
// not exist.
func (w *workbook) date(stored string) Cell {
	days, err := strconv.ParseFloat(stored, 64)
	if err != nil || math.IsNaN(days) || days < 0 || days > 2_958_466 {
		return Cell{stored, Date, "has a date that does not exist"}
	}
	first := time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	if w.from == 1900 {
		first = time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
		if days < 60 {
			first = first.AddDate(0, 0, 1)
		}
	}
	whole, part := math.Modf(days)
	at := first.AddDate(0, 0, int(whole)).Add(time.Duration(math.Round(part*86_400)) * time.Second)
	return Cell{Text: at.Format(day), Kind: Date}
}
