package identity

import (
	"context"
	"net/netip"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// The limits of sign-in tries of an account and of an address. Each has a number of tries, and gets one more after
// each pause. A successful try does not count. A person who signed in from a network within the last month has
// separate tries there. A browser in which the person signed in has separate tries too. Clients that guess passwords
// therefore cannot lock the person out.
const (
	accountTries = 10
	accountPause = time.Minute
	addressTries = 30
	addressPause = 6 * time.Second
	knownSource  = 30 * 24 * time.Hour
)

// try is one counted try. It is counted before the password is compared, so that concurrent tries cannot exceed the
// limit.
type try struct {
	account, address string
	known            bool // the account knows the network or the browser
}

// sourceOf returns the network to which an address belongs. For IPv6 this is the /64 prefix, because providers assign
// whole prefixes.
func sourceOf(from netip.Addr) string {
	if !from.IsValid() {
		return "unknown"
	}
	if from.Is4() {
		return from.String()
	}
	p, _ := from.Prefix(64) // every IPv6 address has a /64 prefix
	return p.String()
}

const (
	plantTries  = `INSERT INTO sign_in_tries (id, used_until) VALUES ($1, 0), ($2, 0) ON CONFLICT (id) DO NOTHING`
	lookTries   = `SELECT id, used_until FROM sign_in_tries WHERE id IN ($1, $2)`
	lockTries   = lookTries + ` ORDER BY id FOR UPDATE`
	updateTries = `UPDATE sign_in_tries SET used_until = $2 WHERE id = $1`
	forgetTries = `DELETE FROM sign_in_tries WHERE id = $1`
	giveBack    = `UPDATE sign_in_tries SET used_until = used_until - $2 WHERE id = $1`
	pruneTries  = `DELETE FROM sign_in_tries WHERE used_until < $1`

	selectSource = `SELECT s.id FROM sessions s JOIN people p ON p.id = s.person
		WHERE p.email = $1 AND s.source = $2 AND s.created_at > $3 LIMIT 1`
	selectOwner = `SELECT id FROM people WHERE email = $1 AND id = $2`
)

// take counts a try, or returns an error with the time until the next one.
func (i *Identity) take(ctx context.Context, email string, from netip.Addr) (try, error) {
	t, err := i.look(ctx, email, from, "")
	if err == nil {
		err = i.count(ctx, t)
	}
	return t, err
}

// look returns the try of a visitor without counting it, or an error if no try is left. It only reads, with the same
// queries whether or not the account exists.
func (i *Identity) look(ctx context.Context, email string, from netip.Addr, device string) (t try, err error) {
	source := sourceOf(from)
	d := i.device(device)
	err = i.db.Read(ctx, func(tx *db.Tx) error {
		now := i.clock.Now()
		var session, person string
		known, err := tx.One(selectSource, []any{email, source, now.Add(-knownSource)}, &session)
		if err != nil {
			return err
		}
		owns, err := tx.One(selectOwner, []any{email, d.person}, &person)
		if err != nil {
			return err
		}
		t = try{account: "account " + hashToken(email), address: "address " + source, known: known || owns}
		switch {
		case owns: // others cannot use up this browser's tries, even if they share the account or the network
			t.account += " device " + d.nonce
			t.address = "device " + d.nonce
		case known:
			t.account += " " + source
		}
		_, err = t.next(tx, lookTries, now)
		return err
	})
	return t, err
}

// count counts a try, unless others have used up the tries since look.
func (i *Identity) count(ctx context.Context, t try) error {
	return i.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(plantTries, t.account, t.address); err != nil {
			return err
		}
		used, err := t.next(tx, lockTries, i.clock.Now())
		if err != nil {
			return err
		}
		for id, until := range used {
			tx.Defer(updateTries, 1, id, until)
		}
		return nil
	})
}

// next returns the times at which tries become available again after one more try. It returns an error if no
// try is left.
func (t try) next(tx *db.Tx, query string, now time.Time) (map[string]time.Time, error) {
	until := map[string]time.Time{t.account: now, t.address: now}
	if err := tx.Query(query, []any{t.account, t.address}, func(r *db.Row) error {
		var id string
		var at time.Time
		err := r.Scan(&id, &at)
		most := addressTries * addressPause
		if id == t.account {
			most = accountTries * accountPause
		}
		if at.After(now) && at.Sub(now) <= most+clock.Skew { // a later time was stored before the clock was set back
			until[id] = at
		}
		return err
	}); err != nil {
		return nil, err
	}
	wait := max(until[t.account].Sub(now)-(accountTries-1)*accountPause, until[t.address].Sub(now)-(addressTries-1)*addressPause)
	if wait > 0 {
		return nil, errTries(wait)
	}
	return map[string]time.Time{t.account: until[t.account].Add(accountPause), t.address: until[t.address].Add(addressPause)}, nil
}

func errTries(wait time.Duration) error {
	e := problem.New(problem.RateLimited, "too_many_tries", "Too many tries. Wait a moment and try again.")
	e.RetryAfter = max(wait, time.Second)
	return e
}

// right gives back a counted try, in the transaction of a successful sign-in.
func (t try) right(tx *db.Tx) {
	tx.Defer(forgetTries, -1, t.account)
	tx.Defer(giveBack, -1, t.address, addressPause.Microseconds())
}
