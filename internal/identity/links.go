package identity

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

const insertLink = `INSERT INTO sign_in_links (hash, person, created_at, expires_at) VALUES ($1, $2, $3, $4)`

// NewLink makes the token of a sign-in link, which works once and for LinkLasts.
func (i *Identity) NewLink(ctx context.Context, person string) (token string, err error) {
	token = newToken()
	err = i.db.Write(ctx, func(tx *db.Tx) error {
		now := i.clock.Now()
		tx.Defer(insertLink, 1, hashToken(token), person, now, now.Add(LinkLasts))
		return nil
	})
	return token, err
}

const selectLink = `SELECT p.id, p.email, p.name, p.created_at, p.disabled_at, l.expires_at, l.used_at
	FROM sign_in_links l JOIN people p ON p.id = l.person WHERE l.hash = $1`

// errLink is the one refusal of a link: which of its reasons it was is told to nobody.
func errLink() error {
	return problem.New(problem.Unauthenticated, "link_not_valid", "This sign-in link does not work: it was used, it is older than 30 minutes, or it is incomplete")
}

// Link says whom a link signs in, and leaves it as it is.
func (i *Identity) Link(ctx context.Context, token string) (Person, error) {
	var p Person
	err := i.db.Read(ctx, func(tx *db.Tx) (err error) {
		p, err = i.link(tx, token)
		return err
	})
	return p, err
}

func (i *Identity) link(tx *db.Tx, token string) (Person, error) {
	if len(token) != tokenLength {
		return Person{}, errLink()
	}
	var p Person
	var expires, used time.Time
	found, err := tx.One(selectLink, []any{hashToken(token)}, &p.ID, &p.Email, &p.Name, &p.CreatedAt, &p.DisabledAt, &expires, &used)
	if err != nil {
		return Person{}, err
	}
	if !found || !used.IsZero() || !p.DisabledAt.IsZero() || !i.clock.Now().Before(expires) {
		return Person{}, errLink()
	}
	return p, nil
}

const useLink = `UPDATE sign_in_links SET used_at = $2 WHERE hash = $1 AND used_at = 0`

const insertSession = `INSERT INTO sessions (hash, id, person, agent, created_at, used_at) VALUES ($1, $2, $3, $4, $5, $6)`

// SignIn uses a link up and begins a session. agent is what the browser calls itself.
func (i *Identity) SignIn(ctx context.Context, link, agent string) (token string, err error) {
	token = newToken()
	id := uuid.Must(uuid.NewV7()).String()
	err = i.db.Write(ctx, func(tx *db.Tx) error {
		p, err := i.link(tx, link)
		if err != nil {
			return err
		}
		now := i.clock.Now()
		n, err := tx.Exec(useLink, hashToken(link), now)
		if err != nil {
			return err
		}
		if n != 1 { // another browser was quicker
			return errLink()
		}
		tx.Defer(insertSession, 1, hashToken(token), id, p.ID, shorten(agent), now, now)
		return nil
	})
	return token, err
}
