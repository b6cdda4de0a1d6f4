package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// store has the rows of statements.
type store struct {
	db     *db.DB
	clock  *clock.Clock
	ledger *ledger.Ledger
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// idAt returns the prefix of the ids that were made at a time.
func idAt(at time.Time) string {
	ms := fmt.Sprintf("%012x", max(0, at.UnixMilli()))
	return ms[:8] + "-" + ms[8:]
}

// Statement is one file.
type Statement struct {
	ID           string
	Source       string
	FileName     string
	Digest       string
	Done         bool // all its lines are stored
	Uploader     string
	UploaderName string
	Lines        int
	Added        int // lines that no file had before
	Changed      int // lines whose amount or status the provider has changed
	First, Last  time.Time
	Opening      money.Pesewas
	Closing      money.Pesewas
	Chains       bool
	UploadedAt   time.Time
}

const (
	statementColumns = `id, source, file_name, digest, CASE WHEN state = 'read' THEN 1 ELSE 0 END, uploader, uploader_name, lines, added, changed, first_at, last_at, opening, closing, chains, uploaded_at`

	selectStatement = `SELECT ` + statementColumns + ` FROM statements WHERE id = $1`

	selectByDigest = `SELECT ` + statementColumns + ` FROM statements WHERE source = $1 AND digest = $2`

	listStatements = `SELECT ` + statementColumns + ` FROM statements WHERE id < $1 ORDER BY id DESC LIMIT $2`

	insertStatement = `INSERT INTO statements (id, source, file_name, digest, state, uploader, uploader_name, lines, added, changed, first_at, last_at, opening, closing, chains, uploaded_at)
VALUES ($1, $2, $3, $4, 'reading', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`

	finishStatement = `UPDATE statements SET state = 'read', read_at = $2 WHERE id = $1 AND state = 'reading'`
)

func (s *Statement) scan(r *db.Row) error {
	return r.Scan(&s.ID, &s.Source, &s.FileName, &s.Digest, &s.Done, &s.Uploader, &s.UploaderName, &s.Lines, &s.Added, &s.Changed, &s.First, &s.Last, &s.Opening, &s.Closing, &s.Chains, &s.UploadedAt)
}

// Statement returns a statement by its id.
func (s *store) Statement(ctx context.Context, id string) (one Statement, err error) {
	one, found, err := s.statement(ctx, selectStatement, id)
	if err == nil && !found {
		err = problem.New(problem.NotFound, "statement_not_found", "Statement not found")
	}
	return one, err
}

func (s *store) statement(ctx context.Context, sql string, args ...any) (one Statement, found bool, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		one, found = Statement{}, false
		return tx.Query(sql, args, func(r *db.Row) error {
			found = true
			return one.scan(r)
		})
	})
	return one, found, err
}

// Statements returns files, newest first; before is the id of the last one of the page before.
func (s *store) Statements(ctx context.Context, before string, limit int) (list []Statement, err error) {
	if before == "" {
		before = "g" // sorts after every id, because ids are hexadecimal
	}
	return db.ReadAll(db.Bulk(ctx, ""), s.db, listStatements, []any{before, int64(limit)}, (*Statement).scan)
}

// lineColumns are the columns that scanLine reads. The table must be named statement_lines.
const lineColumns = `statement_lines.id, statement_lines.source, statement_lines.statement, statement_lines.file_row, statement_lines.version, statement_lines.identity,
statement_lines.at, statement_lines.amount, statement_lines.fee, statement_lines.fee_known, statement_lines.balance, statement_lines.their_id, statement_lines.reference,
statement_lines.settlement, statement_lines.status, statement_lines.type, statement_lines.party, statement_lines.narrative`

func (l *Line) scan(r *db.Row, before ...any) error {
	var balance *int64
	err := r.Scan(append(before, &l.ID, &l.Source, &l.Statement, &l.Row, &l.Version, &l.Identity, &l.At, &l.Amount, &l.Fee, &l.FeeKnown, &balance, &l.TheirID, &l.Reference,
		&l.Settlement, &l.Status, &l.Type, &l.Party, &l.Text)...)
	if balance != nil {
		l.Balance, l.Balanced = money.Pesewas(*balance), true
	}
	return err
}

