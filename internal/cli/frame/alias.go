package frame

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/problem"
)

// Alias is a command that requests a change of one kind. Its arguments and flags are the fields of the kind.
type Alias struct {
	Kind string
	// Fields maps an argument or a flag to a field with another name, or a switch to "field=value". Any other argument or
	// flag is the field with its name, if the kind has it.
	Fields map[string]string
	Fixed  changes.Values // values of fields that the line may leave out
	Sealed bool           // the change needs the master key
	Money  bool           // the change moves money or credits: it has a reference, and a repeat moves nothing
	// Confirm makes the command show the facts on a terminal and ask for a confirmation, like a command with
	// Money.
	Confirm bool
	Same    string // error code of a change that is in force already
	// Prepare completes the values. If it is nil, names of accounts are replaced by their ids.
	Prepare func(a *Ask) error
	// Await waits for the end of a request that a server applies. If it is nil, the command does not wait.
	Await func(a *Ask) error
	// Show prints what the change made.
	Show func(a *Ask) error
}

func (c *Common) shared() *Common { return c }

// Run requests the change that a line describes, and prints its outcome.
func (a Alias) Run(e *Env, line *kong.Context) error {
	command := line.Selected().Target.Addr().Interface()
	if c, checks := command.(interface{ Check() error }); checks {
		if err := c.Check(); err != nil {
			return err
		}
	}
	given := map[string]string{}
	values := line.Selected().Positional
	for _, flag := range line.Flags() {
		values = append(values, flag.Value)
	}
	for _, value := range values {
		if text, is := textOf(value.Target); is {
			given[value.Name] = text
		}
	}
	return a.Request(e, command.(interface{ shared() *Common }).shared(), given)
}

// Request requests the change by the texts of a line, and prints its outcome.
func (a Alias) Request(e *Env, c *Common, line map[string]string) error {
	q := &Ask{E: e, Output: c.Output, Values: a.values(line), Reason: line["reason"], Line: line}
	if !a.Sealed {
		return c.With(e, func(o *Opened) error { return a.opened(q, o, config.Secret{}) })
	}
	return c.WithSecret(e, func(o *Opened, secret config.Secret) error { return a.opened(q, o, secret) })
}

// opened assembles the domains that apply changes, and requests the change.
func (a Alias) opened(q *Ask, o *Opened, secret config.Secret) error {
	q.O, q.Changes = o, o.Changes(secret)
	q.Changes.Messaging = o.Messaging()
	defer q.Changes.Messaging.Close()
	if a.Sealed {
		p := o.Payments(secret)
		defer p.Close()
		q.Changes.Payments, q.Changes.Batches, q.Changes.Reconcile = p, o.Batches(secret, p), o.Reconcile(p)
	}
	return a.Do(q)
}

// Do requests the change of an open database, and prints its outcome. If a request with the same reference already waits, Do
// uses that request.
func (a Alias) Do(q *Ask) error {
	prepare := a.Prepare
	if prepare == nil {
		prepare = (*Ask).Accounts
	}
	if err := prepare(q); err != nil {
		return err
	}
	id := NewID()
	if a.Money {
		if err := q.order(a.Kind, id); err != nil {
			return err
		}
	}
	if q.E.Terminal && (a.Money || a.Confirm) {
		if err := q.confirm(a.Kind); err != nil {
			return err
		}
	}
	v := q.Values
	if v["reference"] != "" && q.O.By.Machine == "" { // a request of the machine's user needs no approval, so a waiting request does not block it
		waiting, found, err := q.Changes.WaitingUnder(q.E.Ctx, a.Kind, cmp.Or(v[changes.FieldTenant], v["from"]), v["reference"])
		if err != nil {
			return err
		}
		if found {
			id = waiting.ID
		}
	}
	var err error
	q.Request, err = q.Changes.Do(q.E.Ctx, q.O.By, a.Kind, id, v, q.Reason)
	if err == nil && a.Await != nil {
		err = a.Await(q)
	}
	if err != nil && a.Same != "" && problem.From(err).Code == a.Same {
		return a.Show(q)
	}
	if err = q.outcome(err, a.Show); a.Money {
		return ofOrder(err, v["reference"])
	}
	return err
}

// values returns the texts of a line that are fields of the kind.
func (a Alias) values(line map[string]string) changes.Values {
	form, _ := changes.FormOf(a.Kind)
	v := maps.Clone(a.Fixed)
	if v == nil {
		v = changes.Values{}
	}
	for name, text := range line {
		field, value, fixed := strings.Cut(cmp.Or(a.Fields[name], FieldOf(form, name)), "=")
		if fixed {
			text = value
		}
		if field != "" {
			v[field] = text
		}
	}
	return v
}

// FieldOf returns the field of a form that a flag names. It is empty for any other flag.
func FieldOf(form changes.Form, flag string) string {
	has := func(name string) bool {
		return slices.ContainsFunc(form.Fields, func(f changes.Field) bool { return f.Name == name })
	}
	switch name := strings.ReplaceAll(flag, "-", "_"); {
	case has(name):
		return name
	case name == "account" && has(changes.FieldTenant):
		return changes.FieldTenant
	}
	return ""
}

// textOf returns the text of an argument or a flag, and whether the line has it.
func textOf(v reflect.Value) (text string, given bool) {
	switch x := v.Interface().(type) {
	case string:
		return x, x != ""
	case bool:
		return "", x
	case time.Time:
		return x.Format(time.RFC3339Nano), !x.IsZero()
	case fmt.Stringer:
		if v.Kind() != reflect.Pointer {
			return x.String(), x.String() != ""
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			text, _ = textOf(v.Elem())
		}
		return text, !v.IsNil()
	case reflect.Slice:
		var texts []string
		for i := range v.Len() {
			one, _ := textOf(v.Index(i))
			texts = append(texts, one)
		}
		return strings.Join(texts, " "), len(texts) > 0
	}
	return fmt.Sprint(v.Interface()), true
}
