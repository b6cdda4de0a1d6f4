package messaging

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// OTP is a request for a one-time password. Length is in digits; zero members take their default.
type OTP struct {
	SenderID string
	Message  string // with the Placeholder
	Phone    msisdn.MSISDN
	Length   int
	Expiry   time.Duration
}

// OTPSent is an accepted one-time password.
type OTPSent struct {
	RequestID string
	Prefix    string // shown to the user beside the code, which tells requests apart
}

// SendOTP makes a code, charges and sends it. It voids an earlier open code for the same number. Errors: Invalid
// (senderId, message, length, expiry, an idempotency key with another body), InsufficientCredits with Shortage as
// Data, RateLimited (the number, or its range), Unavailable (no SMS rail).
func (m *Messaging) SendOTP(ctx context.Context, caller idempotency.Caller, o OTP) (sent OTPSent, replayed bool, err error) {
	if len(m.otp) == 0 {
		return OTPSent{}, false, errNoSecret
	}
	t, err := m.tenants.Get(ctx, caller.Tenant)
	if err != nil {
		return OTPSent{}, false, err
	}
	if c, replayed, err := m.admissions.earlier(ctx, caller); err != nil {
		return OTPSent{}, false, err
	} else if replayed {
		return m.otpAgain(ctx, c)
	}
	var bad problem.Fields
	o.check(&bad)
	// The checks need only the length of the code; the code itself follows from the id that newCampaign makes.
	text := strings.ReplaceAll(o.Message, Placeholder, strings.Repeat("0", min(max(o.Length, OTPLeastLength), OTPMostLength)))
	c, err := m.newCampaign(ctx, t, caller, "senderId", o.SenderID, text, bad)
	if err != nil {
		return OTPSent{}, false, err
	}
	c.Kind, c.Message, c.Recipients, c.numbers = KindOTP, o.Message, 1, []msisdn.MSISDN{o.Phone}
	row := &otpRow{tenant: t.ID, id: c.ID, msisdn: string(o.Phone), prefix: letters(), hash: m.otp[0].hashed(c.ID, m.otp[0].of(c.ID, o.Length)),
		length: o.Length, created: c.CreatedAt, expires: c.CreatedAt.Add(o.Expiry)}
	accepted, replayed, err := m.admissions.accept(ctx, &admission{tenant: t, campaign: c, otp: row,
		chunks: []chunk{{Tenant: t.ID, Campaign: c.ID, State: chunkReady, Recipients: c.numbers, CreatedAt: c.CreatedAt, Small: true}}})
	if err != nil {
		return OTPSent{}, false, err
	}
	if replayed {
		return m.otpAgain(ctx, accepted)
	}
	m.metrics.otpSent(o.Phone)
	return OTPSent{RequestID: accepted.ID, Prefix: row.prefix}, false, nil
}

// otpAgain answers a request whose idempotency key was used with what it made then.
func (m *Messaging) otpAgain(ctx context.Context, c Campaign) (sent OTPSent, replayed bool, err error) {
	err = m.db.Read(ctx, func(tx *db.Tx) error {
		_, err := tx.One(selectPrefix, []any{c.Tenant, c.ID}, &sent.Prefix)
		return err
	})
	sent.RequestID = c.ID
	return sent, true, err
}

// CheckTemplate refuses the message of a one-time password without a Placeholder. An empty message is refused with
// the other checks of a text.
func CheckTemplate(message string) error {
	if message == "" || strings.Contains(message, Placeholder) {
		return nil
	}
	return problem.Field("message", "must contain the placeholder "+Placeholder)
}

// check applies defaults and adds to bad what is wrong with the request.
func (o *OTP) check(bad *problem.Fields) {
	if o.Length == 0 {
		o.Length = OTPLeastLength
	}
	if o.Expiry == 0 {
		o.Expiry = OTPDefaultExpiry
	}
	bad.Merge(CheckTemplate(o.Message))
	if o.Length < OTPLeastLength || o.Length > OTPMostLength {
		bad.Add("length", fmt.Sprintf("must be %d to %d digits", OTPLeastLength, OTPMostLength))
	}
	if o.Expiry < OTPLeastExpiry || o.Expiry > OTPMostExpiry {
		bad.Add("expiry", "must be 2 to 1440 minutes")
	}
	if o.Phone == "" {
		bad.Add("phoneNumber", "is required")
	}
}

const selectPrefix = `SELECT prefix FROM otps WHERE tenant = $1 AND id = $2`

const (
	takeTry = `UPDATE otps SET tries = tries + 1 WHERE tenant = $1 AND id = $2 AND msisdn = $3 AND status = 'open' AND tries < $5 AND expires_at > $4 AND created_at <= $6`
	otpHash = `SELECT hash, tap_batch FROM otps WHERE tenant = $1 AND id = $2`
	useOTP  = `UPDATE otps SET status = 'used' WHERE tenant = $1 AND id = $2 AND status = 'open'`
)

