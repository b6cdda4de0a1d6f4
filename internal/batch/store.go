package batch

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

const batchColumns = `id, tenant, mode, name, code, repetition, again, maker, access_key, status, cause, notes, digest, blocks, plan, ready, amount, charges,
overlap, lines, accepted, rest, next, version, created_at, changed_at, requested_at, started_at, paused_at, ended_at, names_scope, names_next, names_at, tally, request`

func (b *Batch) scan(r *db.Row) error {
	var notes, blocks, tally string
	err := r.Scan(&b.ID, &b.Tenant, &b.Mode, &b.Name, &b.Code, &b.Repetition, &b.Again, &b.Requester, &b.Key, &b.Status, &b.Cause, &notes, &b.Digest, &blocks, &b.Plan,
		&b.Ready, &b.Amount, &b.Charges, &b.Overlap, &b.Lines, &b.Accepted, &b.Rest, &b.Next, &b.version,
		&b.CreatedAt, &b.ChangedAt, &b.RequestedAt, &b.StartedAt, &b.PausedAt, &b.EndedAt, &b.Scope, &b.namesNext, &b.NamesAt, &tally, &b.Request)
	b.Notes, b.blocks = listed(notes), listed(blocks)
	if err == nil {
		b.tally, err = decodeCounts(tally)
	}
	return err
}

// listed divides a text into its lines; an empty one has none.
func listed(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

const (
	insertBatch = `INSERT INTO batches (id, tenant, mode, name, code, repetition, again, maker, access_key, status, notes, lines, created_at, changed_at, tally)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'draft', $10, $11, $12, $12, $13)`

	selectBatch = `SELECT ` + batchColumns + ` FROM batches WHERE tenant = $1 AND id = $2`

	selectLocked = selectBatch + ` FOR UPDATE`

	// The index batches_code decides which batches occupy their code.
	selectByCode = `SELECT ` + batchColumns + ` FROM batches WHERE tenant = $1 AND code = $2
AND (status IN ('draft', 'requested', 'running', 'paused', 'finished') OR accepted > 0)`

	countDrafts = `SELECT count(*) FROM batches WHERE tenant = $1 AND status = 'draft'`

	// The version guards the locked read.
	updateBatch = `UPDATE batches SET status = $3, cause = $4, digest = $5, blocks = $6, plan = $7, ready = $8, amount = $9, charges = $10, overlap = $11,
	code = $12, repetition = $13, again = $14, accepted = $15, rest = $16, next = $17, version = version + 1,
	changed_at = $18, requested_at = $19, started_at = $20, paused_at = $21, ended_at = $22,
	names_scope = $23, names_next = $24, names_at = $25, tally = $26, request = $27
WHERE id = $1 AND version = $2`

	listBatches = `SELECT ` + batchColumns + ` FROM batches WHERE tenant = $1 AND id < $2 ORDER BY id DESC LIMIT $3`

	ofTenant = ` FROM batches WHERE tenant = $1 AND ($2 = '' OR status = $2)`

	countOfTenant = `SELECT count(*)` + ofTenant

	pageOfTenant = `SELECT ` + batchColumns + ofTenant + ` ORDER BY id DESC LIMIT $3 OFFSET $4`
)

// Get reads a batch of a tenant.
func (s *Batches) Get(ctx context.Context, tenant, id string) (Batch, error) {
	return db.Get(ctx, s.db, func(tx *db.Tx) (Batch, error) { return one(tx, selectBatch, tenant, id) })
}

// one reads a batch, or refuses with NotFound.
func one(tx *db.Tx, sql string, args ...any) (b Batch, err error) {
	found := false
	err = tx.Query(sql, args, func(r *db.Row) error {
		b, found = Batch{}, true
		return b.scan(r)
	})
	if err == nil && !found {
		err = problem.New(problem.NotFound, "batch_not_found", "Batch not found")
	}
	return b, err
}

// lock reads a batch under the lock of its row. A caller that also locks the wallet locks it first.
func lock(tx *db.Tx, tenant, id string) (Batch, error) { return one(tx, selectLocked, tenant, id) }

// store writes a batch as it was read under its lock and changed since.
func (s *Batches) store(tx *db.Tx, b Batch) error {
	n, err := tx.Exec(updateBatch, b.ID, b.version, b.Status, b.Cause, b.Digest, strings.Join(b.blocks, "\n"), b.Plan, int64(b.Ready), int64(b.Amount), int64(b.Charges),
		int64(b.Overlap), b.Code, int64(b.Repetition), b.Again, int64(b.Accepted), int64(b.Rest), int64(b.Next),
		db.Micros(s.clock.Now()), db.Micros(b.RequestedAt), db.Micros(b.StartedAt), db.Micros(b.PausedAt), db.Micros(b.EndedAt),
		string(b.Scope), int64(b.namesNext), db.Micros(b.NamesAt), encodeCounts(b.tally), b.Request)
	if err == nil && n != 1 {
		err = fmt.Errorf("batch: %s changed under its lock", b.ID)
	}
	return err
}

// List gives a tenant's batches, newest first; after is the id of the last one of the page before.
func (s *Batches) List(ctx context.Context, tenant, after string, limit int) (list []Batch, err error) {
	if after == "" {
		after = "g" // sorts after every id, because ids are hexadecimal
	}
	return db.ReadAll(db.Bulk(ctx, tenant), s.db, listBatches, []any{tenant, after, int64(limit)}, (*Batch).scan)
}

// Page returns a page of a tenant's batches with a status, newest first, and the number of all of them. An empty status means all. Pages count
// from 1. The sums of a draft are those of its ready rows.
func (s *Batches) Page(ctx context.Context, tenant string, status Status, page, size int) (list []Batch, total int, err error) {
	err = s.db.Read(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		list = nil
		first := (page - 1) * size
		if _, err := tx.One(countOfTenant, []any{tenant, status}, &total); err != nil || first >= total {
			return err
		}
		list, err = db.All(tx, pageOfTenant, []any{tenant, status, int64(size), int64(first)}, (*Batch).scan)
		return err
	})
	for i := range list {
		if err == nil && list[i].Status == Draft {
			var counted Counts
			counted, err = s.Count(ctx, list[i])
			list[i].Amount, list[i].Charges = counted.Amount, counted.Charges
		}
	}
	return list, total, err
}

