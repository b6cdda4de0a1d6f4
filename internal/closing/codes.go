package closing

import (
	"cmp"
	"context"
	"regexp"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
)

// Code is the accountant's code of an account of the ledger, or of a class of accounts such as wallet:*.
type Code struct {
	Account ledger.AccountID
	Code    string // empty: the account's own name
}

// Codes map accounts to the accountant's codes.
type Codes map[ledger.AccountID]string

// Of returns the code of an account: its own, the code of its class, or the account's name.
func (c Codes) Of(id ledger.AccountID) string {
	return cmp.Or(c[id], c[id.Class()], string(id.Class()))
}

const (
	selectCodes = `SELECT account, code FROM account_codes ORDER BY account`
	selectCode  = `SELECT code FROM account_codes WHERE account = $1 FOR UPDATE`
	setCode     = `INSERT INTO account_codes (account, code, actor, at) VALUES ($1, $2, $3, $4)
	ON CONFLICT (account) DO UPDATE SET code = excluded.code, actor = excluded.actor, at = excluded.at`
	dropCode   = `DELETE FROM account_codes WHERE account = $1`
	countCodes = `SELECT count(*) FROM account_codes`
)

// mostCodes bounds the codes that an installation keeps.
const mostCodes = 2000

// Codes reads the map.
func (b *Books) Codes(ctx context.Context) (codes Codes, err error) {
	err = b.db.Read(ctx, func(tx *db.Tx) error {
		codes = Codes{}
		return tx.Query(selectCodes, nil, func(r *db.Row) error {
			var c Code
			err := r.Scan(&c.Account, &c.Code)
			codes[c.Account] = c.Code
			return err
		})
	})
	return codes, err
}

var (
	accountName = regexp.MustCompile(`^[a-z][a-z0-9_-]*([:/][A-Za-z0-9._*-]+){0,3}$`)
	codeText    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._/-]{0,39}$`)
)

// CheckCode refuses a code that cannot be a code of a chart of accounts.
func CheckCode(c Code) error {
	var bad problem.Fields
	if !accountName.MatchString(string(c.Account)) || len(c.Account) > 120 {
		bad.Add("account", "must be an account of the ledger, such as wallet:* or bank/gcb-main")
	}
	if c.Code != "" && !codeText.MatchString(c.Code) {
		bad.Add("code", "must have at most 40 letters, digits, spaces, points, dashes and slashes")
	}
	return bad.Err()
}

// SetCode sets or removes the code of an account in tx, and returns the previous code.
func (b *Books) SetCode(tx *db.Tx, c Code, actor string) (before string, err error) {
	if err := CheckCode(c); err != nil {
		return "", err
	}
	if _, err := tx.One(selectCode, []any{c.Account}, &before); err != nil {
		return "", err
	}
	if c.Code == "" {
		tx.Defer(dropCode, -1, c.Account)
		return before, nil
	}
	var n int64
	if _, err := tx.One(countCodes, nil, &n); err != nil {
		return before, err
	}
	if before == "" && n >= mostCodes {
		return before, problem.Field("account", "exceeds the maximum number of codes: use a class such as wallet:*")
	}
	tx.Defer(setCode, 1, c.Account, c.Code, actor, b.clock.Now())
	return before, nil
}
