package api

import (
	"context"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/api/wire"
	"github.com/makola/makola/internal/messaging/otp"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

// Limits of the fields.
const (
	referenceMin = 12
	referenceMax = 36
	labelMax     = 64     // characters; a longer label is cut
	idMax        = 64     // bytes of an id in the path or the body
	codeMax      = 64     // characters of a one-time code, including spaces
	textMax      = 255    // characters of any other short text
	messageMax   = 50_000 // characters of an SMS; the domain's own limit is lower
	noLimit      = money.Pesewas(math.MaxInt64)
)

// Texts of errors that follow the name of a field.
const (
	required   = "is required"
	notText    = "must be a string"
	notWhole   = "must be a whole number"
	badText    = "must not contain control characters"
	badUnicode = "must be valid UTF-8 text"
)

// form reads the fields of one request and collects all their errors. The handler calls err once, before it calls the
// domain. An absent field, null and an empty string mean the same. The checks here give better messages. The domain
// checks everything again, because commands call it, too.
type form struct {
	object wire.Object // the body
	query  url.Values  // the query string, if there is no body
	path   map[string]string
	fields problem.Fields
	dev    bool // development mode: callbacks over http to loopback addresses are allowed
	scans  scans
}

// err returns one error for all invalid fields, or nil if there are none.
func (f *form) err() error { return f.fields.Err() }

// refused reports whether any field is invalid already. The handler then makes checks of the domain itself, so that
// one response names every invalid field.
func (f *form) refused() bool { return f.err() != nil }

// unlisted adds an error for an id that the catalogue does not contain, if the request has other invalid fields.
// Otherwise the domain returns this error.
func unlisted[T any](ctx context.Context, f *form, name, id, list string, find func(context.Context, string) (T, bool, error)) {
	if id == "" || !f.refused() {
		return
	}
	if _, found, err := find(ctx, id); err == nil && !found {
		f.bad(name, "is not in the list of "+list)
	}
}

// bad records the error of a field.
func (f *form) bad(name, text string) { f.fields.Add(name, text) }

// string returns the text of a field without the spaces around it. present is false if the field is absent or
// invalid; the error is then recorded.
func (f *form) string(name string, need bool) (text string, present bool) {
	text, present = f.raw(name)
	if present && !utf8.ValidString(text) {
		f.bad(name, badUnicode)
		return "", false
	}
	text = strings.TrimSpace(text)
	if text == "" {
		if need && !f.fields.Has(name) {
			f.bad(name, required)
		}
		return "", false
	}
	return text, true
}

// raw returns the text of a field in the path, the body or the query string. The body's decoder has already recorded
// invalid UTF-8 and repeated names.
func (f *form) raw(name string) (string, bool) {
	if text, ok := f.path[name]; ok {
		return text, true
	}
	if f.query != nil {
		values := f.query[name]
		if len(values) > 1 {
			f.bad(name, "is given more than once")
		}
		if len(values) == 0 {
			return "", false
		}
		return values[0], true
	}
	value := f.object.Find(name)
	if value == nil || f.fields.Has(name) {
		return "", false
	}
	switch value[0] {
	case '"':
		return wire.Unquote(value), true
	case 'n':
		return "", false
	}
	f.bad(name, notText)
	return "", false
}

// oneLine reads a text of any length on one line.
func (f *form) oneLine(name string, need bool) string {
	text, ok := f.string(name, need)
	if !ok {
		return ""
	}
	if wire.HasControl(text, false) {
		f.bad(name, badText)
		return ""
	}
	return text
}

// line reads a text of at most limit characters on one line.
func (f *form) line(name string, need bool, limit int) string {
	text := f.oneLine(name, need)
	if utf8.RuneCountInString(text) > limit {
		f.bad(name, "must be at most "+strconv.Itoa(limit)+" characters")
		return ""
	}
	return text
}

// oneTimeCode returns the digits of a code. The client may send spaces between them.
func (f *form) oneTimeCode(name string) string {
	code := usertext.Code(f.line(name, true, codeMax))
	switch {
	case f.fields.Has(name):
	case code == "":
		f.bad(name, required)
	case strings.Trim(code, "0123456789") != "":
		f.bad(name, "must consist of digits")
	case len(code) > otp.MostLength:
		f.bad(name, "must be at most "+strconv.Itoa(otp.MostLength)+" digits")
	default:
		return code
	}
	return ""
}

// label reads an optional text for people.
func (f *form) label(name string) string { return f.short(name, false, labelMax) }

// cut returns the first limit characters of a text.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	n := 0
	for i := range text {
		if n == limit {
			return strings.TrimRight(text[:i], " ")
		}
		n++
	}
	return text
}

