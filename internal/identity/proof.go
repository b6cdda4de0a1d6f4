package identity

import (
	"context"
	"net/netip"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

const codeAttempt = "sign_in_refused"

// proof has the stored proofs of a person and the input to compare with them.
type proof struct {
	person   Person
	password string
	sealed   string // sealed key of the confirmed factor; empty: none
	code     string // as the person typed it
	recovery bool   // code is an unused recovery code of the person

	bootstrap bool // the server's settings created the person, who has not signed in yet
}

const selectProof = `SELECT p.id, p.email, p.name, p.created_at, p.disabled_at, p.password, coalesce(f.sealed, ''), coalesce(r.hash, '') <> '', p.bootstrap
	FROM people p LEFT JOIN factors f ON f.person = p.id LEFT JOIN recovery_codes r ON r.person = p.id AND r.hash = $2 AND r.used_at = 0
	WHERE p.email = $1`

// proof reads all stored proofs with the same queries in every case, so that its time does not reveal which
// proofs exist.
func (i *Identity) proof(ctx context.Context, email, code string) (p proof, err error) {
	err = i.db.Read(ctx, func(tx *db.Tx) error {
		p = proof{code: usertext.Code(code)}
		_, err := tx.One(selectProof, []any{email, hashToken(p.code)}, &p.person.ID, &p.person.Email, &p.person.Name, &p.person.CreatedAt, &p.person.DisabledAt,
			&p.password, &p.sealed, &p.recovery, &p.bootstrap)
		return err
	})
	return p, err
}

// compare compares the typed code with the factor. Without a factor every code is accepted. step is 0 for a
// recovery code.
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

// useCode marks a code as used. Each code of an app and each recovery code is valid once.
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

// errAttempt is returned for every failed sign-in. It does not reveal whether the account exists, has a factor, or
// which part was wrong.
func errAttempt() error {
	return problem.New(problem.Unauthenticated, codeAttempt, "The e-mail address, the password or the code is not right")
}
