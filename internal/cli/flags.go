package cli

import (
	"errors"
	"reflect"
	"strconv"

	"github.com/alecthomas/kong"
	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// toggle is a flag that says on or off, or nothing.
type toggle struct{ value *bool }

// UnmarshalText reads the flag.
func (t *toggle) UnmarshalText(text []byte) error {
	on := string(text) == "on"
	if !on && string(text) != "off" {
		return errors.New("must be on or off")
	}
	t.value = &on
	return nil
}

// amount is a flag in cedis, or nothing.
type amount struct{ value *money.Pesewas }

// UnmarshalText reads the flag.
func (a *amount) UnmarshalText(text []byte) error {
	p, err := money.Parse(string(text))
	if err != nil {
		return err
	}
	a.value = &p
	return nil
}

// or gives what was said, or else what holds without the flag.
func (a amount) or(otherwise money.Pesewas) money.Pesewas {
	if a.value == nil {
		return otherwise
	}
	return *a.value
}

// quota is a flag that says how much a customer may store, or nothing.
type quota struct{ value *tenant.Quota }

// UnmarshalText reads the flag.
func (q *quota) UnmarshalText(text []byte) error {
	n, err := tenant.ParseQuota(string(text))
	q.value = &n
	return err
}

// count is a flag that says how many, at least one.
type count int

// UnmarshalText reads the flag.
func (c *count) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 {
		return errors.New("must be a whole number from 1 on")
	}
	*c = count(n)
	return nil
}

// addressesFlag reads a flag that is an address or a range of addresses.
func addressesFlag(ctx *kong.DecodeContext, target reflect.Value) error {
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

func textsOf[T interface{ String() string }](list []T) []string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = v.String()
	}
	return texts
}
