package recovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
)

// Account is an account at a provider. It is identified by a fingerprint of its names.
type Account struct {
	Rail, Mode  string
	Fingerprint string
	SeenAt      time.Time // when a server last had the account
}

// Fingerprint returns a fingerprint of the names of an account. The names are not secret.
func Fingerprint(names ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
	return hex.EncodeToString(sum[:8])
}

const (
	// seen_at is never before the begin of the recovery. After the clock was set back, an account in use would
	// otherwise look unseen since then.
	sqlUse = `INSERT INTO recovery_rails (rail, mode, fingerprint, seen_at)
VALUES ($1, $2, $3, coalesce((SELECT begun_at FROM recovery WHERE id = 1 AND begun_at > $4), $4))
ON CONFLICT (rail, mode, fingerprint) DO UPDATE SET seen_at = excluded.seen_at`
	sqlAccounts = `SELECT rail, mode, fingerprint, seen_at FROM recovery_rails ORDER BY rail, mode, fingerprint`
	// A payment with a time in the future was accepted by a node whose clock ran ahead, maybe before the recovery.
	sqlOpenWork = `SELECT count(*) FROM payments WHERE settled_at = 0 AND escalated_at IS NULL AND (created_at < $1 OR created_at > $2)`
)

// Use stores that a server has these accounts.
func (r *Recovery) Use(ctx context.Context, accounts []Account) error {
	return r.db.Write(ctx, func(tx *db.Tx) error {
		for _, a := range accounts {
			tx.Defer(sqlUse, 1, a.Rail, a.Mode, a.Fingerprint, r.clock.Now())
		}
		return nil
	})
}

// Accounts returns all accounts that were ever used. During a recovery, every server stores its accounts every
// minute. An account that was not seen since the begin of the recovery is therefore configured on no server.
func (r *Recovery) Accounts(ctx context.Context) (list []Account, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		list = nil
		return tx.Query(sqlAccounts, nil, appendAccount(&list))
	})
	return list, err
}

func appendAccount(to *[]Account) func(*db.Row) error {
	return func(row *db.Row) error {
		var a Account
		err := row.Scan(&a.Rail, &a.Mode, &a.Fingerprint, &a.SeenAt)
		*to = append(*to, a)
		return err
	}
}

// Unsettled counts the open payments from before the recovery that are not on the operators' list.
func (r *Recovery) Unsettled(ctx context.Context, s State) (n int64, err error) {
	err = r.db.ReadWhole(ctx, func(tx *db.Tx) error {
		_, err := tx.One(sqlOpenWork, []any{s.BegunAt, r.clock.Now()}, &n)
		return err
	})
	return n, err
}
