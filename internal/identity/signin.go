package identity

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
)

// Attempt is a visitor's input at sign-in.
type Attempt struct {
	Email, Password string
	Code            string // of the app, or a recovery code; required if the person has a factor
	Agent           string // User-Agent of the browser
	From            netip.Addr
	Device          string // the browser's token of NewDevice; empty: none
}

const (
	insertSession = `INSERT INTO sessions (hash, id, person, agent, created_at, used_at, source, factor_at, first)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	// useBootstrap records the first sign-in of the first owner.
	useBootstrap = `UPDATE people SET bootstrap = 0 WHERE id = $1 AND bootstrap = 1`

	// lockProof finds the person only if nothing changed since the password was compared. A person who was disabled
	// or reset in the meantime is not signed in.
	lockProof = `SELECT id FROM people WHERE id = $1 AND password = $2 AND disabled_at = 0 FOR UPDATE`

	// rehash runs after lockProof. The password is the same, with a newer hash.
	rehash = `UPDATE people SET password = $2 WHERE id = $1`
)

// SignInWithPassword begins the session of a person with the password and, if the person has a factor, a code. Each
// wrong try counts for the account and for the address.
func (i *Identity) SignInWithPassword(ctx context.Context, a Attempt) (token string, err error) {
	email := strings.ToLower(strings.TrimSpace(a.Email))
	if len(email) > 254 || len(a.Password) > 4*MaxPassword || len(a.Code) > 100 {
		return "", errAttempt()
	}
	t, err := i.look(ctx, email, a.From, a.Device) // a cheap check before a place for hashing is used
	if err != nil {
		return "", err
	}
	hashes, leave, err := i.hasher.enter(t.known)
	if err != nil {
		return "", err
	}
	defer leave()
	if err := i.count(ctx, t); err != nil {
		return "", err
	}
	p, err := i.proof(ctx, email, a.Code)
	if err != nil {
		return "", err
	}
	same, stale, err := hashes.matches(ctx, p.password, a.Password)
	if err != nil {
		return "", err
	}
	step, fits, err := i.compare(p)
	if err != nil {
		return "", err
	}
	if !same || !fits || !p.person.DisabledAt.IsZero() {
		return "", errAttempt()
	}
	sealed := p.password
	if stale {
		if sealed, err = hashes.seal(ctx, a.Password); err != nil {
			return "", err
		}
	}
	token = newToken()
	id := uuid.Must(uuid.NewV7()).String()
	err = i.db.Write(ctx, func(tx *db.Tx) error {
		var person string
		if found, err := tx.One(lockProof, []any{p.person.ID, p.password}, &person); err != nil || !found {
			return orRefuse(err)
		}
		now, factorAt := i.clock.Now(), time.Time{}
		if p.sealed != "" {
			if err := i.useCode(tx, p, step, a.From); err != nil {
				return err
			}
			factorAt = now
		}
		t.right(tx)
		if stale {
			tx.Defer(rehash, 1, p.person.ID, sealed)
		}
		first := int64(0)
		if p.bootstrap {
			var err error
			if first, err = tx.Exec(useBootstrap, p.person.ID); err != nil {
				return err
			}
		}
		tx.Defer(insertSession, 1, hashToken(token), id, p.person.ID, shorten(a.Agent), now, now, sourceOf(a.From), factorAt, first == 1)
		return i.noteNetwork(tx, t, p.person, a.From)
	})
	return token, err
}

func orRefuse(err error) error {
	if err == nil {
		err = errAttempt()
	}
	return err
}

const selectAnySession = `SELECT id FROM sessions WHERE person = $1 LIMIT 1`

// noteNetwork writes an audit entry about a sign-in from a network and a browser that the person has not used within
// a month. It ignores the person's first sign-in.
func (i *Identity) noteNetwork(tx *db.Tx, t try, p Person, from netip.Addr) error {
	if t.known {
		return nil
	}
	var session string
	if found, err := tx.One(selectAnySession, []any{p.ID}, &session); err != nil || !found {
		return err
	}
	return i.note(tx, p, from, audit.Entry{Action: "person.network", Details: changesOf("network", "others", sourceOf(from))})
}
