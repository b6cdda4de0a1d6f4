package otp

import (
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

const (
	sendsInWindow = 5 // codes to one number of one tenant
	sendWindow    = 10 * time.Minute
	failsInWindow = 20 // failed verifications of one number, over all requests
	failWindow    = time.Hour
	sendsCounter  = "sent"
	failsCounter  = "failed"
)

// A window that begins too far in the future dates from before the clock was corrected. It counts as over, too.
const (
	countUse = `INSERT INTO otp_counters (tenant, msisdn, name, window_start, used) VALUES ($1, $2, $3, $4, 1)
		ON CONFLICT (tenant, msisdn, name) DO UPDATE SET
			used = CASE WHEN otp_counters.window_start > $5 AND otp_counters.window_start <= $6 THEN otp_counters.used + 1 ELSE 1 END,
			window_start = CASE WHEN otp_counters.window_start > $5 AND otp_counters.window_start <= $6 THEN otp_counters.window_start ELSE $4 END
		WHERE otp_counters.window_start <= $5 OR otp_counters.window_start > $6 OR otp_counters.used < $7`
	readUses = `SELECT window_start, used FROM otp_counters WHERE tenant = $1 AND msisdn = $2 AND name = $3`
)

// allowance counts the one-time passwords to a number in a window.
type allowance struct {
	begun time.Time // begin of the window
	used  int64
}

// allowances has the allowances of a transaction's numbers, by tenant and number. The transaction has locked each
// tenant's credits, so they cannot change meanwhile.
type allowances map[[2]string]allowance

// Each row is looked up on its own. A join that was planned while there were few counters reads a whole index.
const selectAllowances = `SELECT asked.of_tenant, asked.of_number,
		COALESCE((SELECT c.window_start FROM otp_counters c WHERE c.tenant = asked.of_tenant AND c.msisdn = asked.of_number AND c.name = 'sent'), 0),
		COALESCE((SELECT c.used FROM otp_counters c WHERE c.tenant = asked.of_tenant AND c.msisdn = asked.of_number AND c.name = 'sent'), 0)
	FROM rows($1) AS asked`

var numberColumns = []db.Column[*Code]{
	{Name: "of_tenant", Text: func(code *Code) string { return code.Tenant }},
	{Name: "of_number", Text: func(code *Code) string { return string(code.Number) }},
}

// query returns the query that reads the allowances of the codes' numbers.
func (all allowances) query(codes []*Code) db.Query {
	return db.Query{SQL: selectAllowances, Args: []any{db.RowsOf(numberColumns, codes)}, Each: func(r *db.Row) error {
		var of [2]string
		var used allowance
		err := r.Scan(&of[0], &of[1], &used.begun, &used.used)
		all[of] = used
		return err
	}}
}

// take counts one more code, or refuses it, within the requests of one transaction. countUse writes the same count to
// the row.
func (all allowances) take(code *Code, now time.Time) error {
	of := [2]string{code.Tenant, string(code.Number)}
	a := all[of]
	age := now.Sub(a.begun)
	switch {
	case age.Abs() >= sendWindow:
		a = allowance{begun: now}
	case a.used >= sendsInWindow:
		return tooOften(sendWindow - age)
	}
	a.used++
	all[of] = a
	return nil
}

func tooOften(wait time.Duration) error {
	return &problem.Error{Kind: problem.RateLimited, Code: "otp_too_often", Message: "Too many one-time passwords for this number, try later", RetryAfter: wait}
}
