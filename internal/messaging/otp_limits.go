package messaging

import (
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

const (
	otpSendsInWindow = 5 // to one number of one tenant
	otpSendWindow    = 10 * time.Minute
	otpFailsInWindow = 20 // of one number, across requests
	otpFailWindow    = time.Hour
	sendsCounter     = "sent"
	failsCounter     = "failed"
)

// A window that begins more than its length in the future predates a clock correction and is over, too.
const (
	countOTP = `INSERT INTO otp_counters (tenant, msisdn, name, window_start, used) VALUES ($1, $2, $3, $4, 1)
		ON CONFLICT (tenant, msisdn, name) DO UPDATE SET
			used = CASE WHEN otp_counters.window_start > $5 AND otp_counters.window_start <= $6 THEN otp_counters.used + 1 ELSE 1 END,
			window_start = CASE WHEN otp_counters.window_start > $5 AND otp_counters.window_start <= $6 THEN otp_counters.window_start ELSE $4 END
		WHERE otp_counters.window_start <= $5 OR otp_counters.window_start > $6 OR otp_counters.used < $7`
	readOTPCounter = `SELECT window_start, used FROM otp_counters WHERE tenant = $1 AND msisdn = $2 AND name = $3`
)

// allowance is how many one-time passwords to a number are used in a window.
type allowance struct {
	begun time.Time // of the window
	used  int64
}

// allowances are those of a transaction's numbers, by tenant and number. The lock of each tenant's credits, which the
// transaction has, keeps them unchanged.
type allowances map[[2]string]allowance

// Each row is looked up by itself, as in byIdempotency.
const otpAllowances = `SELECT asked.of_tenant, asked.of_number,
		COALESCE((SELECT c.window_start FROM otp_counters c WHERE c.tenant = asked.of_tenant AND c.msisdn = asked.of_number AND c.name = 'sent'), 0),
		COALESCE((SELECT c.used FROM otp_counters c WHERE c.tenant = asked.of_tenant AND c.msisdn = asked.of_number AND c.name = 'sent'), 0)
	FROM rows($1) AS asked`

var numberColumns = []db.Column[*otpRow]{
	{Name: "of_tenant", Text: func(o *otpRow) string { return o.tenant }},
	{Name: "of_number", Text: func(o *otpRow) string { return o.msisdn }},
}

// query reads the allowances of some codes' numbers.
func (all allowances) query(codes []*otpRow) db.Query {
	return db.Query{SQL: otpAllowances, Args: []any{db.RowsOf(numberColumns, codes)}, Each: func(r *db.Row) error {
		var of [2]string
		var used allowance
		err := r.Scan(&of[0], &of[1], &used.begun, &used.used)
		all[of] = used
		return err
	}}
}

// take counts one more password, or refuses it, among the requests of one transaction. countOTP writes the same
// count.
func (all allowances) take(o otpRow, now time.Time) error {
	of := [2]string{o.tenant, o.msisdn}
	a := all[of]
	age := now.Sub(a.begun)
	switch {
	case age.Abs() >= otpSendWindow:
		a = allowance{begun: now}
	case a.used >= otpSendsInWindow:
		return tooOften(otpSendWindow - age)
	}
	a.used++
	all[of] = a
	return nil
}

func tooOften(wait time.Duration) error {
	return &problem.Error{Kind: problem.RateLimited, Code: "otp_too_often", Message: "Too many one-time passwords for this number, try later", RetryAfter: wait}
}
