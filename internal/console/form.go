package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// DayFormat is how a day is written in addresses, forms and names of files.
const DayFormat = "2006-01-02"

// Param is a parameter of the address.
func (v *Visit) Param(name string) string { return v.R.URL.Query().Get(name) }

// Days reads the first and the last day of a filter.
func (v *Visit) Days() (from, to time.Time, err error) {
	var bad problem.Fields
	for name, into := range map[string]*time.Time{"from": &from, "to": &to} {
		if text := v.Param(name); text != "" {
			day, err := time.Parse(DayFormat, text)
			if err != nil {
				bad.Add(name, "must be a day such as 2026-11-23")
			}
			*into = day
		}
	}
	return from, to, bad.Err()
}

// PageNumber reads the number of a numbered page, from 1 to most. A most of 0 is no limit.
func (v *Visit) PageNumber(most int) (int, error) {
	text := v.Param("page")
	if text == "" {
		return 1, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err == nil && n >= 1 && (most == 0 || n <= most):
		return n, nil
	case most == 0:
		return 0, problem.Field("page", "must be a number from 1")
	}
	return 0, problem.Field("page", fmt.Sprintf("must be a number from 1 to %d", most))
}

// DayFields are the fields for the first and the last day.
func (v *Visit) DayFields() []page.Field {
	return []page.Field{{Name: "from", Label: "From", Type: "date", Value: v.Param("from")}, {Name: "to", Label: "To", Type: "date", Value: v.Param("to")}}
}

// Narrowed returns the number of parameters that are set.
func (v *Visit) Narrowed(names ...string) (set int) {
	for _, name := range names {
		if v.Param(name) != "" {
			set++
		}
	}
	return set
}

// PageRows is how many rows a page of a list has.
const PageRows = 50

// FilterQuery is the query of some parameters.
func (v *Visit) FilterQuery(names ...string) string {
	q := url.Values{}
	for _, name := range names {
		if value := v.Param(name); value != "" {
			q.Set(name, value)
		}
	}
	return q.Encode()
}

// Choice returns the option that a form selects.
func (v *Visit) Choice(name string, options []page.Option) (string, error) {
	value := v.R.PostFormValue(name)
	if !slices.ContainsFunc(options, func(o page.Option) bool { return o.Value == value }) {
		return "", problem.Field(name, "must be one of the options")
	}
	return value, nil
}

// WithGiven returns options with a value of the form or the address among them, so that a form that is sent again keeps it.
func WithGiven(options []page.Option, value, text string) []page.Option {
	if slices.ContainsFunc(options, func(o page.Option) bool { return o.Value == value }) {
		return options
	}
	return append(options, page.Option{Value: value, Text: text})
}

// PositiveAmount parses a required amount of the form.
func (v *Visit) PositiveAmount(name string) (money.Pesewas, error) {
	amount, err := v.Amount(name)
	if err == nil && amount == 0 {
		err = problem.Field(name, "must be above zero")
	}
	return amount, err
}

// Actions are links that a permission shows.
func (v *Visit) Actions(p roles.Permission, links ...page.Link) []page.Link {
	if !v.Can(p) || v.Viewing {
		return nil
	}
	return links
}

// Given returns the value of a parameter of the form, or else of the address, or else usual.
func (v *Visit) Given(name, usual string) string {
	if v.R.Method == http.MethodPost {
		return v.R.PostFormValue(name)
	}
	if text := v.Param(name); text != "" {
		return text
	}
	return usual
}

// Amount parses an optional amount of the form.
func (v *Visit) Amount(name string) (money.Pesewas, error) {
	text := v.R.PostFormValue(name)
	if text == "" {
		return 0, nil
	}
	n, err := money.Parse(text)
	if errors.Is(err, money.ErrRange) {
		return 0, problem.Field(name, err.Error())
	}
	if err != nil || n < 0 {
		return 0, problem.Field(name, "must be an amount, such as 1250.00")
	}
	return n, nil
}

// Whole parses an optional whole number of the form.
func (v *Visit) Whole(name string, most int) (int, error) {
	text := v.R.PostFormValue(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, problem.Field(name, "must be a whole number from 0 to "+strconv.Itoa(most))
	}
	return n, nil
}

// newPassword is the field for a password that a person chooses.
var newPassword = page.Field{Name: "password", Label: "New password", Type: "password", Max: identity.MaxPassword, Required: true, Auto: "new-password",
	Hint: "Use at least 12 characters, such as a few unrelated words."}