const (
	rowColumns = `line, source, state, channel, account, account_name, amount, charges, reference, note, given, problems, payment, reason, bank, unsettled, registered, named, name_rail`

	selectRows = `SELECT ` + rowColumns + ` FROM batch_rows WHERE batch = $1 AND line BETWEEN $2 AND $3 ORDER BY line`

	selectRow = `SELECT ` + rowColumns + ` FROM batch_rows WHERE batch = $1 AND line = $2`

	// The query joins each row with its batch, so that both engines find each row by its key instead of reading the
	// whole batch. unindexed(state) keeps PostgreSQL from reading an index of the rows in a state: while it has the
	// statistics of a small table, that plan looks as cheap.
	updateRows = `UPDATE batch_rows SET state = r.state, channel = r.channel, bank = r.bank, account = r.account, account_name = r.account_name, amount = r.amount,
	charges = r.charges, reference = r.reference, note = r.note, given = r.given, problems = r.problems, unsettled = r.unsettled,
	registered = r.registered, named = r.named, name_rail = r.name_rail FROM rows($1) AS r
WHERE batch_rows.batch IN (r.batch) AND batch_rows.line = r.line AND unindexed(batch_rows.state) IN ('bad', 'ready', 'dropped')`

	updateCharges = `UPDATE batch_rows SET charges = r.charges FROM rows($1) AS r WHERE batch_rows.batch IN (r.batch) AND batch_rows.line = r.line`

	updateDecided = `UPDATE batch_rows SET state = r.state, payment = r.payment, reason = r.reason FROM rows($1) AS r
WHERE batch_rows.batch IN (r.batch) AND batch_rows.line = r.line AND unindexed(batch_rows.state) = 'ready'`

	deleteRows = `DELETE FROM batch_rows WHERE batch = $1 AND line BETWEEN $2 AND $3`
)

func (row *Row) scan(r *db.Row) error {
	var given, problems string
	var payment *string
	err := r.Scan(&row.Line, &row.Source, &row.State, &row.Channel, &row.Account, &row.Name, &row.Amount, &row.Charges, &row.Reference, &row.Note, &given, &problems, &payment, &row.Reason,
		&row.Bank, &row.unsettled, &row.Registered, &row.Named, &row.NameRail)
	if err != nil {
		return err
	}
	if payment != nil {
		row.Payment = *payment
	}
	if given != "" {
		if err := json.Unmarshal([]byte(given), &row.Given); err != nil {
			return fmt.Errorf("batch: parse the cells of row %d: %w", row.Line, err)
		}
	}
	if problems != "" {
		err = json.Unmarshal([]byte(problems), &row.Problems)
	}
	return err
}

// rowOf reads one row, or refuses with NotFound.
func rowOf(tx *db.Tx, id string, line int) (row Row, err error) {
	found := false
	err = tx.Query(selectRow, []any{id, int64(line)}, func(r *db.Row) error {
		found = true
		return row.scan(r)
	})
	if err == nil && !found {
		err = problem.New(problem.NotFound, "row_not_found", fmt.Sprintf("The batch has no row %d", line))
	}
	return row, err
}

func encodeProblems(p map[string][]string) string {
	if len(p) == 0 {
		return ""
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic("batch: problems of strings do not encode: " + err.Error())
	}
	return string(b)
}

// storedRow is a row as it is inserted.
type storedRow struct {
	batch, tenant string
	Row
}