var insertLines = []db.Column[Line]{
	{Name: "id", Text: func(l Line) string { return l.ID }},
	{Name: "source", Text: func(l Line) string { return l.Source }},
	{Name: "identity", Text: func(l Line) string { return l.Identity }},
	{Name: "statement", Text: func(l Line) string { return l.Statement }},
	{Name: "file_row", Int: func(l Line) int64 { return int64(l.Row) }},
	{Name: "day", Int: func(l Line) int64 { return dayOf(l.At) }},
	{Name: "at", Time: func(l Line) time.Time { return l.At }},
	{Name: "amount", Int: func(l Line) int64 { return int64(l.Amount) }},
	{Name: "fee", Int: func(l Line) int64 { return int64(l.Fee) }},
	{Name: "fee_known", Bool: func(l Line) bool { return l.FeeKnown }},
	{Name: "balance", NullInt: func(l Line) *int64 {
		if !l.Balanced {
			return nil
		}
		balance := int64(l.Balance)
		return &balance
	}},
	{Name: "their_id", Text: func(l Line) string { return l.TheirID }},
	{Name: "reference", Text: func(l Line) string { return l.Reference }},
	{Name: "settlement", Text: func(l Line) string { return l.Settlement }},
	{Name: "status", Text: func(l Line) string { return string(l.Status) }},
	{Name: "type", Text: func(l Line) string { return l.Type }},
	{Name: "party", Text: func(l Line) string { return l.Party }},
	{Name: "narrative", Text: func(l Line) string { return l.Text }},
}

// dayOf returns the number of a day since 1970.
func dayOf(at time.Time) int64 { return at.Unix() / 86_400 }

const (
	linesByIdentity = `SELECT ` + lineColumns + ` FROM statement_lines WHERE source = $1 AND identity IN (SELECT value FROM texts($2))`

	linesByReference = `SELECT ` + lineColumns + ` FROM statement_lines WHERE reference IN (SELECT value FROM texts($1)) AND reference <> ''`

	linesByID = `SELECT ` + lineColumns + ` FROM statement_lines WHERE id IN (SELECT value FROM texts($1))`

	selectLine = `SELECT ` + lineColumns + ` FROM statement_lines WHERE id = $1`

	linesOfStatement = `SELECT ` + lineColumns + ` FROM statement_lines WHERE statement = $1 AND file_row > $2 ORDER BY file_row LIMIT $3`

	// Lines without a provider's id, by day, without those of the statement that is being read.
	countDays = `SELECT day, count(*) FROM statement_lines WHERE source = $1 AND day BETWEEN $2 AND $3 AND their_id = '' AND statement <> $4 GROUP BY day ORDER BY day`

	keepVersion = `INSERT INTO statement_versions (line, version, statement, file_row, status, amount, fee)
SELECT id, version, statement, file_row, status, amount, fee FROM statement_lines WHERE id = $1 AND version = $2`

	changeLine = `UPDATE statement_lines SET statement = $3, file_row = $4, version = version + 1, status = $5, amount = $6, fee = $7, balance = $8, judged = 0 WHERE id = $1 AND version = $2`
)

func queryLines(tx *db.Tx, sql string, args ...any) ([]Line, error) {
	return db.All(tx, sql, args, func(l *Line, r *db.Row) error { return l.scan(r) })
}

// Line returns a line by its id.
func (s *store) Line(ctx context.Context, id string) (l Line, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		list, err := queryLines(tx, selectLine, id)
		if err == nil && len(list) == 0 {
			err = problem.New(problem.NotFound, "line_not_found", "Line not found")
		}
		if err == nil {
			l = list[0]
		}
		return err
	})
	return l, err
}

// LinesOf returns the lines that a statement brought, in the order of the file. after is the last row of the page before.
func (s *store) LinesOf(ctx context.Context, statement string, after, limit int) ([]Line, error) {
	return db.Get(db.Bulk(ctx, ""), s.db, func(tx *db.Tx) ([]Line, error) {
		return queryLines(tx, linesOfStatement, statement, int64(after), int64(limit))
	})
}
