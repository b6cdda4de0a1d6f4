package webhook

import (
	"context"

	"github.com/makola/makola/internal/db"
)

// resealAtOnce is the most secrets that one transaction seals anew.
const resealAtOnce = 100

const (
	sqlSealed = `SELECT tenant, secret, former, former_until FROM webhook_secrets WHERE tenant > $1 ORDER BY tenant LIMIT $2`
	sqlReseal = `UPDATE webhook_secrets SET secret = $2, former = $3 WHERE tenant = $1 AND secret = $4`
)

// sealedSecret is a row as it is stored.
type sealedSecret struct {
	tenant         string
	secret, former []byte
	lapsed         bool // the former one signs no more
}

// sealedAfter reads the rows that follow a tenant.
func (w *Webhooks) sealedAfter(ctx context.Context, tenant string) (list []sealedSecret, err error) {
	err = w.db.Read(ctx, func(tx *db.Tx) error {
		list = nil
		return tx.Query(sqlSealed, []any{tenant, resealAtOnce}, func(r *db.Row) error {
			var s sealedSecret
			var until = w.clock.Now()
			err := r.Scan(&s.tenant, &s.secret, &s.former, &until)
			s.lapsed = !w.clock.Now().Before(until)
			list = append(list, s)
			return err
		})
	})
	return list, err
}

// SealedUnder returns the number of secrets sealed under each master key, by its name.
func (w *Webhooks) SealedUnder(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	if w.sealer == nil {
		return nil, errNoMaster
	}
	for after := ""; ; {
		list, err := w.sealedAfter(ctx, after)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			counts[w.sealer.Under(s.secret)]++
			if s.former != nil {
				counts[w.sealer.Under(s.former)]++
			}
			after = s.tenant
		}
		if len(list) < resealAtOnce {
			return counts, nil
		}
	}
}

// Reseal seals every secret under the active master key, in small transactions, and reports after each the number of
// secrets resealed. A secret that is replaced in between is already sealed under its server's active key. A new run
// after an interruption starts over and skips finished secrets.
func (w *Webhooks) Reseal(ctx context.Context, moved func(int64)) error {
	if w.sealer == nil {
		return errNoMaster
	}
	for after := ""; ; {
		list, err := w.sealedAfter(ctx, after)
		if err != nil {
			return err
		}
		n := int64(0)
		if err := w.db.Write(db.Bulk(ctx, ""), func(tx *db.Tx) error {
			n = 0
			for _, s := range list {
				k, err := w.resealOne(tx, s)
				if err != nil {
					return err
				}
				n += k
			}
			return nil
		}); err != nil {
			return err
		}
		moved(n)
		if len(list) < resealAtOnce {
			return nil
		}
		after = list[len(list)-1].tenant
	}
}

// resealOne seals a row's secrets anew, and forgets a former one that signs no more.
func (w *Webhooks) resealOne(tx *db.Tx, s sealedSecret) (moved int64, err error) {
	secret, changed, err := w.sealer.Reseal(s.secret, []byte(s.tenant))
	if err != nil {
		return 0, err
	}
	former := s.former
	switch {
	case former == nil:
	case s.lapsed:
		former, moved = nil, 1
	default:
		var too bool
		if former, too, err = w.sealer.Reseal(former, []byte(s.tenant)); err != nil {
			return 0, err
		}
		if too {
			moved = 1
		}
	}
	if changed {
		moved++
	}
	if moved == 0 {
		return 0, nil
	}
	_, err = tx.Exec(sqlReseal, s.tenant, secret, former, s.secret)
	return moved, err
}
