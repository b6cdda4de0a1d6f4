package identity

import (
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

const (
	selectBearer = `SELECT t.id, t.name, t.created_at, t.expires_at, t.ended_at, p.id, p.email, p.name, p.created_at, p.disabled_at, p.password <> '', coalesce(f.sealed, '') <> '', coalesce(f.first_at, 0)
		FROM personal_tokens t JOIN people p ON p.id = t.person LEFT JOIN factors f ON f.person = p.id WHERE t.hash = $1`
	selectRolesOfBearer = `SELECT m.tenant, m.role FROM personal_tokens t JOIN memberships m ON m.person = t.person WHERE t.hash = $1 ORDER BY m.tenant`
)

// errToken is returned for every unusable token.
func errToken() error {
	return problem.New(problem.Forbidden, "token_not_valid", "This personal token is not valid: it is unknown, has ended or is older than 12 hours. Create a new one in the console (Your account)")
}

// bearer reads the person of a valid token.
func (i *Identity) bearer(tx *db.Tx, hash string) (Visitor, error) {
	v := Visitor{token: hash}
	var name string
	var expires, ended, firstAt time.Time
	p, s := &v.Person, &v.Session
	found, err := tx.One(selectBearer, []any{hash}, &s.ID, &name, &s.CreatedAt, &expires, &ended, &p.ID, &p.Email, &p.Name, &p.CreatedAt, &p.DisabledAt, &v.HasPassword, &v.HasFactor, &firstAt)
	if err != nil {
		return Visitor{}, err
	}
	if !found || !ended.IsZero() || !p.DisabledAt.IsZero() || !i.within(s.CreatedAt, expires) {
		return Visitor{}, errToken()
	}
	v.TokensFrom = tokensFrom(firstAt)
	if err := i.waited(v.TokensFrom); err != nil {
		return Visitor{}, err
	}
	v.Memberships, err = db.All(tx, selectRolesOfBearer, []any{hash}, func(m *Membership, r *db.Row) error { return r.Scan(&m.Tenant, &m.Role) })
	return v, err
}

// waited returns an error if personal tokens do not work yet because a first factor is younger than an hour.
func (i *Identity) waited(from time.Time) error {
	if !i.clock.Now().Before(from) {
		return nil
	}
	return problem.New(problem.Forbidden, "factor_new", "Your second factor is new. You can create and use personal tokens from "+from.UTC().Format("2006-01-02 15:04 UTC"))
}
