package idempotency

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// Answers stores the answers to requests with a key that do not create a lasting row.
type Answers struct {
	db    *db.DB
	clock *clock.Clock
}

// NewAnswers is for a database that is open.
func NewAnswers(d *db.DB, c *clock.Clock) *Answers { return &Answers{db: d, clock: c} }

const (
	selectAnswer = `SELECT idempotency_hash, made, created_at FROM answers WHERE tenant = $1 AND idempotency_key = $2`
	insertAnswer = `INSERT INTO answers (tenant, idempotency_key, idempotency_hash, made, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant, idempotency_key) DO UPDATE SET idempotency_hash = excluded.idempotency_hash, made = excluded.made, created_at = excluded.created_at
		WHERE answers.created_at < $6`
)

// Once runs do in one transaction and stores its result under the caller's key, if there is one. If the key was used
// before, Once returns the stored result, and replayed is true. If it was used with another request, Once returns
// Invalid. do may run twice. The result is stored as JSON.
func Once[T any](ctx context.Context, a *Answers, caller Caller, do func(*db.Tx) (T, error)) (made T, replayed bool, err error) {
	run := func() error {
		return a.db.Write(ctx, func(tx *db.Tx) error {
			var err error
			made = *new(T)
			if replayed, err = recall(tx, a, caller, &made); replayed || err != nil {
				return err
			}
			if made, err = do(tx); err != nil {
				return err
			}
			return a.Keep(tx, caller, made)
		})
	}
	err = run()
	if errors.Is(err, db.ErrUnique) || caller.IdempotencyKey != "" && problem.Is(err, problem.Duplicate) {
		err = run() // another request made it in between, perhaps with the same key
	}
	return made, replayed, err
}

// Recall returns the stored answer of the caller's key, if there is one.
func Recall[T any](ctx context.Context, a *Answers, caller Caller) (made T, replayed bool, err error) {
	if caller.IdempotencyKey == "" {
		return made, false, nil
	}
	err = a.db.Read(ctx, func(tx *db.Tx) error {
		made = *new(T)
		replayed, err = recall(tx, a, caller, &made)
		return err
	})
	return made, replayed, err
}

// recall finds an answer that is younger than Window. An older answer waits for the sweep, and Keep replaces it.
func recall[T any](tx *db.Tx, a *Answers, caller Caller, made *T) (replayed bool, err error) {
	if caller.IdempotencyKey == "" {
		return false, nil
	}
	var hash, text string
	var kept time.Time
	found, err := tx.One(selectAnswer, []any{caller.Tenant, caller.IdempotencyKey}, &hash, &text, &kept)
	if err != nil || !found || a.clock.Age(kept) >= Window {
		return false, err
	}
	if hash != caller.BodyHash {
		return false, Mismatch()
	}
	return true, json.Unmarshal([]byte(text), made)
}

const deleteAnswer = `DELETE FROM answers WHERE tenant = $1 AND idempotency_key = $2`

// Forget deletes the answer of the caller's request, whose work a recovery undid.
func (a *Answers) Forget(ctx context.Context, caller Caller) error {
	_, err := a.db.Exec(ctx, deleteAnswer, caller.Tenant, caller.IdempotencyKey)
	return err
}

// Keep stores the answer of the caller's request in the transaction that does the request's work.
func (a *Answers) Keep(tx *db.Tx, caller Caller, made any) error {
	if caller.IdempotencyKey == "" {
		return nil
	}
	text, err := json.Marshal(made)
	if err != nil {
		return err
	}
	now := a.clock.Now()
	kept, err := tx.Exec(insertAnswer, caller.Tenant, caller.IdempotencyKey, caller.BodyHash, string(text), now, a.clock.Ago(Window).Add(time.Microsecond))
	if err == nil && kept == 0 {
		err = db.ErrUnique // another request with the key was answered in between
	}
	return err
}

const (
	// SweepEvery is the pause between two sweeps.
	SweepEvery = 10 * time.Minute
	// sweepAtOnce is the maximum number of rows of one transaction.
	sweepAtOnce = 1_000

	sweepAnswers = `DELETE FROM answers WHERE (tenant, idempotency_key) IN
		(SELECT tenant, idempotency_key FROM answers WHERE created_at < $1 ORDER BY created_at LIMIT $2)`
)

// Sweep removes the answers that are older than Window, in small transactions.
func (a *Answers) Sweep(ctx context.Context) error {
	return db.Prune(ctx, a.db, sweepAnswers, sweepAtOnce, a.clock.Ago(Window))
}