// VerifyOTP compares a code. A wrong code is Invalid; a request that is unknown, of another number, expired, used,
// void or out of tries is Unauthenticated. The try is committed before the comparison, so that concurrent requests
// have no sixth. A client that lost the answer may repeat the request with the same Idempotency-Key: a right code
// stays right for it, and replayed is true.
func (m *Messaging) VerifyOTP(ctx context.Context, caller idempotency.Caller, requestID string, phone msisdn.MSISDN, code string) (replayed bool, err error) {
	if len(m.otp) == 0 {
		return false, errNoSecret
	}
	if _, err := uuid.Parse(requestID); err != nil {
		return false, noTry()
	}
	if replayed, err := m.verified(ctx, caller); replayed || err != nil {
		return replayed, err
	}
	err = m.verify(ctx, caller, requestID, phone, code)
	if problem.Is(err, problem.Unauthenticated) {
		// The same request may have been right meanwhile.
		if replayed, err := m.verified(ctx, caller); replayed || err != nil {
			return replayed, err
		}
	}
	return false, err
}

// verified reports whether a right code came with the caller's Idempotency-Key before.
func (m *Messaging) verified(ctx context.Context, caller idempotency.Caller) (right bool, err error) {
	_, right, err = idempotency.Recall[struct{}](ctx, m.answers, caller)
	return right, err
}

func (m *Messaging) verify(ctx context.Context, caller idempotency.Caller, requestID string, phone msisdn.MSISDN, code string) error {
	tenant := caller.Tenant
	if err := m.below(ctx, tenant, phone, failsCounter, otpFailWindow, otpFailsInWindow); err != nil {
		return err
	}
	var rows, batch int64
	var hash string
	err := m.db.Write(ctx, func(tx *db.Tx) error {
		var err error
		now := m.clock.Now()
		// A code from the time to come would last longer by as much as the clock was set back.
		if rows, err = tx.Exec(takeTry, tenant, requestID, string(phone), now, otpTries, now.Add(clock.Skew)); err != nil {
			return err
		}
		_, err = tx.One(otpHash, []any{tenant, requestID}, &hash, &batch)
		return err
	})
	if err != nil {
		return err
	}
	if rows == 0 {
		m.metrics.otpVerified(phone, otpClosed)
		return noTry()
	}
	if !m.otp.fits(requestID, code, hash) {
		if err := m.count(ctx, tenant, phone, failsCounter, otpFailWindow, otpFailsInWindow); err != nil && !problem.Is(err, problem.RateLimited) {
			return err
		}
		m.metrics.otpVerified(phone, otpWrong)
		return &problem.Error{Kind: problem.Invalid, Code: "wrong_code", Message: "The code is wrong", Fields: map[string][]string{"code": {"The code is wrong"}}}
	}
	err = m.db.Write(ctx, func(tx *db.Tx) error {
		var err error
		if rows, err = tx.Exec(useOTP, tenant, requestID); err != nil || rows == 0 {
			return err
		}
		if batch > 0 {
			tx.Defer(countVerified, -1, tenant, rangeOf(string(phone)), batch)
		}
		return m.answers.Keep(tx, caller, struct{}{})
	})
	switch {
	case err != nil:
	case rows == 0:
		err = noTry()
	default:
		m.metrics.otpVerified(phone, otpRight)
	}
	return err
}

func noTry() error {
	return problem.New(problem.Unauthenticated, "otp_not_open", otpNotOpen)
}

// count uses one of a number's allowance, exactly across nodes.
func (m *Messaging) count(ctx context.Context, tenant string, phone msisdn.MSISDN, name string, window time.Duration, most int64) error {
	now := m.clock.Now()
	var rows int64
	begun := now
	err := m.db.Write(ctx, func(tx *db.Tx) error {
		var err error
		rows, err = tx.Exec(countOTP, tenant, phone, name, now, now.Add(-window), now.Add(window), most)
		if err == nil && rows == 0 {
			var used int64
			_, err = tx.One(readOTPCounter, []any{tenant, phone, name}, &begun, &used)
		}
		return err
	})
	if err == nil && rows == 0 {
		err = tooOften(window - now.Sub(begun))
	}
	return err
}

// below refuses when a number's allowance is used up, and uses none of it.
func (m *Messaging) below(ctx context.Context, tenant string, phone msisdn.MSISDN, name string, window time.Duration, most int64) error {
	var begun time.Time
	var used int64
	err := m.db.Read(ctx, func(tx *db.Tx) error {
		_, err := tx.One(readOTPCounter, []any{tenant, string(phone), name}, &begun, &used)
		return err
	})
	if age := m.clock.Since(begun); err == nil && used >= most && age.Abs() < window {
		err = tooOften(window - age)
	}
	return err
}
