package accounts

import (
	"slices"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/messaging/otp"
)

// OTP holds the commands of makola otp.
type OTP struct {
	Ranges otpRanges `cmd:"" aliases:"taps" help:"List ranges of phone numbers that are closed for one-time passwords because too few were verified."`
	Reopen otpReopen `cmd:"" help:"Reopen a closed range before its time."`
}

func closedRangeColumns() []frame.Column[otp.ClosedRange] {
	return []frame.Column[otp.ClosedRange]{
		{Name: "tenant", Value: func(r otp.ClosedRange) any { return r.Tenant }},
		{Name: "range", Value: func(r otp.ClosedRange) any { return r.Prefix }},
		{Name: "sent", Value: func(r otp.ClosedRange) any { return r.Sent }},
		{Name: "verified", Value: func(r otp.ClosedRange) any { return r.Verified }},
		{Name: "closed_at", Value: func(r otp.ClosedRange) any { return r.At }},
		{Name: "until", Value: func(r otp.ClosedRange) any { return r.Until }},
	}
}

type otpRanges struct {
	frame.Common
}

// Run lists closed ranges.
func (c *otpRanges) Run(e *frame.Env) error {
	return c.WithMessaging(e, func(_ *frame.Opened, m *messaging.Messaging) error {
		all, err := m.Codes.ClosedRanges(e.Ctx)
		if err != nil {
			return err
		}
		return frame.PrintAll(e.Stdout, c.Output, closedRangeColumns(), all)
	})
}

type otpReopen struct {
	frame.Common
	frame.Writing
	Tenant string `arg:"" name:"account" help:"Id or unique name of the account."`
	Range  string `arg:"" help:"First digits of the range, as makola otp ranges lists them, or a number in the range."`
	Reason string `name:"reason" required:"" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// Run reopens a range. Every node applies it from its next one-time password on.
func (c *otpReopen) Run(e *frame.Env) error {
	var before []otp.ClosedRange
	return frame.Alias{Kind: changes.KindReopen, Prepare: func(q *frame.Ask) (err error) {
		if err = q.Accounts(); err == nil {
			before, err = q.Changes.Messaging.Codes.ClosedRanges(e.Ctx)
		}
		return err
	}, Show: func(q *frame.Ask) error {
		was := slices.IndexFunc(before, func(r otp.ClosedRange) bool {
			return r.Tenant == q.Values[changes.FieldTenant] && r.Prefix == otp.RangeOf(c.Range)
		})
		if was < 0 { // the range closed and reopened in the meantime
			return nil
		}
		return frame.PrintOne(e.Stdout, c.Output, closedRangeColumns(), before[was])
	}}.Request(e, &c.Common, map[string]string{"account": c.Tenant, "range": c.Range, "reason": c.Reason})
}
