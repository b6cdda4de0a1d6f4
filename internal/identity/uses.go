package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// A Limit bounds how many different things a person does something with within an hour.
type Limit struct {
	What string // stored; never renamed
	Most int
	Of   string // the things, as a message names them
}

// SearchesOfNumbers limits searches by number, account or name.
var SearchesOfNumbers = Limit{What: string(SearchNumbers), Most: 30, Of: "numbers"}

// limitedFor is the time that a use counts.
const limitedFor = time.Hour

const (
	lockUser  = `SELECT id FROM people WHERE id = $1 FOR UPDATE`
	repeatUse = `UPDATE person_uses SET used = used + 1 WHERE person = $1 AND what = $2 AND key = $3 AND at > $4`
	countUses = `SELECT count(*), coalesce(min(at), 0) FROM person_uses WHERE person = $1 AND what = $2 AND at > $3`
	insertUse = `INSERT INTO person_uses (person, what, key, at, used) VALUES ($1, $2, $3, $4, 1)
		ON CONFLICT (person, what, key) DO UPDATE SET at = excluded.at, used = 1`
	pruneUses = `DELETE FROM person_uses WHERE at <= $1`
)

// Use counts that a person does something with a thing, which key names, before it is done. The first use of a thing within an
// hour writes the entry into the audit log in the same transaction; repetitions are counted. Beyond the limit it is refused.
func (i *Identity) Use(ctx context.Context, l Limit, person, key string, entry audit.Entry) error {
	return i.db.Write(ctx, func(tx *db.Tx) error {
		var id string
		if _, err := tx.One(lockUser, []any{person}, &id); err != nil {
			return err
		}
		now := i.clock.Now()
		if n, err := tx.Exec(repeatUse, person, l.What, key, now.Add(-limitedFor)); err != nil || n > 0 {
			return err
		}
		var used int
		var oldest time.Time
		if _, err := tx.One(countUses, []any{person, l.What, now.Add(-limitedFor)}, &used, &oldest); err != nil {
			return err
		}
		if used >= l.Most {
			e := problem.New(problem.RateLimited, "too_many_of_a_person", fmt.Sprintf("You may do this with at most %d %s an hour. Wait, and try again.", l.Most, l.Of))
			e.RetryAfter = oldest.Add(limitedFor).Sub(now)
			return e
		}
		tx.Defer(insertUse, 1, person, l.What, key, now)
		return i.audit.Write(tx, entry)
	})
}
