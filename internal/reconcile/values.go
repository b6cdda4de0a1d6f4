package reconcile

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
)

// DateOrder is the order of day and month in dates that have both as numbers, after or before the year.
type DateOrder string

// The orders. A date that begins with the year, or names its month, is read the same by both.
const (
	DayFirst   DateOrder = "dmy"
	MonthFirst DateOrder = "mdy"
)

var (
	numericDate = regexp.MustCompile(`^(\d{1,4})[-/.](\d{1,2})[-/.](\d{2,4})(.*)$`)
	namedDate   = regexp.MustCompile(`^(\d{1,2})[-/. ]([A-Za-z]{3,9})[-/., ]+(\d{2,4})(.*)$`)
	namedFirst  = regexp.MustCompile(`^([A-Za-z]{3,9})[-/. ](\d{1,2}),?[-/ ](\d{4})(.*)$`)
	clockTime   = regexp.MustCompile(`^[T, ]*(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s*([AaPp][Mm])?\s*(?:Z|UTC|GMT|\+00:?00)?$`)
)

var months = map[string]int{"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12}

var errDate = errors.New("must be a date, such as 2026-11-20 18:18:05")

// date is a parsed date.
type date struct {
	first, second, year int  // the first and second number of the date, in the order of the file
	fixed               bool // first is the day and second the month, whatever the order
	rest                string
}

func splitDate(text string) (date, error) {
	text = strings.TrimSpace(text)
	if d, is := isoDate(text); is {
		return d, nil
	}
	if m := numericDate.FindStringSubmatch(text); m != nil {
		a, b, c := number(m[1]), number(m[2]), number(m[3])
		switch {
		case len(m[1]) == 4:
			return date{c, b, a, true, m[4]}, nil
		case len(m[1]) == 3 || len(m[3]) == 3:
			return date{}, errDate
		}
		return date{a, b, fullYear(c), false, m[4]}, nil
	}
	if m := namedDate.FindStringSubmatch(text); m != nil {
		return date{number(m[1]), months[strings.ToLower(m[2][:3])], fullYear(number(m[3])), true, m[4]}, nil
	}
	if m := namedFirst.FindStringSubmatch(text); m != nil {
		return date{number(m[2]), months[strings.ToLower(m[1][:3])], number(m[3]), true, m[4]}, nil
	}
	return date{}, errDate
}

// isoDate reads the usual date of a file, such as 2026-11-20, without a pattern: a file has a million.
func isoDate(text string) (d date, is bool) {
	if len(text) < 10 || text[4] != '-' || text[7] != '-' || len(text) > 10 && onlyDigits(text[10:11]) {
		return d, false
	}
	for _, part := range []string{text[:4], text[5:7], text[8:10]} {
		if !onlyDigits(part) {
			return d, false
		}
	}
	return date{number(text[8:10]), number(text[5:7]), number(text[:4]), true, text[10:]}, true
}

func onlyDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // the pattern has at most four digits
	return n
}

func fullYear(year int) int {
	if year < 100 {
		year += 2000
	}
	return year
}

// orders returns the orders in which a date can be read.
func (d date) orders() (dayFirst, monthFirst bool) {
	return d.first <= 31 && d.second <= 12, d.fixed || d.first <= 12 && d.second <= 31
}

// parseDate reads a date and its time, in Accra's time, which is UTC. A date without a time is its midnight.
func parseDate(text string, order DateOrder) (time.Time, error) {
	d, err := splitDate(text)
	if err != nil {
		return time.Time{}, err
	}
	day, month := d.first, d.second
	if order == MonthFirst && !d.fixed {
		day, month = month, day
	}
	hour, minute, second, err := parseClock(d.rest)
	if err != nil {
		return time.Time{}, err
	}
	at := time.Date(d.year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	if at.Day() != day || int(at.Month()) != month || d.year < 2000 || d.year > 2100 {
		return time.Time{}, errDate
	}
	return at, nil
}

// parseClock parses the time after a date. An empty time is midnight.
func parseClock(text string) (hour, minute, second int, err error) {
	if strings.TrimSpace(text) == "" {
		return 0, 0, 0, nil
	}
	if len(text) == 9 && (text[0] == ' ' || text[0] == 'T') && text[3] == ':' && text[6] == ':' && onlyDigits(text[1:3]+text[4:6]+text[7:9]) {
		hour, minute, second = number(text[1:3]), number(text[4:6]), number(text[7:9])
		if hour > 23 || minute > 59 || second > 59 {
			return 0, 0, 0, errDate
		}
		return hour, minute, second, nil
	}
	m := clockTime.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, 0, errDate
	}
	hour, minute, second = number(m[1]), number(m[2]), number(m[3])
	if m[4] != "" {
		if hour < 1 || hour > 12 {
			return 0, 0, 0, errDate
		}
		hour %= 12
		if strings.EqualFold(m[4], "pm") {
			hour += 12
		}
	}
	if hour > 23 || minute > 59 || second > 59 {
		return 0, 0, 0, errDate
	}
	return hour, minute, second, nil
}

var errAmount = errors.New("must be an amount, such as 1,200.50")

