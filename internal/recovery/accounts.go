package recovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
)

// Account is an account with a provider, known by a fingerprint of what names it.
type Account struct {
	Rail, Mode  string
	Fingerprint string
	SeenAt      time.Time // when a server last had it
}

// Fingerprint makes one of the names of an account, which are no secrets.
func Fingerprint(names ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
	return hex.EncodeToString(sum[:8])
}

const (
	// A clock that was set back since the recovery began must not make the account look unseen since then.
	sqlUse = `INSERT INTO recovery_rails (rail, mode, fingerprint, seen_at)
VALUES ($1, $2, $3, coalesce((SELECT begun_at FROM recovery WHERE id = 1 AND begun_at > $4), $4))
ON CONFLICT (rail, mode, fingerprint) DO UPDATE SET seen_at = excluded.seen_at`
	sqlAccounts = `SELECT rail, mode, fingerprint, seen_at FROM recovery_rails ORDER BY rail, mode, fingerprint`
	// A payment from the time to come was dated by a clock that ran ahead, maybe before the recovery.
	sqlOpenWork = `SELECT count(*) FROM payments WHERE settled_at = 0 AND escalated_at IS NULL AND (created_at < $1 OR created_at > $2)`
)

// Use remembers the accounts that a server has.
func (r *Recovery) Use(ctx context.Context, accounts []Account) error {
	return r.db.Write(ctx, func(tx *db.Tx) error {
		for _, a := range accounts {
			tx.Defer(sqlUse, 1, a.Rail, a.Mode, a.Fingerprint, r.clock.Now())
		}
		return nil
	})
}

// Accounts gives the accounts that were ever used. While a recovery lasts the servers write down every minute which ones
// they have: one that was not seen since its begin, no server has.
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

// Unsettled counts the payments of before the recovery that are open and not on the operators' list.
func (r *Recovery) Unsettled(ctx context.Context, s State) (n int64, err error) {
	err = r.db.ReadWhole(ctx, func(tx *db.Tx) error {
		_, err := tx.One(sqlOpenWork, []any{s.BegunAt, r.clock.Now()}, &n)
		return err
	})
	return n, err
}