var insertColumns = []db.Column[storedRow]{
	{Name: "batch", Text: func(r storedRow) string { return r.batch }},
	{Name: "line", Int: func(r storedRow) int64 { return int64(r.Line) }},
	{Name: "source", Int: func(r storedRow) int64 { return int64(r.Source) }},
	{Name: "tenant", Text: func(r storedRow) string { return r.tenant }},
	{Name: "state", Text: func(r storedRow) string { return string(r.State) }},
	{Name: "channel", Text: func(r storedRow) string { return r.Channel }},
	{Name: "account", Text: func(r storedRow) string { return r.Account }},
	{Name: "account_name", Text: func(r storedRow) string { return r.Name }},
	{Name: "amount", Int: func(r storedRow) int64 { return int64(r.Amount) }},
	{Name: "charges", Int: func(r storedRow) int64 { return int64(r.Charges) }},
	{Name: "reference", Text: func(r storedRow) string { return r.Reference }},
	{Name: "note", Text: func(r storedRow) string { return r.Note }},
	{Name: "given", Text: func(r storedRow) string { return encodeGiven(r.Given) }},
	{Name: "problems", Text: func(r storedRow) string { return encodeProblems(r.Problems) }},
	{Name: "bank", Text: func(r storedRow) string { return r.Bank }},
	{Name: "unsettled", Text: func(r storedRow) string { return r.unsettled }},
	{Name: "registered", Text: func(r storedRow) string { return r.Registered }},
	{Name: "named", Text: func(r storedRow) string { return string(r.Named) }},
	{Name: "name_rail", Text: func(r storedRow) string { return r.NameRail }},
}

var decidedColumns = []db.Column[storedRow]{
	{Name: "batch", Text: func(r storedRow) string { return r.batch }},
	{Name: "line", Int: func(r storedRow) int64 { return int64(r.Line) }},
	{Name: "state", Text: func(r storedRow) string { return string(r.State) }},
	{Name: "payment", NullText: func(r storedRow) *string {
		if r.Payment == "" {
			return nil
		}
		return &r.Payment
	}},
	{Name: "reason", Text: func(r storedRow) string { return r.Reason }},
}

var chargeColumns = []db.Column[storedRow]{
	{Name: "batch", Text: func(r storedRow) string { return r.batch }},
	{Name: "line", Int: func(r storedRow) int64 { return int64(r.Line) }},
	{Name: "charges", Int: func(r storedRow) int64 { return int64(r.Charges) }},
}

// Rows reads rows of a batch from a line on, at most a set of 1,000 lines.
func (s *Batches) Rows(ctx context.Context, tenant, id string, from int) ([]Row, error) {
	b, err := s.Get(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return s.rowsOf(ctx, b, from)
}

// rowsOf is Rows of a batch that was read.
func (s *Batches) rowsOf(ctx context.Context, b Batch, from int) ([]Row, error) {
	return db.Get(db.Bulk(ctx, b.Tenant), s.db, func(tx *db.Tx) ([]Row, error) { return rowsIn(tx, b.ID, from, from+blockRows-1) })
}

func rowsIn(tx *db.Tx, id string, from, to int) ([]Row, error) {
	return db.All(tx, selectRows, []any{id, int64(from), int64(to)}, (*Row).scan)
}

// eachSet reads all rows of a batch in sets of whole blocks, each in a transaction of its own.
func (s *Batches) eachSet(ctx context.Context, b Batch, do func([]Row) error) error {
	for from := 1; from <= b.Lines; from += blockRows {
		rows, err := s.rowsOf(ctx, b, from)
		if err != nil {
			return err
		}
		if err := do(rows); err != nil {
			return err
		}
	}
	return nil
}

// erase deletes the rows of a batch, in parts.
func (s *Batches) erase(ctx context.Context, tenant, id string, lines int) error {
	for from := 1; from <= lines; from += blockRows {
		if _, err := s.db.Exec(db.Bulk(ctx, tenant), deleteRows, id, int64(from), int64(from+blockRows-1)); err != nil {
			return err
		}
	}
	return nil
}

// ready returns the rows of a set that will be paid.
func ready(rows []Row) []Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.State != RowReady })
}

// counted computes the counts of a batch that another release stored without them.
func (b *Batch) counted(tx *db.Tx) error {
	if b.tally != nil {
		return nil
	}
	c, err := countIn(tx, b.ID)
	b.tally = &c
	return err
}

// replaces changes the counts as if a row replaced another one.
func (b *Batch) replaces(old, row Row) {
	b.tally.add(old, -1)
	b.tally.add(row, 1)
}

// Count returns the numbers of rows of a batch. They are stored with it, unless another version made it.
func (s *Batches) Count(ctx context.Context, b Batch) (c Counts, err error) {
	if b.tally != nil {
		return *b.tally, nil
	}
	return db.Get(db.Bulk(ctx, b.Tenant), s.db, func(tx *db.Tx) (Counts, error) { return countIn(tx, b.ID) })
}
