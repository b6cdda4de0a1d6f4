package reconcile

import (
	"context"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

const (
	hasStatements = `SELECT count(*) FROM statement_sources WHERE id = $1 AND layout <> ''`

	// Unused credits of banks, newest first.
	unusedCredits = `SELECT ` + lineColumns + ` FROM statement_lines WHERE source = $1 AND status = 'success' AND amount > 0
AND NOT EXISTS (SELECT 1 FROM statement_matches WHERE line = statement_lines.id)
AND NOT EXISTS (SELECT 1 FROM statement_exceptions e WHERE e.line = statement_lines.id AND e.line <> '' AND e.ended_at <> 0 AND e.ending <> 'agreed') ORDER BY day DESC, id DESC LIMIT $2`

	lockLine = selectLine + ` FOR UPDATE`

	uploadersOfLine = `SELECT statements.file_name, statements.uploader, statements.uploader_name FROM statements WHERE statements.id = $1`
)

// Credit is a line of a bank's statement that can pay for one deposit.
type Credit struct {
	Line
	Bank string // name of the bank account in the books
	Mode tenant.Mode
	File File
}

// HasStatements reports whether statements of a bank account were imported.
func (s *store) HasStatements(ctx context.Context, mode tenant.Mode, bank string) (has bool, err error) {
	n := 0
	_, err = s.db.ReadOne(ctx, hasStatements, []any{BankSource(string(mode), bank)}, &n)
	return n > 0, err
}

// CreditOf returns the credit of a line. It refuses a line that is not a credit, or that is used.
func (s *store) CreditOf(ctx context.Context, line string) (Credit, error) {
	return db.Get(ctx, s.db, func(tx *db.Tx) (Credit, error) { return creditIn(tx, selectLine, line) })
}

func creditIn(tx *db.Tx, sql, line string) (c Credit, err error) {
	list, err := queryLines(tx, sql, line)
	if err != nil {
		return c, err
	}
	if len(list) == 0 {
		return c, problem.Field("line", "is not a line of a statement")
	}
	c.Line = list[0]
	source, err := ParseSource(c.Source)
	if err != nil {
		return c, err
	}
	c.Bank, c.Mode = source.Account, source.Mode
	if !source.Bank() || !c.moves() || c.Amount <= 0 {
		return c, problem.Field("line", "must be money that came in at a bank account")
	}
	matched, err := queryMatches(tx, matchesOfLines, []string{line})
	if err != nil {
		return c, err
	}
	if len(matched) > 0 {
		return c, errUsed()
	}
	known, err := queryExceptions(tx, exceptionsOfLines, []string{line})
	if err != nil {
		return c, err
	}
	for _, e := range known {
		if e.Ending == EndedSuspend {
			return c, problem.Field("line", "is in suspense: move it from there to the wallet")
		}
	}
	return c, tx.Query(uploadersOfLine, []any{c.Statement}, func(r *db.Row) error { return r.Scan(&c.File.Name, &c.File.Uploader, &c.File.UploaderName) })
}

// Credits returns the credits of all bank accounts of a mode that can pay for a deposit, up to a limit for each
// account.
func (s *store) Credits(ctx context.Context, mode tenant.Mode, most int) (list []Credit, err error) {
	sources, err := s.Sources(ctx)
	if err != nil {
		return nil, err
	}
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		list = nil
		for _, source := range sources {
			if !source.Bank() || source.Mode != mode {
				continue
			}
			lines, err := queryLines(tx, unusedCredits, source.ID, int64(most))
			if err != nil {
				return err
			}
			for _, l := range lines {
				list = append(list, Credit{Line: l, Bank: source.Account, Mode: mode})
			}
		}
		return nil
	})
	return list, err
}

func errUsed() error {
	return problem.New(problem.Duplicate, "line_booked", "The money of the line is booked already")
}

// UseCredit marks a credit as used in tx, which also moves its amount into a wallet. If two transactions use the same
// line, the second is refused.
func (s *store) UseCredit(tx *db.Tx, line string, amount money.Pesewas, act, actor string) error {
	c, err := creditIn(tx, lockLine, line)
	if err != nil {
		return err
	}
	if c.Amount != amount {
		return problem.New(problem.Invalid, "changed_since", "The bank has changed the line since this was requested")
	}
	if err := s.book(tx, line, actor); err != nil {
		return err
	}
	known, err := queryExceptions(tx, exceptionsOfLines, []string{line})
	for _, e := range known {
		if err == nil && e.EndedAt.IsZero() {
			err = s.end(tx, []Exception{e}, EndedFunded, act)
		}
	}
	return err
}
