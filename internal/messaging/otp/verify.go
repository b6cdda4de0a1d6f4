package otp

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// tries is the maximum number of codes that are compared for one request.
const tries = 5

const notOpen = "The code is unknown, expired or used"

const (
	takeTry = `UPDATE otps SET tries = tries + 1 WHERE tenant = $1 AND id = $2 AND msisdn = $3 AND status = 'open' AND tries < $5 AND expires_at > $4 AND created_at <= $6`
	hashOf  = `SELECT hash, tap_batch FROM otps WHERE tenant = $1 AND id = $2`
	useCode = `UPDATE otps SET status = 'used' WHERE tenant = $1 AND id = $2 AND status = 'open'`
)

// Verify checks a code. For a wrong code it returns Invalid. It returns Unauthenticated for a request that is
// unknown, for another number, expired, used, void or out of tries. The try is committed before the comparison, so
// that concurrent requests cannot have more than tries. A client that lost the response may repeat the request with
// the same Idempotency-Key: a correct code is then accepted again, and replayed is true.
func (c *Codes) Verify(ctx context.Context, caller idempotency.Caller, requestID string, phone msisdn.MSISDN, code string) (replayed bool, err error) {
	if len(c.keys) == 0 {
		return false, errNoSecret
	}
	if _, err := uuid.Parse(requestID); err != nil {
		return false, noTry()
	}
	if replayed, err := c.verified(ctx, caller); replayed || err != nil {
		return replayed, err
	}
	err = c.verify(ctx, caller, requestID, phone, code)
	if problem.Is(err, problem.Unauthenticated) {
		// A concurrent request with the same Idempotency-Key may have verified the code.
		if replayed, err := c.verified(ctx, caller); replayed || err != nil {
			return replayed, err
		}
	}
	return false, err
}

// verified reports whether an earlier request with the caller's Idempotency-Key had the correct code.
func (c *Codes) verified(ctx context.Context, caller idempotency.Caller) (right bool, err error) {
	_, right, err = idempotency.Recall[struct{}](ctx, c.answers, caller)
	return right, err
}

func (c *Codes) verify(ctx context.Context, caller idempotency.Caller, requestID string, phone msisdn.MSISDN, code string) error {
	tenant := caller.Tenant
	if err := c.below(ctx, tenant, phone, failsCounter, failWindow, failsInWindow); err != nil {
		return err
	}
	var rows, batch int64
	var hash string
	err := c.db.Write(ctx, func(tx *db.Tx) error {
		var err error
		now := c.clock.Now()
		// A code with a time in the future is refused. It would be valid for longer, because the clock was set back.
		if rows, err = tx.Exec(takeTry, tenant, requestID, string(phone), now, tries, now.Add(clock.Skew)); err != nil {
			return err
		}
		_, err = tx.One(hashOf, []any{tenant, requestID}, &hash, &batch)
		return err
	})
	if err != nil {
		return err
	}
	if rows == 0 {
		c.metrics.countVerified(phone, resultClosed)
		return noTry()
	}
	if !c.keys.fits(requestID, code, hash) {
		if err := c.use(ctx, tenant, phone, failsCounter, failWindow, failsInWindow); err != nil && !problem.Is(err, problem.RateLimited) {
			return err
		}
		c.metrics.countVerified(phone, resultWrong)
		return &problem.Error{Kind: problem.Invalid, Code: "wrong_code", Message: "The code is wrong", Fields: map[string][]string{"code": {"The code is wrong"}}}
	}
	err = c.db.Write(ctx, func(tx *db.Tx) error {
		var err error
		if rows, err = tx.Exec(useCode, tenant, requestID); err != nil || rows == 0 {
			return err
		}
		if batch > 0 {
			tx.Defer(countVerified, -1, tenant, rangeOf(string(phone)), batch)
		}
		return c.answers.Keep(tx, caller, struct{}{})
	})
	switch {
	case err != nil:
	case rows == 0:
		err = noTry()
	default:
		c.metrics.countVerified(phone, resultRight)
	}
	return err
}

func noTry() error {
	return problem.New(problem.Unauthenticated, "otp_not_open", notOpen)
}

// use counts one use of a number's allowance, exactly even across nodes.
func (c *Codes) use(ctx context.Context, tenant string, phone msisdn.MSISDN, name string, window time.Duration, most int64) error {
	now := c.clock.Now()
	var rows int64
	begun := now
	err := c.db.Write(ctx, func(tx *db.Tx) error {
		var err error
		rows, err = tx.Exec(countUse, tenant, phone, name, now, now.Add(-window), now.Add(window), most)
		if err == nil && rows == 0 {
			var used int64
			_, err = tx.One(readUses, []any{tenant, phone, name}, &begun, &used)
		}
		return err
	})
	if err == nil && rows == 0 {
		err = tooOften(window - now.Sub(begun))
	}
	return err
}

// below returns an error if a number's allowance is used up. It does not count a use.
func (c *Codes) below(ctx context.Context, tenant string, phone msisdn.MSISDN, name string, window time.Duration, most int64) error {
	var begun time.Time
	var used int64
	_, err := c.db.ReadOne(ctx, readUses, []any{tenant, string(phone), name}, &begun, &used)
	if age := c.clock.Since(begun); err == nil && used >= most && age.Abs() < window {
		err = tooOften(window - age)
	}
	return err
}