// plainAmount removes the currency, spaces and quotes of an amount, and returns its sign separately: a minus before
// or after the amount, or brackets.
func plainAmount(text string) (digits string, negative bool) {
	if rest := strings.TrimPrefix(text, "-"); strings.Trim(rest, "0123456789.,") == "" {
		return rest, rest != text
	}
	plain := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || r == '₵' || r == '\'' || r == '"':
			return -1
		case r == '−' || r == '–':
			return '-'
		}
		return unicode.ToUpper(r)
	}, text)
	for _, currency := range []string{"GHS", "GHC", "GH¢", "GH", "EUR"} {
		plain = strings.TrimSuffix(strings.TrimPrefix(plain, currency), currency)
		plain = strings.Replace(plain, "-"+currency, "-", 1)
	}
	if inner, is := strings.CutPrefix(plain, "("); is {
		if inner, is = strings.CutSuffix(inner, ")"); is {
			return inner, true
		}
	}
	for _, cut := range []func(string, string) (string, bool){strings.CutPrefix, strings.CutSuffix} {
		if rest, is := cut(plain, "-"); is {
			return rest, true
		}
	}
	if rest, is := strings.CutSuffix(plain, "DR"); is {
		return rest, true
	}
	return strings.TrimSuffix(strings.TrimPrefix(plain, "+"), "CR"), false
}

// decimalMark returns the decimal mark that an amount shows by itself, or 0 if both readings fit.
func decimalMark(text string) rune {
	plain, _ := plainAmount(text)
	point, comma := strings.LastIndexByte(plain, '.'), strings.LastIndexByte(plain, ',')
	switch {
	case point < 0 && comma < 0:
		return 0
	case point >= 0 && comma >= 0:
		if point > comma {
			return '.'
		}
		return ','
	}
	at, mark, other := max(point, comma), '.', ','
	if comma >= 0 {
		mark, other = ',', '.'
	}
	switch {
	case strings.Count(plain, string(mark)) > 1:
		return other
	case len(plain)-at-1 == 3 && at > 0 && plain[:at] != "0":
		return 0
	}
	return mark
}

var (
	pointed = regexp.MustCompile(`^(\d+|\d{1,3}(,\d{3})+)(\.\d+)?$`)
	commaed = regexp.MustCompile(`^(\d+|\d{1,3}(\.\d{3})+)(,\d+)?$`)
)

// parseAmount reads an amount of either sign whose decimals stand behind mark.
func parseAmount(text string, mark rune) (money.Pesewas, error) {
	plain, negative := plainAmount(text)
	whole, fraction, decimals := strings.Cut(plain, ".")
	switch {
	case mark != ',' && onlyDigits(whole) && (!decimals || onlyDigits(fraction)): // as nearly every amount is
	case mark == ',' && commaed.MatchString(plain):
		plain = strings.Replace(strings.ReplaceAll(plain, ".", ""), ",", ".", 1)
	case mark != ',' && pointed.MatchString(plain):
		plain = strings.ReplaceAll(plain, ",", "")
	default:
		return 0, errAmount
	}
	amount, err := money.ParseLenient(plain)
	if negative {
		amount = -amount
	}
	return amount, err
}

// exponent is a number whose last digits a spreadsheet has dropped.
var exponent = regexp.MustCompile(`^\d([.,]\d+)?[eE]\+\d+$`)

var errExponent = errors.New("has a number such as 2.4E+11, whose digits a spreadsheet has dropped: download the file again and do not save it in a spreadsheet program")

// figure is an id that a spreadsheet or a converter has written as a number: with decimals, or with groups of digits.
var figure = regexp.MustCompile(`^\d{5,}[.,]0+$|^\d{1,3}([,.\x{a0} ]\d{3}){2,}$`)

var errFigure = errors.New("has a number such as 900000001.0 or 900,000,001 in place of an id: download the file again and do not save it in a spreadsheet program")

// parseID reads an id or reference.
func parseID(text string) (string, error) {
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "'"))
	if !strings.ContainsAny(text, "+,.\u00a0 ") { // what the patterns below need
		return text, nil
	}
	if exponent.MatchString(text) {
		return "", errExponent
	}
	if figure.MatchString(text) {
		return "", errFigure
	}
	return text, nil
}

// ourReference returns a text as a ProviderReference in its stored form. It is empty if the text is none.
func ourReference(text string) string {
	if n := len(text); n != 32 && n != 36 {
		return ""
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return ""
	}
	return id.String()
}

// longDigits returns the first 9 to 15 digits in a row of a text.
func longDigits(text string) string {
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && end-i < 15 && onlyDigits(text[end:end+1]) {
			end++
		}
		if end-i >= 9 {
			return text[i:end]
		}
		i = end + 1
	}
	return ""
}

// parseParty reads a mobile number, also one such as FRI:233241234567/MSISDN. For any other text the result is empty.
func parseParty(text string) string {
	digits := longDigits(text)
	if digits == "" {
		return ""
	}
	number, err := msisdn.ParseCell(digits)
	if err != nil {
		return ""
	}
	return number.International()
}

var referenceIn = regexp.MustCompile(`(?i)\b[0-9a-f]{32}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)

// mentioned returns our references that occur in a narrative.
func mentioned(text string) (list []string) {
	if len(text) < 32 {
		return nil
	}
	for _, found := range referenceIn.FindAllString(text, 3) {
		if reference := ourReference(found); reference != "" {
			list = append(list, reference)
		}
	}
	return list
}

// containsFold reports whether a text has a word, whatever its case.
func containsFold(text, word string) bool { return strings.Contains(strings.ToLower(text), word) }
