package identity

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// Limit limits the actions of a person within an hour. It counts different subjects or, if Each is set, all uses.
type Limit struct {
	What string // stored; never changes
	Most int
	Each bool   // repeated uses of a subject count, too
	Of   string // name of the subjects in the error message
}

// The limits for each person.
var (
	SearchesOfNumbers = Limit{What: string(roles.SearchNumbers), Most: 30, Of: "numbers"} // by number, account or name
	Reveals           = Limit{What: string(roles.RevealNumbers), Most: 30, Of: "numbers and secrets"}
	ProviderTests     = Limit{What: "providers.test", Most: 30, Each: true, Of: "tests of providers"}
	Exports           = Limit{What: string(roles.ExportPayments), Most: 20, Each: true, Of: "files"}
)

// NumberKey is the label under which the key for hashing searched numbers is derived from the master key.
const NumberKey = "audit/numbers"

// NumberHash returns a keyed hash of a number, an account or a name. All spellings have the same hash.
func NumberHash(key []byte, text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	if m, err := msisdn.Parse(text); err == nil {
		text = m.International()
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text)) // never fails
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// limitedFor is how long a use counts.
const limitedFor = time.Hour

const (
	lockUser  = `SELECT id FROM people WHERE id = $1 FOR UPDATE`
	repeatUse = `UPDATE person_uses SET used = used + 1 WHERE person = $1 AND what = $2 AND key = $3 AND at > $4 AND at <= $5`
	countUses = `SELECT count(*), coalesce(sum(used), 0), coalesce(min(at), 0) FROM person_uses WHERE person = $1 AND what = $2 AND at > $3 AND at <= $4`
	insertUse = `INSERT INTO person_uses (person, what, key, at, used, action, tenant, subject) VALUES ($1, $2, $3, $4, 1, $5, $6, $7)`
	dropUse   = `DELETE FROM person_uses WHERE person = $1 AND what = $2 AND key = $3 AND at = $4`
	endedUses = `SELECT u.person, u.what, u.key, u.at, u.used, u.action, u.tenant, u.subject, coalesce(p.email, '') FROM person_uses u LEFT JOIN people p ON p.id = u.person
		WHERE (u.at <= $1 OR u.at > $6) AND ($2 = '' OR u.person = $2 AND u.what = $3 AND u.key = $4) ORDER BY u.at LIMIT $5`
	// endedAtOnce is the number of uses that one transaction ends.
	endedAtOnce = 500
)

// Use counts an action of a person on the subject key, before the action. The first use of a subject within an hour
// writes entry to the audit log in the same transaction. Repeated uses are only counted. After the hour, their number
// is written as one more entry. Beyond the limit, Use returns an error.
func (i *Identity) Use(ctx context.Context, l Limit, person, key string, entry audit.Entry) error {
	return i.db.Write(ctx, func(tx *db.Tx) error {
		first, err := i.Take(tx, l, person, key, entry)
		if err != nil || !first {
			return err
		}
		return i.audit.Write(tx, entry)
	})
}

// Once counts a use in its own transaction, and reports whether it is the first use of the subject.
func (i *Identity) Once(ctx context.Context, l Limit, person, key string) (first bool, err error) {
	err = i.db.Write(ctx, func(tx *db.Tx) error {
		first, err = i.Take(tx, l, person, key, audit.Entry{})
		return err
	})
	return first, err
}

// Take is Use in tx, but it does not write the first entry. If entry has an action, the number of repeated uses is
// still written after the hour. first reports whether this is the first use of the subject.
func (i *Identity) Take(tx *db.Tx, l Limit, person, key string, entry audit.Entry) (first bool, err error) {
	var id string
	if _, err := tx.One(lockUser, []any{person}, &id); err != nil {
		return false, err
	}
	now := i.clock.Now()
	after, latest := counted(now)
	var things, used int
	var oldest time.Time
	if _, err := tx.One(countUses, []any{person, l.What, after, latest}, &things, &used, &oldest); err != nil {
		return false, err
	}
	beyond := func() error {
		e := problem.New(problem.RateLimited, "too_many_of_a_person", fmt.Sprintf("You can do this for at most %d %s an hour. Wait and try again.", l.Most, l.Of))
		e.RetryAfter = oldest.Add(limitedFor).Sub(now)
		return e
	}
	if l.Each && used >= l.Most {
		return false, beyond()
	}
	if n, err := tx.Exec(repeatUse, person, l.What, key, after, latest); err != nil || n > 0 {
		return false, err
	}
	if things >= l.Most {
		return false, beyond()
	}
	if _, err := i.endUses(tx, now, person, l.What, key); err != nil {
		return false, err
	}
	tx.Defer(insertUse, 1, person, l.What, key, now, entry.Action, entry.Tenant, entry.Subject)
	return true, nil
}

// counted returns the range of times at which a use must have been made to count now. A use later than latest was
// stored before the clock was set back. It would count for too long.
func counted(now time.Time) (after, latest time.Time) {
	return now.Add(-limitedFor), now.Add(clock.Skew)
}

// endUses deletes expired uses of one subject or of all subjects. It writes the number of repeated uses to the audit
// log.
func (i *Identity) endUses(tx *db.Tx, now time.Time, person, what, key string) (n int, err error) {
	type use struct {
		person, what, key, email string
		at                       time.Time
		used                     int
		entry                    audit.Entry
	}
	before, latest := counted(now)
	ended, err := db.All(tx, endedUses, []any{before, person, what, key, endedAtOnce, latest}, func(u *use, r *db.Row) error {
		return r.Scan(&u.person, &u.what, &u.key, &u.at, &u.used, &u.entry.Action, &u.entry.Tenant, &u.entry.Subject, &u.email)
	})
	if err != nil {
		return 0, err
	}
	for _, u := range ended {
		gone, err := tx.Exec(dropUse, u.person, u.what, u.key, u.at)
		if err != nil {
			return 0, err
		}
		if gone == 0 || u.used == 1 || u.entry.Action == "" || u.email == "" { // another node ended the use first, or there is nothing to write
			continue
		}
		u.entry.Actor, u.entry.Person = u.email, u.person
		u.entry.Details = map[string]any{"times": u.used, "within": "an hour", "since": u.at.UTC()}
		if err := i.audit.Write(tx, u.entry); err != nil {
			return 0, err
		}
	}
	return len(ended), nil
}

// pruneUses deletes all expired uses.
func (i *Identity) pruneUses(ctx context.Context) error {
	for n := endedAtOnce; n == endedAtOnce; {
		err := i.db.Write(ctx, func(tx *db.Tx) (err error) {
			n, err = i.endUses(tx, i.clock.Now(), "", "", "")
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
