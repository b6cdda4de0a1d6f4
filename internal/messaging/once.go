package messaging

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// A campaign keeps the Idempotency-Key that it came with in its own row. What else is asked for (a sender
// ID, a group, contacts, whether a code is right) may have no row of its own, or one that is deleted before
// the client asks again: so its answer is kept beside the key, in the transaction that did what was asked.

const (
	selectAnswer = `SELECT idempotency_hash, made FROM answers WHERE tenant = $1 AND idempotency_key = $2`
	insertAnswer = `INSERT INTO answers (tenant, idempotency_key, idempotency_hash, made, created_at) VALUES ($1, $2, $3, $4, $5)`
)

// once does what a request asks, in one transaction, and keeps the answer where the caller gave an
// Idempotency-Key. A key that was used before is answered with what was made then, and replayed is true; with
// another request it is Invalid. do may run twice.
func once[T any](ctx context.Context, m *Messaging, caller Caller, do func(*db.Tx) (T, error)) (made T, replayed bool, err error) {
	run := func() error {
		return m.db.Write(ctx, func(tx *db.Tx) error {
			var err error
			made = *new(T)
			if replayed, err = recall(tx, caller, &made); replayed || err != nil {
				return err
			}
			if made, err = do(tx); err != nil {
				return err
			}
			return remember(tx, caller, made, m.clock.Now())
		})
	}
	err = run()
	if errors.Is(err, db.ErrUnique) || caller.IdempotencyKey != "" && problem.Is(err, problem.Duplicate) {
		err = run() // another request made it meanwhile, perhaps with the same key
	}
	return made, replayed, err
}

// recall reads what the caller's Idempotency-Key was answered with, if it was used.
func recall[T any](tx *db.Tx, caller Caller, made *T) (replayed bool, err error) {
	if caller.IdempotencyKey == "" {
		return false, nil
	}
	var hash, text string
	found, err := tx.One(selectAnswer, []any{caller.Tenant, caller.IdempotencyKey}, &hash, &text)
	if err != nil || !found {
		return false, err
	}
	if hash != caller.BodyHash {
		return false, keyMismatch()
	}
	return true, json.Unmarshal([]byte(text), made)
}

// remember keeps the answer of the caller's request.
func remember[T any](tx *db.Tx, caller Caller, made T, now time.Time) error {
	if caller.IdempotencyKey == "" {
		return nil
	}
	text, err := json.Marshal(made)
	if err != nil {
		return err
	}
	_, err = tx.Exec(insertAnswer, caller.Tenant, caller.IdempotencyKey, caller.BodyHash, string(text), now)
	return err
}

func keyMismatch() error {
	return problem.New(problem.Invalid, "idempotency_key_mismatch", "The Idempotency-Key was used with another request")
}