// amount reads an amount in cedis from low to high, as a JSON number or a numeric string.
func (f *form) amount(name string, low, high money.Pesewas) money.Pesewas {
	literal, ok := f.literal(name, money.ErrFormat.Error())
	if !ok {
		if !f.fields.Has(name) {
			f.bad(name, required)
		}
		return 0
	}
	parse := money.ParseLenient
	if f.hasNumber(name) {
		parse = money.ParseNumber
	}
	amount, err := parse(literal)
	switch {
	case err != nil:
		f.bad(name, err.Error())
	case amount < low:
		f.bad(name, "must be at least "+low.String())
	case amount > high:
		f.bad(name, "must be at most "+high.String())
	default:
		return amount
	}
	return 0
}

// given reports whether a field has a value.
func (f *form) given(name string) bool {
	value := f.object.Find(name)
	return value != nil && string(value) != "null" && string(value) != `""`
}

// literal returns the digits of a number, or of a string that contains a number. Any other value is an error that
// describes the wanted form.
func (f *form) literal(name, wanted string) (string, bool) {
	value := f.object.Find(name)
	if !f.fields.Has(name) && f.hasNumber(name) {
		return string(value), true
	}
	if value != nil && (value[0] == 't' || value[0] == 'f' || value[0] == '{' || value[0] == '[') {
		f.bad(name, wanted)
		return "", false
	}
	return f.string(name, false)
}

// hasNumber reports whether a field of the body is a JSON number.
func (f *form) hasNumber(name string) bool {
	value := f.object.Find(name)
	return value != nil && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// phone reads a Ghanaian mobile number in any of its forms.
func (f *form) phone(name string) msisdn.MSISDN {
	text, ok := f.string(name, true)
	if !ok {
		return ""
	}
	number, err := msisdn.Parse(text)
	if err != nil {
		f.bad(name, err.Error())
	}
	return number
}

// network reads the name of a mobile network.
func (f *form) network(name string, need bool) msisdn.Network {
	text, ok := f.string(name, need)
	if !ok {
		return ""
	}
	network, known := msisdn.ParseNetwork(text)
	if !known {
		f.bad(name, msisdn.ErrNetwork.Error())
	}
	return network
}

// reference reads the client's reference: 12 to 36 of [A-Za-z0-9._-].
func (f *form) reference(name string, need bool) string {
	text, ok := f.string(name, need)
	if !ok {
		return ""
	}
	if !wordy(text) {
		f.bad(name, "must consist of letters, digits, dots, underscores and hyphens")
		return ""
	}
	if len(text) < referenceMin || len(text) > referenceMax {
		f.bad(name, "must be 12 to 36 characters long")
		return ""
	}
	return text
}

// wordy reports whether all bytes are allowed in a reference or an id.
func wordy(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9', c|0x20 >= 'a' && c|0x20 <= 'z', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// wanted reads a reference that the client may omit. An invalid reference is treated as absent.
func (f *form) wanted(name string) string {
	value := f.object.Find(name)
	if value == nil || value[0] != '"' || f.fields.Has(name) {
		return ""
	}
	text := strings.TrimSpace(wire.Unquote(value))
	if len(text) < referenceMin || len(text) > referenceMax || !wordy(text) {
		return ""
	}
	return text
}

// ours reads an id of ours in the body or the query string.
func (f *form) ours(name string) string { return canonical(f.line(name, true, idMax)) }

// canonical returns a UUID in lower case, as we store it. It returns any other id unchanged.
func canonical(id string) string {
	if len(id) != 36 {
		return id
	}
	if u, err := uuid.Parse(id); err == nil {
		return u.String()
	}
	return id
}

// id reads an id of ours in the path.
func (f *form) id(name string, unknown *problem.Error) (string, error) {
	text, err := f.called(name, unknown)
	return canonical(text), err
}

// called reads an id of ours or a reference of the client, for the domain to look up. For a text that can be neither,
// it returns the error for an unknown reference.
func (f *form) called(name string, unknown *problem.Error) (string, error) {
	text, ok := f.string(name, true)
	if !ok {
		return "", nil
	}
	if wire.HasControl(text, false) {
		f.bad(name, badText)
		return "", nil
	}
	if len(text) > idMax || !wordy(text) {
		return "", unknown
	}
	return text, nil
}

// choice reads one of the values, in upper or lower case. It returns the value as given in values.
func (f *form) choice(name string, need bool, values ...string) string {
	text, ok := f.string(name, need)
	if !ok {
		return ""
	}
	for _, v := range values {
		if strings.EqualFold(text, v) {
			return v
		}
	}
	f.bad(name, "must be "+oneOf(values))
	return ""
}

func oneOf(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	return "one of " + strings.Join(values, ", ")
}

// url reads an optional address for a webhook. check is the function of the calling package that validates addresses.
func (f *form) url(name string, check func(raw string, development bool) error) string {
	text, ok := f.string(name, false)
	if !ok {
		return ""
	}
	if err := check(text, f.dev); err != nil {
		f.bad(name, fieldText(err))
		return ""
	}
	return text
}

// fieldText returns the message about a field in an error of the domain.
func fieldText(err error) string {
	e := problem.From(err)
	for _, name := range e.FieldNames() {
		return e.Fields[name][0]
	}
	return e.Message
}

// account reads a bank account number: 7 to 16 letters or digits. It keeps leading zeros and removes spaces and
// hyphens.
func (f *form) account(name string) string {
	text, ok := f.string(name, true)
	if !ok {
		return ""
	}
	text = strings.NewReplacer(" ", "", "-", "").Replace(text)
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			f.bad(name, "must consist of letters and digits")
			return ""
		}
	}
	if len(text) < 7 || len(text) > 16 {
		f.bad(name, "must be 7 to 16 characters long")
		return ""
	}
	return text
}

