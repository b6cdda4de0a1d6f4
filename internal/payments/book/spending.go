package book

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// A spender is an access key with a daily limit.
type spender struct{ tenant, key string }

// spent is a key's spending of today, in earlier transactions and in this transaction.
type spent struct{ before, now money.Pesewas }

// spending has today's spending of all keys of a transaction. The wallet, which is locked first, protects it from
// concurrent changes.
type spending map[spender]*spent

func spenderOf(p Payment) spender { return spender{p.Tenant, p.Key} }

// The next day also counts as today, because another node's clock may run slightly ahead.
const keySpending = `SELECT tenant, access_key, spent FROM key_spending
WHERE (tenant, access_key) IN (SELECT k.tenant, k.access_key FROM rows($1) AS k) AND day BETWEEN $2 AND $2 + 1`

var spenderColumns = []db.Column[spender]{
	{Name: "tenant", Text: func(s spender) string { return s.tenant }},
	{Name: "access_key", Text: func(s spender) string { return s.key }},
}

// query returns the query that reads today's spending.
func (all spending) query(today int64) db.Query {
	return db.Query{SQL: keySpending, Args: []any{db.RowsOf(spenderColumns, all.keys()), today}, Each: func(r *db.Row) error {
		var k spender
		var before int64
		err := r.Scan(&k.tenant, &k.key, &before)
		all[k] = &spent{before: money.Pesewas(before)}
		return err
	}}
}

func (all spending) keys() []spender {
	keys := make([]spender, 0, len(all))
	for k := range all {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b spender) int { return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.key, b.key)) })
	return keys
}

// take adds an acceptance's hold to the spending of its key, or refuses the acceptance.
func (all spending) take(a *Acceptance, held money.Pesewas) error {
	s := all[spenderOf(a.Payment)]
	if rest := a.Daily - s.before - s.now; held > rest {
		return problem.New(problem.Forbidden, "daily_limit_reached",
			fmt.Sprintf("This API key may spend GHS %s a day. GHS %s remain until midnight UTC and this payment needs GHS %s. Send a smaller amount, or raise the limit of the key", a.Daily, max(rest, 0), held))
	}
	s.now += held
	return nil
}

// spentRow is a key's spending as it is stored.
type spentRow struct {
	spender
	*spent
}

var spentColumns = []db.Column[spentRow]{
	{Name: "tenant", Text: func(r spentRow) string { return r.tenant }},
	{Name: "access_key", Text: func(r spentRow) string { return r.key }},
	{Name: "spent", Int: func(r spentRow) int64 { return int64(r.now) }},
}

const spendingUpsert = `INSERT INTO key_spending (tenant, access_key, day, spent)
SELECT s.tenant, s.access_key, CAST($2 AS BIGINT), s.spent FROM rows($1) AS s WHERE true
ON CONFLICT (tenant, access_key) DO UPDATE SET
	spent = CASE WHEN key_spending.day BETWEEN excluded.day AND excluded.day + 1 THEN key_spending.spent + excluded.spent ELSE excluded.spent END,
	day = CASE WHEN key_spending.day = excluded.day + 1 THEN key_spending.day ELSE excluded.day END`

// deferWrites defers the writes of the spending of this transaction.
func (all spending) deferWrites(tx *db.Tx, today int64) {
	var rows []spentRow
	for _, k := range all.keys() {
		if s := all[k]; s.now > 0 {
			rows = append(rows, spentRow{k, s})
		}
	}
	if len(rows) > 0 {
		tx.Defer(spendingUpsert, int64(len(rows)), db.RowsOf(spentColumns, rows), today)
	}
}

const spentToday = `SELECT spent FROM key_spending WHERE tenant = $1 AND access_key = $2 AND day BETWEEN $3 AND $3 + 1`

// SpentToday returns the spending of a key with a daily limit since midnight UTC.
func (rd *Reader) SpentToday(ctx context.Context, tenant, key string) (spent money.Pesewas, err error) {
	_, err = rd.db.ReadOne(ctx, spentToday, []any{tenant, key, clock.Day(rd.clock.Now())}, &spent)
	return spent, err
}
