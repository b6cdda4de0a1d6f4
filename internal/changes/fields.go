package changes

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/treasury"
)

// Field is one value that a kind is requested with: a flag of a command, an input of a page.
type Field struct {
	Name, Label, Hint string
	Options           []string // the allowed values; none: any text
	Max               int      // characters
	Required          bool
}

// FieldTenant is the name of the field with the id of the account that a change is about.
const FieldTenant = "tenant"

// MaxReference is the longest reference of a request, in characters.
const MaxReference = 64

// Fields that several kinds have.
var (
	tenantField    = Field{Name: FieldTenant, Label: "Account", Hint: "The id of the account.", Max: 64, Required: true}
	amountField    = Field{Name: "amount", Label: "Amount in cedis", Hint: "Such as 1250.00.", Max: 20, Required: true}
	wayField       = Field{Name: "way", Label: "Direction", Hint: "Leave empty for money that is paid in.", Options: []string{"in", "out"}, Max: 3}
	referenceField = Field{Name: "reference", Label: "Reference", Hint: "Enter your reference, such as the number of the bank's slip. It is booked only once.", Max: MaxReference}
	bankField      = Field{Name: "bank", Label: "Bank account", Hint: "Enter the name of the company's bank account that received the money.", Max: 30}
	slipField      = Field{Name: "slip", Label: "Slip number", Hint: "Enter the number of the bank's slip. A slip of a bank account pays for one deposit.", Max: treasury.MaxSlip}
	lineField      = Field{Name: "line", Label: "Line of the bank's statement", Hint: "Enter the id of the credit's line, instead of a slip. A line pays for one deposit.", Max: 36}
)

// Values are the values of a kind's fields, as texts.
type Values map[string]string

// amount parses an amount in cedis. It is zero if the value is absent.
func (v Values) amount(name string) (money.Pesewas, error) {
	if v[name] == "" {
		return 0, nil
	}
	n, err := money.Parse(v[name])
	switch {
	case errors.Is(err, money.ErrRange):
		return 0, problem.Field(name, err.Error())
	case err != nil:
		return 0, problem.Field(name, "must be an amount, such as 1250.00")
	}
	return n, nil
}

// moved parses the amount of amountField. It is negative if wayField is "out".
func (v Values) moved() (money.Pesewas, error) {
	n, err := v.amount(amountField.Name)
	if v[wayField.Name] == "out" {
		n = -n
	}
	return n, err
}

// moving returns the values of a movement. For a negative amount it sets the direction to out and a positive
// amount.
func moving(v Values, amount money.Pesewas) Values {
	v[wayField.Name], v[amountField.Name] = "in", amount.String()
	if amount < 0 {
		v[wayField.Name], v[amountField.Name] = "out", (-amount).String()
	}
	return v
}

// notNegative parses an amount that must not be negative. It is zero if the value is absent.
func (v Values) notNegative(name string) (money.Pesewas, error) {
	n, err := v.amount(name)
	if err == nil && n < 0 {
		err = problem.Field(name, "must not be below zero")
	}
	return n, err
}

// whole parses a whole number. It is zero if the value is absent.
func (v Values) whole(name string) (int64, error) {
	if v[name] == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v[name], 10, 64)
	if err != nil {
		err = problem.Field(name, "must be a whole number")
	}
	return n, err
}

// duration parses a time such as 36h or 90d. It is zero if the value is absent.
func (v Values) duration(name string) (time.Duration, error) {
	text := v[name]
	if text == "" {
		return 0, nil
	}
	if days, is := strings.CutSuffix(text, "d"); is {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, problem.Field(name, "must be a number of days or hours, such as 90d or 36h")
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		err = problem.Field(name, "must be a number of days or hours, such as 90d or 36h")
	}
	return d, err
}

// moment parses a time in RFC 3339. It is the zero time if the value is absent.
func (v Values) moment(name string) (time.Time, error) {
	if v[name] == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, v[name])
	if err != nil {
		err = problem.Field(name, "must be a time such as 2026-03-06T12:00:00Z")
	}
	return t, err
}

// checkValues refuses values that the fields do not allow. The error names each field.
func checkValues(fields []Field, v Values) error {
	var bad problem.Fields
	for name := range v {
		if !slices.ContainsFunc(fields, func(f Field) bool { return f.Name == name }) {
			bad.Add(name, "is not a field of this change")
		}
	}
	for _, f := range fields {
		switch text := v[f.Name]; {
		case text == "" && f.Required:
			bad.Add(f.Name, "is required")
		case text != "" && f.Options != nil && !slices.Contains(f.Options, text):
			bad.Add(f.Name, "must be "+strings.Join(f.Options, " or "))
		case utf8.RuneCountInString(text) > f.Max:
			bad.Add(f.Name, fmt.Sprintf("must have at most %d characters", f.Max))
		}
	}
	return bad.Err()
}

// Form describes how pages and commands request a kind.
type Form struct {
	Kind, Title string
	Request     roles.Permission
	Fields      []Field
}

// About reports whether the change is about an account, which is the value of FieldTenant.
func (f Form) About() bool {
	return slices.ContainsFunc(f.Fields, func(f Field) bool { return f.Name == FieldTenant })
}
