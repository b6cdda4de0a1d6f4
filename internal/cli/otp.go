package cli

import (
	"context"
	"slices"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/messaging/otp"
)

type otpCommands struct {
	Taps   otpTaps   `cmd:"" help:"List the ranges of numbers that are closed to a customer's one-time passwords, because too few were verified."`
	Reopen otpReopen `cmd:"" help:"Open a range again, before its time."`
}

func closedRangeColumns() []column[otp.ClosedRange] {
	return []column[otp.ClosedRange]{
		{"tenant", func(r otp.ClosedRange) any { return r.Tenant }},
		{"range", func(r otp.ClosedRange) any { return r.Prefix }},
		{"sent", func(r otp.ClosedRange) any { return r.Sent }},
		{"verified", func(r otp.ClosedRange) any { return r.Verified }},
		{"closed_at", func(r otp.ClosedRange) any { return r.At }},
		{"until", func(r otp.ClosedRange) any { return r.Until }},
	}
}

type otpTaps struct {
	common
}

// Run lists closed ranges.
func (c *otpTaps) Run(e *env) error {
	return c.withMessaging(e, func(_ *opened, m *messaging.Messaging) error {
		all, err := m.Codes.ClosedRanges(e.ctx)
		if err != nil {
			return err
		}
		return printAll(e.stdout, c.Output, closedRangeColumns(), all)
	})
}

type otpReopen struct {
	common
	writing
	Tenant string `arg:"" help:"Id or unique name of the customer."`
	Range  string `arg:"" help:"First digits of the numbers as otp taps lists them, or a number of the range."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Why, for the audit log."`
}

// Run opens a range; every node sees so with its next one-time password.
func (c *otpReopen) Run(e *env) error {
	return c.withMessaging(e, func(o *opened, m *messaging.Messaging) error {
		if err := o.known(e.ctx, &c.Tenant); err != nil {
			return err
		}
		prefix := otp.RangeOf(c.Range)
		all, err := m.Codes.ClosedRanges(e.ctx)
		if err != nil {
			return err
		}
		a := o.changes(config.Secret{})
		a.Messaging = m
		act, err := a.ReopenRange(e.ctx, o.by, newID(), c.Tenant, prefix, c.Reason)
		return o.asked(e, c.Output, act, err, func(context.Context) error {
			was := slices.IndexFunc(all, func(r otp.ClosedRange) bool { return r.Tenant == c.Tenant && r.Prefix == prefix })
			if was < 0 { // it closed and opened meanwhile
				return nil
			}
			return printOne(e.stdout, c.Output, closedRangeColumns(), all[was])
		})
	})
}
