package frame

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// Toggle is an optional flag with the values on and off.
type Toggle struct{ Value *bool }

// UnmarshalText reads the flag.
func (t *Toggle) UnmarshalText(text []byte) error {
	on := string(text) == "on"
	if !on && string(text) != "off" {
		return errors.New("must be on or off")
	}
	t.Value = &on
	return nil
}

// String returns on, off or nothing.
func (t Toggle) String() string {
	if t.Value == nil {
		return ""
	}
	return map[bool]string{true: "on", false: "off"}[*t.Value]
}

// Amount is a flag in cedis, or nothing.
type Amount struct{ Value *money.Pesewas }

// UnmarshalText reads the flag.
func (a *Amount) UnmarshalText(text []byte) error {
	p, err := money.Parse(string(text))
	if err != nil {
		return err
	}
	a.Value = &p
	return nil
}

// String returns the amount, or nothing.
func (a Amount) String() string {
	if a.Value == nil {
		return ""
	}
	return a.Value.String()
}

// Quota is an optional flag with the quota of an account.
type Quota struct{ Value *tenant.Quota }

// UnmarshalText reads the flag.
func (q *Quota) UnmarshalText(text []byte) error {
	n, err := tenant.ParseQuota(string(text))
	q.Value = &n
	return err
}

// String returns the quota, or nothing.
func (q Quota) String() string {
	if q.Value == nil {
		return ""
	}
	return q.Value.String()
}

// Count is a flag with a number of at least one.
type Count int

// UnmarshalText reads the flag.
func (c *Count) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 {
		return errors.New("must be a whole number of at least 1")
	}
	*c = Count(n)
	return nil
}

// AddressesFlag reads a flag that is an address or a range of addresses.
func AddressesFlag(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("CIDR", &text); err != nil {
		return err
	}
	prefix, err := access.ParsePrefix(text)
	if err != nil {
		p := problem.From(err)
		return errors.New(p.Fields[p.FieldNames()[0]][0])
	}
	target.Set(reflect.ValueOf(prefix))
	return nil
}

// TextsOf returns the text of each value.
func TextsOf[T interface{ String() string }](list []T) []string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = v.String()
	}
	return texts
}

// Day is a flag with a date, or nothing.
type Day struct{ Value time.Time }

// UnmarshalText reads the flag.
func (d *Day) UnmarshalText(text []byte) (err error) {
	if d.Value, err = time.Parse(time.DateOnly, string(text)); err != nil {
		return fmt.Errorf("must be a date such as 2026-01-31")
	}
	return nil
}

// Or returns the start of the flag's day, or of the other day without the flag.
func (d Day) Or(otherwise time.Time) time.Time {
	if !d.Value.IsZero() {
		otherwise = d.Value
	}
	return otherwise.UTC().Truncate(24 * time.Hour)
}
