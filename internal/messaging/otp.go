package messaging

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/messaging/otp"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// OTP requests a one-time password. Length is in digits. Zero fields get their defaults.
type OTP struct {
	SenderID string
	Message  string // contains otp.Placeholder
	Phone    msisdn.MSISDN
	Length   int
	Expiry   time.Duration
}

// OTPSent is an accepted one-time password.
type OTPSent struct {
	RequestID string
	Prefix    string // shown with the code, so that the user can match request and code
}

// SendOTP creates a code, charges for it and sends it. It voids an earlier open code for the same number.
//
// Errors: Invalid (senderId, message, length, expiry, an idempotency key with another body), InsufficientCredits with
// Shortage as Data, RateLimited (the number, or its range), Unavailable (no SMS rail).
func (m *Messaging) SendOTP(ctx context.Context, caller idempotency.Caller, o OTP) (sent OTPSent, replayed bool, err error) {
	t, err := m.tenants.Get(ctx, caller.Tenant)
	if err != nil {
		return OTPSent{}, false, err
	}
	if c, replayed, err := m.delivery.Earlier(ctx, caller); err != nil {
		return OTPSent{}, false, err
	} else if replayed {
		return m.otpAgain(ctx, c)
	}
	var bad problem.Fields
	o.check(&bad)
	// The checks need only the length of the code. The code itself is derived from the id that newCampaign makes.
	c, err := m.newCampaign(ctx, t, caller, "senderId", o.SenderID, otp.Sample(o.Message, o.Length), bad)
	if err != nil {
		return OTPSent{}, false, err
	}
	c.Kind, c.Message, c.Recipients, c.Promotional = delivery.KindOTP, o.Message, 1, false // not promotional: a code is sent at any hour
	code, err := m.Codes.Make(otp.Code{Tenant: t.ID, ID: c.ID, Number: o.Phone, Created: c.CreatedAt, Expires: c.CreatedAt.Add(o.Expiry)}, o.Length)
	if err != nil {
		return OTPSent{}, false, err
	}
	accepted, replayed, err := m.delivery.Accept(ctx, delivery.Order{Tenant: t, Campaign: c, Numbers: []msisdn.MSISDN{o.Phone}, Code: code})
	if err != nil {
		return OTPSent{}, false, err
	}
	if replayed {
		return m.otpAgain(ctx, accepted)
	}
	m.Codes.CountSent(code)
	return OTPSent{RequestID: accepted.ID, Prefix: code.Prefix}, false, nil
}

// otpAgain returns the earlier result of a request that repeats an idempotency key.
func (m *Messaging) otpAgain(ctx context.Context, c Campaign) (sent OTPSent, replayed bool, err error) {
	prefix, err := m.Codes.Prefix(ctx, c.Tenant, c.ID)
	return OTPSent{RequestID: c.ID, Prefix: prefix}, true, err
}

// check sets the defaults and adds the errors of the request to bad.
func (o *OTP) check(bad *problem.Fields) {
	if o.Length == 0 {
		o.Length = otp.LeastLength
	}
	if o.Expiry == 0 {
		o.Expiry = otp.DefaultExpiry
	}
	bad.Merge(otp.CheckTemplate(o.Message))
	if o.Length < otp.LeastLength || o.Length > otp.MostLength {
		bad.Add("length", fmt.Sprintf("must be %d to %d digits", otp.LeastLength, otp.MostLength))
	}
	if o.Expiry < otp.LeastExpiry || o.Expiry > otp.MostExpiry {
		bad.Add("expiry", "must be 2 to 1440 minutes")
	}
	if o.Phone == "" {
		bad.Add("phoneNumber", "is required")
	}
}
