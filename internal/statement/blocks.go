package statement

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
)

const (
	// SumEvery is the pause between two runs of the job that sums blocks, and sumFor how long one run lasts.
	SumEvery = time.Minute
	sumFor   = 2 * time.Second

	// blockOf is the number of movements in one block.
	blockOf = 1000
)

const (
	selectBlocks = `SELECT block, opening, closing, sums FROM statement_blocks WHERE account = $1 AND block >= $2 AND block < $3 ORDER BY block`
	// The account of the first block that is whole and has no sums.
	selectUnsummed = `SELECT id, next FROM (
	SELECT w.id AS id, w.sequence AS sequence, COALESCE((SELECT max(b.block) + 1 FROM statement_blocks b WHERE b.account = w.id), 0) AS next
	FROM wallets w WHERE w.sequence >= $1) AS x WHERE sequence >= (next + 1) * $1 ORDER BY id LIMIT 1`
	insertBlock  = `INSERT INTO statement_blocks (account, block, opening, closing, sums) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (account, block) DO NOTHING`
	deleteBlocks = `DELETE FROM statement_blocks`
)

// A block is the stored sum of movements.
type block struct {
	opening, closing int64
	sums             Summary
}

// blocks reads the stored blocks from one block up to another. It leaves out a block with a problem, which may be corrected later.
func (r *Reader) blocks(ctx context.Context, account ledger.AccountID, from, to int64) (all map[int64]block, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		all = map[int64]block{}
		return tx.Query(selectBlocks, []any{account, from, to}, func(row *db.Row) error {
			var n int64
			var b block
			var sums string
			if err := row.Scan(&n, &b.opening, &b.closing, &sums); err != nil {
				return err
			}
			err := json.Unmarshal([]byte(sums), &b.sums)
			if b.sums.Problem == "" {
				all[n] = b
			}
			return err
		})
	})
	return all, err
}

// Overview sums a statement of any length as Summarize does, with the stored sums of its complete blocks. It compares the balances
// at the ends of blocks with each other. The check of the books verifies the movements within blocks.
func (r *Reader) Overview(ctx context.Context, s Statement) (Summary, error) {
	from, to := (s.First-1+blockOf-1)/blockOf, (s.End-1)/blockOf
	if from >= to {
		return r.Summarize(ctx, s)
	}
	stored, err := r.blocks(ctx, s.ID, from, to)
	if err != nil {
		return Summary{}, err
	}
	a := newAdder(s)
	if err := r.add(ctx, a, s, s.First, from*blockOf+1); err != nil {
		return Summary{}, err
	}
	for n := from; n < to; n++ {
		if b, is := stored[n]; is {
			a.addBlock(n, b)
		} else if err := r.add(ctx, a, s, n*blockOf+1, (n+1)*blockOf+1); err != nil {
			return Summary{}, err
		}
	}
	if err := r.add(ctx, a, s, to*blockOf+1, s.End); err != nil {
		return Summary{}, err
	}
	return r.ended(a), nil
}

// add adds the movements of a part of a statement, first <= number < end.
func (r *Reader) add(ctx context.Context, a *adder, s Statement, first, end int64) error {
	s.First, s.End = first, end
	return r.Each(ctx, s, a.add)
}

// addBlock adds a stored block.
func (a *adder) addBlock(n int64, b block) {
	if b.opening != a.balance || b.opening+b.sums.In-b.sums.Out != b.closing {
		a.wrong("The balance at movement %d is %s, and should be %s.", n*blockOf, b.opening, a.balance)
	}
	a.balance = b.closing
	for _, t := range b.sums.Totals {
		sum := a.total(t.Type, t.Channel)
		sum.Count, sum.In, sum.Out = sum.Count+t.Count, sum.In+t.In, sum.Out+t.Out
	}
	a.sum.In, a.sum.Out = a.sum.In+b.sums.In, a.sum.Out+b.sums.Out
	a.sum.Charged, a.sum.Returned, a.sum.Deducted = a.sum.Charged+b.sums.Charged, a.sum.Returned+b.sums.Returned, a.sum.Deducted+b.sums.Deducted
}

// SumBlocks sums the blocks that have become complete, for a limited time. Two nodes that run at once store the same sums.
func (r *Reader) SumBlocks(ctx context.Context) error {
	ctx = db.Bulk(ctx, "")
	for begun := time.Now(); time.Since(begun) < sumFor; {
		var account ledger.AccountID
		var n int64
		found, err := r.db.ReadOne(ctx, selectUnsummed, []any{blockOf}, &account, &n)
		if err != nil || !found {
			return err
		}
		if err := r.sumBlock(ctx, account, n); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) sumBlock(ctx context.Context, account ledger.AccountID, n int64) error {
	kind, id, _ := strings.Cut(string(account), ":")
	of, err := r.tenants.Get(ctx, id)
	if err != nil {
		return fmt.Errorf("statement: find the tenant of %s: %w", account, err)
	}
	s := Statement{Tenant: of}
	s.Key = of.Wallet()
	if kind == "credits" {
		s.Key = of.SMSCredits()
	}
	if s.Stretch, err = r.ledger.StretchOf(ctx, s.Key, n*blockOf+1, (n+1)*blockOf+1); err != nil {
		return err
	}
	a := newAdder(s)
	if err := r.Each(ctx, s, a.add); err != nil {
		return err
	}
	sums, err := json.Marshal(a.end())
	if err != nil {
		return err
	}
	return r.db.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(insertBlock, -1, account, n, s.Opening, s.Closing, string(sums))
		return nil
	})
}

// SumAgain deletes the stored sums, so that the job computes them again.
func SumAgain(ctx context.Context, d *db.DB) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(deleteBlocks, -1)
		return nil
	})
}
