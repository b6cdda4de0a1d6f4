package batches

import (
	"context"
	"fmt"
	"strconv"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/roles"
)

// settleInputs are the fields of the form of networks and banks: a text of the file, and the choice for it.
func settleInputs() (list []console.Input) {
	for i := range batch.MaxUnsettled {
		list = append(list, console.Input{Name: "key" + strconv.Itoa(i), Max: 101}, console.Input{Name: "choice" + strconv.Itoa(i), Max: 100})
	}
	return list
}

// networks returns the choices of networks.
func networks() (list []page.Option) {
	for _, n := range msisdn.Networks() {
		list = append(list, page.Option{Value: string(n), Text: n.Name()})
	}
	return list
}

// unsettled returns a question for each distinct text that names no network or bank, and for each prefix of numbers
// without a network.
func (ps *Pages) unsettled(v *console.Visit, b batch.Batch, n batch.Counts) (templ.Component, error) {
	if n.Rows[batch.RowBad] == 0 || !v.Can(roles.RequestPayouts) || v.Viewing {
		return nil, nil
	}
	list, err := ps.Batches.Unsettled(v.Ctx, b)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	banks, err := ps.Batches.Banks(v.Ctx, v.Tenant.ID)
	if err != nil {
		return nil, err
	}
	f := page.Form{ID: "settle", Action: here(v, b) + "/settle", Submit: "Set networks and banks"}
	for i, u := range list {
		choices := append([]page.Option{{Text: "Leave as it is"}}, networks()...)
		for _, bank := range banks {
			choices = append(choices, page.Option{Value: bank.ID, Text: bank.Name})
		}
		hint := "No proposal."
		if u.Proposal != "" {
			hint = "The choice is a proposal. Check it before you continue."
		}
		f.Fields = append(f.Fields, page.Field{Name: "key" + strconv.Itoa(i), Type: "hidden", Value: u.Key},
			page.Field{Name: "choice" + strconv.Itoa(i), Label: unsettledLabel(u), Value: u.Proposal, Options: choices, Hint: hint})
	}
	return page.Panel("Networks and banks", page.Asking(f)), nil
}

func unsettledLabel(u batch.Unsettled) string {
	rows := fmt.Sprintf("%s rows", page.Count(int64(u.Rows)))
	if u.Rows == 1 {
		rows = "1 row"
	}
	switch {
	case u.Text != "":
		return fmt.Sprintf("“%s” (%s)", u.Text, rows)
	case u.Prefix != "":
		return fmt.Sprintf("No network, numbers that begin with %s (%s)", u.Prefix, rows)
	}
	return fmt.Sprintf("No network or bank (%s)", rows)
}

// settle applies the chosen network or bank to all rows with the same text.
func (ps *Pages) settle(v *console.Visit) (console.Answer, error) {
	return ps.to(v, func(ctx context.Context, b batch.Batch) error {
		for i := range batch.MaxUnsettled {
			key, choice := v.R.PostFormValue("key"+strconv.Itoa(i)), v.R.PostFormValue("choice"+strconv.Itoa(i))
			if key == "" || choice == "" {
				continue
			}
			if _, err := ps.Batches.Settle(ctx, b.Tenant, b.ID, key, choice); err != nil {
				return err
			}
		}
		return nil
	})
}
