package changes

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// Field is one value that a kind is requested with: a flag of a command, an input of a page.
type Field struct {
	Name, Label, Hint string
	Options           []string // the values that it can have; none: a text
	Max               int      // characters
	Required          bool
}

// FieldTenant is the name of the field with the id of the account that a change is about.
const FieldTenant = "tenant"

// MaxReference is the longest reference of an act, in characters.
const MaxReference = 64

// Fields that several kinds have.
var (
	tenantField    = Field{Name: FieldTenant, Label: "Account", Hint: "The id of the account.", Max: 64, Required: true}
	amountField    = Field{Name: "amount", Label: "Amount in cedis", Hint: "Such as 1250.00.", Max: 20, Required: true}
	wayField       = Field{Name: "way", Label: "Direction", Hint: "Money is put in when absent.", Options: []string{"in", "out"}, Max: 3}
	referenceField = Field{Name: "reference", Label: "Reference", Hint: "Such as the number of the bank's slip: it is booked once.", Max: MaxReference}
)

// Values are what a request was given for the fields of its kind, as texts.
type Values map[string]string

// amount reads an amount in cedis; absent is zero.
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

// moved reads the amount of amountField, which is below zero where wayField says out.
func (v Values) moved() (money.Pesewas, error) {
	n, err := v.amount(amountField.Name)
	if v[wayField.Name] == "out" {
		n = -n
	}
	return n, err
}

// moving returns the values with an amount, which is below zero where it is taken out.
func moving(v Values, amount money.Pesewas) Values {
	v[wayField.Name], v[amountField.Name] = "in", amount.String()
	if amount < 0 {
		v[wayField.Name], v[amountField.Name] = "out", (-amount).String()
	}
	return v
}

// checkValues refuses values that the fields do not allow, naming each.
func checkValues(fields []Field, v Values) error {
	var bad problem.Fields
	for name := range v {
		if !slices.ContainsFunc(fields, func(f Field) bool { return f.Name == name }) {
			bad.Add(name, "is no field of this change")
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

// Form says how a kind is requested, for pages and commands.
type Form struct {
	Kind, Title string
	Request     identity.Permission
	Fields      []Field
}

// About reports whether the change is about an account, which is the value of FieldTenant.
func (f Form) About() bool {
	return slices.ContainsFunc(f.Fields, func(f Field) bool { return f.Name == FieldTenant })
}
