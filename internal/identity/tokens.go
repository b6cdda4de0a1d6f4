package identity

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

// PersonalToken identifies the person who runs a command. Its text is shown once, and only its hash is stored.
type PersonalToken struct {
	ID        string
	Name      string // where the token is used, as its person named it
	CreatedAt time.Time
	ExpiresAt time.Time
}

const (
	insertToken = `INSERT INTO personal_tokens (hash, id, person, name, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`
	countTokens = `SELECT count(*) FROM personal_tokens WHERE person = $1 AND ended_at = 0 AND expires_at > $2`
	// lockSelf makes concurrent requests of one person run one after the other.
	lockSelf = `SELECT id FROM people WHERE id = $1 FOR UPDATE`
)

// NewPersonalToken creates a token of the visitor. The visitor must have given the second factor within the last five
// minutes; in production a factor is required.
func (i *Identity) NewPersonalToken(ctx context.Context, v Visitor, name string, from netip.Addr) (text string, t PersonalToken, err error) {
	name = strings.TrimSpace(name)
	if name == "" || utf8.RuneCountInString(name) > maxTokenName || !usertext.Honest(name) {
		return "", t, problem.Field("name", fmt.Sprintf("must have 1 to %d visible characters", maxTokenName))
	}
	if v.ByToken() {
		return "", t, errSession()
	}
	if !v.Operator() {
		return "", t, problem.New(problem.Forbidden, "not_operator", "Only people of the installation can run commands")
	}
	text = tokenPrefix + newToken()
	id := uuid.Must(uuid.NewV7()).String()
	err = i.db.Write(ctx, func(tx *db.Tx) error {
		var person string
		if _, err := tx.One(lockSelf, []any{v.Person.ID}, &person); err != nil {
			return err
		}
		if err := i.InForce(tx, v); err != nil {
			return err
		}
		if err := i.mayHaveTokens(tx, v.Person.ID); err != nil {
			return err
		}
		now, there := i.clock.Now(), 0
		if _, err := tx.One(countTokens, []any{v.Person.ID, now}, &there); err != nil {
			return err
		}
		if there >= MostTokens {
			return problem.Field("name", fmt.Sprintf("exceeds the limit: you have %d tokens. End one first.", there))
		}
		t = PersonalToken{ID: id, Name: name, CreatedAt: now, ExpiresAt: now.Add(TokenLasts)}
		tx.Defer(insertToken, 1, hashToken(text), t.ID, v.Person.ID, t.Name, t.CreatedAt, t.ExpiresAt)
		return i.note(tx, v.Person, from, audit.Entry{Action: "person.token", Details: changesOf("token "+name, "none", "works for 12 hours")})
	})
	if err != nil {
		return "", PersonalToken{}, err
	}
	return text, t, nil
}

const selectFirst = `SELECT first_at FROM factors WHERE person = $1 AND sealed <> ''`

// mayHaveTokens returns an error for a person without a factor, except in development. It also returns an error if
// the first factor is too new.
func (i *Identity) mayHaveTokens(tx *db.Tx, person string) error {
	var firstAt time.Time
	has, err := tx.One(selectFirst, []any{person}, &firstAt)
	if err == nil && !has && !i.development {
		err = problem.New(problem.Forbidden, "no_factor", "Set up a second factor first")
	}
	if err != nil {
		return err
	}
	return i.waited(tokensFrom(firstAt))
}

const selectTokens = `SELECT id, name, created_at, expires_at FROM personal_tokens
	WHERE person = $1 AND ended_at = 0 AND expires_at > $2 ORDER BY id DESC LIMIT 100`

// PersonalTokens lists the visitor's valid tokens, latest first.
func (i *Identity) PersonalTokens(ctx context.Context, v Visitor) ([]PersonalToken, error) {
	return db.ReadAll(ctx, i.db, selectTokens, []any{v.Person.ID, i.clock.Now()}, func(t *PersonalToken, r *db.Row) error {
		return r.Scan(&t.ID, &t.Name, &t.CreatedAt, &t.ExpiresAt)
	})
}

const (
	endToken  = `UPDATE personal_tokens SET ended_at = $3 WHERE person = $1 AND id = $2 AND ended_at = 0`
	endTokens = `UPDATE personal_tokens SET ended_at = $2 WHERE person = $1 AND ended_at = 0`
)

// EndPersonalToken ends a token of the visitor at once. It ignores ended tokens and tokens of other people.
func (i *Identity) EndPersonalToken(ctx context.Context, v Visitor, id string, from netip.Addr) error {
	return i.db.Write(ctx, func(tx *db.Tx) error {
		n, err := tx.Exec(endToken, v.Person.ID, id, i.clock.Now())
		if err != nil || n == 0 {
			return err
		}
		return i.note(tx, v.Person, from, audit.Entry{Action: "person.token_end", Subject: id, Details: changesOf("token", "works", "ended")})
	})
}

// Bearer returns the person of a personal token, for a command. The second factor counts as given, because the
// person gave it when the token was created.
func (i *Identity) Bearer(ctx context.Context, text string) (v Visitor, err error) {
	secret, ours := strings.CutPrefix(text, tokenPrefix)
	if !ours || len(secret) != tokenLength {
		return Visitor{}, errToken()
	}
	return db.Get(ctx, i.db, func(tx *db.Tx) (Visitor, error) { return i.bearer(tx, hashToken(text)) })
}
