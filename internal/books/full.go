package books

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/history"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/payments/book"
)

const (
	// WorkEvery is the pause between two runs of a full check. workFor is how long one run reads: a fifth of one
	// connection's time.
	WorkEvery = 10 * time.Second
	workFor   = 2 * time.Second

	// A full check begins once a day at night, in the hours before nightEnds. If the last one is older than latest,
	// it begins at any hour.
	nightEnds = 5
	leastGap  = 12 * time.Hour
	latest    = 36 * time.Hour
)

// A stage is the rows that a full check reads.
type stage string

// The stages, in their order. They are stored.
const (
	stagePayments  stage = "payments"
	stageLists     stage = "lists"
	stageBatches   stage = "batches"
	stageMessages  stage = "messages"
	stageTransfers stage = "transfers"
	stageHours     stage = "hours"
	stageEnd       stage = "accounts"
)

// due reports whether a full check begins now.
func (c *check) due(now time.Time) bool {
	switch age := now.Sub(c.begunAt); {
	case c.endedAt.IsZero(), c.requestedAt.After(c.begunAt), age >= latest, c.outlived(now):
		return true
	default:
		return age >= leastGap && now.UTC().Hour() < nightEnds
	}
}

// outlived reports whether the clock was set back to a time before the check began. New transfers may then have times before rows
// that the check has passed.
func (c *check) outlived(now time.Time) bool { return c.begunAt.Sub(now) > clock.Skew }

const (
	requestInsert = `INSERT INTO book_checks (name, version, stage, position, next, payments, transfers, found, result, requested_at, begun_at, ended_at)
VALUES ('full', 1, '', '', 0, 0, 0, '', '', $1, 0, 0) ON CONFLICT (name) DO UPDATE SET requested_at = excluded.requested_at`
)

// Request makes a server begin a full check soon. It does so also while one runs, because that check may have passed
// a row that has changed since.
func (b *Books) Request(ctx context.Context) error {
	_, err := b.db.Exec(ctx, requestInsert, b.clock.Now())
	return err
}

// Work continues the running full check, or begins one that is due, for a bounded time.
func (b *Books) Work(ctx context.Context) error {
	ctx = db.Bulk(ctx, "")
	c, err := b.begin(ctx)
	if c == nil || err != nil {
		return err
	}
	ended := false
	for begun := time.Now(); !ended && !b.waits(c) && time.Since(begun) < workFor; {
		if ended, err = b.step(ctx, c); err != nil {
			return err
		}
	}
	if ended {
		c.stage, c.position, c.result, c.endedAt = "", "", c.found, b.clock.Now()
	}
	err = b.db.Write(ctx, func(tx *db.Tx) error {
		if ended && c.found.Count() == 0 {
			if err := goOnFrom(tx, c.proof); err != nil {
				return err
			}
		}
		return c.save(tx)
	})
	if errors.Is(err, db.ErrGuard) || errors.Is(err, db.ErrUnique) {
		return nil // another node continues the check
	}
	return err
}

// begin returns the full check that runs, or a new one if it is due, or nil.
func (b *Books) begin(ctx context.Context) (c *check, err error) {
	err = b.db.Read(ctx, func(tx *db.Tx) (err error) { c, err = load(tx, fullCheck, false); return err })
	if err != nil || c.stage == "" && !c.due(b.clock.Now()) {
		return nil, err
	}
	err = b.db.ReadSnapshot(ctx, func(tx *db.Tx) (err error) { c, err = load(tx, fullCheck, true); return err })
	if err == nil && (c.stage == "" || c.outlived(b.clock.Now())) {
		c.stage, c.position, c.payments, c.proof, c.forget, c.found, c.begunAt = stagePayments, "", 0, ledger.NewProof(), true, newFound(), b.clock.Now()
	}
	return c, err
}

// waits reports whether the check must wait because the clock was set recently: earlier transfers may not be committed yet.
func (b *Books) waits(c *check) bool {
	return c.stage == stageTransfers && b.clock.Ago(proofEnds).IsZero()
}

// goOnFrom makes a proof the start of the next recent check.
func goOnFrom(tx *db.Tx, proof *ledger.Proof) error {
	recent, err := load(tx, recentCheck, false)
	if err != nil {
		return err
	}
	recent.proof, recent.forget = proof, true
	return recent.save(tx)
}

// step checks one set of the stage, and reports whether the check has ended.
func (b *Books) step(ctx context.Context, c *check) (ended bool, err error) {
	if c.stage == stageEnd {
		return true, b.end(ctx, c)
	}
	last := db.Micros(b.clock.Ago(proofEnds))
	return false, b.db.ReadSnapshot(ctx, func(tx *db.Tx) error {
		switch c.stage {
		case stagePayments:
			position, n, err := book.CheckAfter(tx, c.position, c.found[Payments])
			if err != nil {
				return err
			}
			c.payments += int64(n)
			c.reached(position, !book.SetIsFull(n), stageLists)
		case stageLists:
			return c.lists(tx)
		case stageBatches:
			position, whole, err := batch.CheckAfter(tx, c.position, c.found[Batches])
			if err != nil {
				return err
			}
			c.reached(position, whole, stageMessages)
		case stageMessages:
			position, whole, err := delivery.CheckAfter(tx, c.position, c.found[Messages])
			if err != nil {
				return err
			}
			c.reached(position, whole, stageTransfers)
		case stageHours:
			position, whole, err := ledger.CheckHour(tx, c.position, c.found[Ledger])
			if err != nil {
				return err
			}
			c.reached(position, whole, stageEnd)
		default:
			whole, err := c.proof.Extend(tx, last, c.found[Ledger], func(subjects []string) error {
				if err := book.CheckClearing(tx, subjects, c.found[Payments]); err != nil {
					return err
				}
				return delivery.CheckStrays(tx, subjects, c.found[Messages])
			})
			if err != nil {
				return err
			}
			c.reached("", whole, stageHours)
		}
		return nil
	})
}

// reached stores the position, or begins the next stage.
func (c *check) reached(position string, whole bool, next stage) {
	if c.position = position; whole {
		c.stage, c.position = next, ""
	}
}

// A place is a position among the lists: the block of a list that is checked next.
type place struct {
	List  history.List
	Block int64
}

// lists checks one block of a list of payments.
func (c *check) lists(tx *db.Tx) error {
	var at place
	if c.position != "" {
		if err := json.Unmarshal([]byte(c.position), &at); err != nil {
			return err
		}
	}
	if at.Block == 0 {
		next, found, err := history.NextList(tx, at.List)
		if err != nil || !found {
			c.reached("", err == nil, stageBatches)
			return err
		}
		at.List = next
	}
	whole, err := history.CheckBlock(tx, at.List, at.Block, c.found[Payments].Add)
	if err != nil {
		return err
	}
	if at.Block++; whole {
		at.Block = 0
	}
	text, err := json.Marshal(at)
	c.position = string(text)
	return err
}

// end compares the accounts with the sums.
func (b *Books) end(ctx context.Context, c *check) error {
	var differ []ledger.Key
	err := b.db.ReadSnapshot(ctx, func(tx *db.Tx) (err error) {
		differ, err = c.proof.Close(tx, c.found[Ledger], nil)
		if err != nil {
			return err
		}
		return accounts(tx, c.found, db.Micros(b.clock.Now()))
	})
	if err != nil {
		return err
	}
	return b.confirm(ctx, c.proof, differ, c.found)
}
