package identity

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

// Attempt is what a visitor typed to sign in.
type Attempt struct {
	Email, Password string
	Code            string // of the app, or a recovery code; needed by those who have a factor
	Agent           string // what the browser calls itself
	From            netip.Addr
	Device          string // what NewDevice gave this browser; empty: nothing
}

// errAttempt is the one refusal: whether the account exists, has a factor, and which part was wrong is not told.
func errAttempt() error {
	return problem.New(problem.Unauthenticated, codeAttempt, "The e-mail address, the password or the code is not right")
}

const codeAttempt = "sign_in_refused"

// proof is what is stored of how a person proves themselves, beside what was typed.
type proof struct {
	person   Person
	password string
	sealed   string // key of the confirmed factor; empty: none
	code     string // as it was typed
	recovery bool   // it is a recovery code of this person that is not used

	bootstrap bool // the server's settings made the person, who has not signed in yet
}

const selectProof = `SELECT p.id, p.email, p.name, p.created_at, p.disabled_at, p.password, coalesce(f.sealed, ''), coalesce(r.hash, '') <> '', p.bootstrap
	FROM people p LEFT JOIN factors f ON f.person = p.id LEFT JOIN recovery_codes r ON r.person = p.id AND r.hash = $2 AND r.used_at = 0
	WHERE p.email = $1`

// proof reads all that is compared in one look, so that it takes the same time whatever fits.
func (i *Identity) proof(ctx context.Context, email, code string) (p proof, err error) {
	err = i.db.Read(ctx, func(tx *db.Tx) error {
		p = proof{code: usertext.Code(code)}
		_, err := tx.One(selectProof, []any{email, hashToken(p.code)}, &p.person.ID, &p.person.Email, &p.person.Name, &p.person.CreatedAt, &p.person.DisabledAt,
			&p.password, &p.sealed, &p.recovery, &p.bootstrap)
		return err
	})
	return p, err
}

const (
	insertSession = `INSERT INTO sessions (hash, id, person, agent, created_at, used_at, source, factor_at, first)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	// The first sign-in of the first owner.
	useBootstrap = `UPDATE people SET bootstrap = 0 WHERE id = $1 AND bootstrap = 1`

	// The person as it was when the password was compared: one that was disabled or reset since does not get in.
	lockProof = `SELECT id FROM people WHERE id = $1 AND password = $2 AND disabled_at = 0 FOR UPDATE`

	// Behind lockProof: the password is the same, only its stored hash is newer.
	rehash = `UPDATE people SET password = $2 WHERE id = $1`
)

// SignInWithPassword begins the session of a person by the password and, where that person has a
// factor, a code. Each wrong try counts for the account and for the address.
func (i *Identity) SignInWithPassword(ctx context.Context, a Attempt) (token string, err error) {
	email := strings.ToLower(strings.TrimSpace(a.Email))
	if len(email) > 254 || len(a.Password) > 4*MaxPassword || len(a.Code) > 100 {
		return "", errAttempt()
	}
	t, err := i.look(ctx, email, a.From, a.Device) // costs little: before the line, which is short
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
		return nil
	})
	return token, err
}

func orRefuse(err error) error {
	if err == nil {
		err = errAttempt()
	}
	return err
}

// compare compares a typed code with the factor. Without a factor everything fits; step is 0 for a recovery code.
func (i *Identity) compare(p proof) (step int64, fits bool, err error) {
	if p.sealed == "" {
		return 0, true, nil
	}
	key, err := i.unseal(p.person.ID, p.sealed)
	if err != nil {
		return 0, false, err
	}
	step = stepOf(key, p.code, i.clock.Now())
	return step, step > 0 || p.recovery, nil
}

const (
	useStep = `UPDATE factors SET last_step = $3 WHERE person = $1 AND sealed = $2 AND last_step < $3`
	useCode = `UPDATE recovery_codes SET used_at = $3 WHERE hash = $1 AND person = $2 AND used_at = 0`
)

// useCode uses a code up: each step of an app, and each recovery code, counts once.
func (i *Identity) useCode(tx *db.Tx, p proof, step int64, from netip.Addr) error {
	var n int64
	var err error
	if step > 0 {
		n, err = tx.Exec(useStep, p.person.ID, p.sealed, step)
	} else {
		n, err = tx.Exec(useCode, hashToken(p.code), p.person.ID, i.clock.Now())
	}
	if err == nil && n != 1 {
		err = errAttempt()
	}
	if err != nil || step > 0 {
		return err
	}
	return i.note(tx, p.person, from, audit.Entry{Action: "person.recovery_code", Details: changesOf("recovery code", "unused", "used")})
}

// note writes an entry of what a person did with their own account.
func (i *Identity) note(tx *db.Tx, p Person, from netip.Addr, e audit.Entry) error {
	e.Actor, e.Person, e.Subject = p.Email, p.ID, p.ID
	if from.IsValid() {
		e.Origin = from.String()
	}
	return i.audit.WriteNoted(tx, e) // after a restore an old password or factor works again
}

func changesOf(what, before, after string) any {
	return map[string]any{"changes": []audit.Change{{What: what, Before: before, After: after}}}
}
