package identity

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/makola/makola/internal/db"
)

// resealAtOnce is the most factors that one transaction seals anew.
const resealAtOnce = 100

const (
	selectSealed = `SELECT person, sealed, pending FROM factors WHERE person > $1 ORDER BY person LIMIT $2`
	resealFactor = `UPDATE factors SET sealed = $2, pending = $3 WHERE person = $1 AND sealed = $4 AND pending = $5`
)

// sealedFactor is the keys of a person's factor as they are stored: the one in use, and one that waits for its first code.
type sealedFactor struct{ person, sealed, pending string }

func (i *Identity) sealedAfter(ctx context.Context, person string) (list []sealedFactor, err error) {
	if i.sealer == nil {
		return nil, errNoMaster
	}
	err = i.db.Read(ctx, func(tx *db.Tx) error {
		list = nil
		return tx.Query(selectSealed, []any{person, resealAtOnce}, func(r *db.Row) error {
			var f sealedFactor
			err := r.Scan(&f.person, &f.sealed, &f.pending)
			list = append(list, f)
			return err
		})
	})
	return list, err
}

// SealedUnder counts what is sealed under each master key, by its name.
func (i *Identity) SealedUnder(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	for after := ""; ; {
		list, err := i.sealedAfter(ctx, after)
		if err != nil {
			return nil, err
		}
		for _, f := range list {
			for _, text := range []string{f.sealed, f.pending} {
				if text == "" {
					continue
				}
				sealed, err := base64.StdEncoding.DecodeString(text)
				if err != nil {
					return nil, fmt.Errorf("identity: the factor of %s cannot be read: %w", f.person, err)
				}
				counts[i.sealer.Under(sealed)]++
			}
			after = f.person
		}
		if len(list) < resealAtOnce {
			return counts, nil
		}
	}
}

// Reseal seals the key of every factor under the active master key, in small transactions, and says after each how many it
// moved. A factor that changes meanwhile stays as it is. A run that was broken off is begun again from the start.
func (i *Identity) Reseal(ctx context.Context, moved func(int64)) error {
	for after := ""; ; {
		list, err := i.sealedAfter(ctx, after)
		if err != nil {
			return err
		}
		n := int64(0)
		if err := i.db.Write(db.Bulk(ctx, ""), func(tx *db.Tx) error {
			n = 0
			for _, f := range list {
				k, err := i.resealOne(tx, f)
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
		after = list[len(list)-1].person
	}
}

func (i *Identity) resealOne(tx *db.Tx, f sealedFactor) (moved int64, err error) {
	fresh := [2]string{f.sealed, f.pending}
	for n, text := range fresh {
		if text == "" {
			continue
		}
		sealed, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return 0, fmt.Errorf("identity: the factor of %s cannot be read: %w", f.person, err)
		}
		again, changed, err := i.sealer.Reseal(sealed, []byte(f.person))
		if err != nil {
			return 0, fmt.Errorf("identity: the factor of %s: %w", f.person, err)
		}
		if changed {
			fresh[n] = base64.StdEncoding.EncodeToString(again)
			moved++
		}
	}
	if moved == 0 {
		return 0, nil
	}
	_, err = tx.Exec(resealFactor, f.person, fresh[0], fresh[1], f.sealed, f.pending)
	return moved, err
}