// number reads an optional whole number from low to high.
func (f *form) number(name string, byDefault, low, high int) int {
	literal, ok := f.literal(name, notWhole)
	if !ok {
		return byDefault
	}
	n, err := strconv.Atoi(literal)
	whole, value := err == nil && !strings.HasPrefix(literal, "+"), float64(n)
	if !whole && f.hasNumber(name) { // some languages write 5 as 5.0 or 5e0
		value, err = strconv.ParseFloat(literal, 64)
		whole = err == nil && value == math.Trunc(value)
	}
	switch {
	case !whole:
		f.bad(name, notWhole)
	case value < float64(low):
		f.bad(name, "must be at least "+strconv.Itoa(low))
	case value > float64(high):
		f.bad(name, "must be at most "+strconv.Itoa(high))
	default:
		return int(value)
	}
	return byDefault
}

// day reads an optional date and returns its first instant in UTC. The zero time means that there is no date. So
// the first possible date is returned as the next day, which is still before any payment.
func (f *form) day(name string) time.Time {
	text, ok := f.string(name, false)
	if !ok {
		return time.Time{}
	}
	day, err := time.ParseInLocation(time.DateOnly, text, time.UTC)
	if err != nil {
		f.bad(name, "must be a date such as 2026-01-31")
		return time.Time{}
	}
	if first := (time.Time{}).AddDate(0, 0, 1); day.Before(first) {
		return first
	}
	return day
}

// days reads the optional days from and to of a period. to must not be before from.
func (f *form) days() (from, to time.Time) {
	from, to = f.day("from"), f.day("to")
	if !from.IsZero() && !to.IsZero() && to.Before(from) {
		f.bad("to", "must not be before from")
	}
	return from, to
}

// message reads the text of an SMS unchanged. It may contain line breaks and is never cut.
func (f *form) message(name string) string {
	text, present := f.raw(name)
	switch {
	case f.fields.Has(name):
	case !present || strings.TrimSpace(text) == "":
		f.bad(name, required)
	case !utf8.ValidString(text):
		f.bad(name, badUnicode)
	case wire.HasControl(text, true):
		f.bad(name, badText)
	case utf8.RuneCountInString(text) > messageMax:
		f.bad(name, "is too long")
	default:
		return text
	}
	return ""
}

// short reads a text for people on one line. It cuts a text that is too long.
func (f *form) short(name string, need bool, limit int) string {
	return cut(f.oneLine(name, need), limit)
}
