package identity

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
)

// ForgottenLasts is how long the link for choosing a new password is valid.
const ForgottenLasts = 30 * time.Minute

// TryForgotten counts a request for a new password, for the account and for the address. It behaves the same whether
// or not the account exists.
func (i *Identity) TryForgotten(ctx context.Context, email string, from netip.Addr) error {
	return i.count(ctx, try{account: "forgotten " + hashToken(email), address: "forgotten at " + sourceOf(from)})
}

const (
	selectForgetful = `SELECT p.id, p.email, p.name, p.created_at, p.disabled_at, p.password <> '', COALESCE(f.sealed, '') <> '' FROM people p LEFT JOIN factors f ON f.person = p.id
		WHERE p.email = $1`

	endPasswordLinks = `UPDATE password_links SET used_at = $2 WHERE person = $1 AND used_at = 0`

	insertPasswordLink = `INSERT INTO password_links (hash, person, created_at, expires_at) VALUES ($1, $2, $3, $4)`
)

// NewForgottenToken returns the token of a link for Forgotten. Call it before the transaction.
func NewForgottenToken() string { return newToken() }

// Forgotten stores a link for a new password of the person with an e-mail address. It replaces older links. linked is
// false for a person without a second factor, whom an operator must reset. found is false for a person who is
// unknown, disabled or without a password.
func (i *Identity) Forgotten(tx *db.Tx, email, token string) (p Person, linked, found bool, err error) {
	var password, factor bool
	found, err = tx.One(selectForgetful, []any{strings.ToLower(strings.TrimSpace(email))}, &p.ID, &p.Email, &p.Name, &p.CreatedAt, &p.DisabledAt, &password, &factor)
	if err != nil || !found || !password || !p.DisabledAt.IsZero() {
		return p, false, false, err
	}
	if !factor {
		return p, false, true, nil
	}
	now := i.clock.Now()
	tx.Defer(endPasswordLinks, -1, p.ID, now)
	tx.Defer(insertPasswordLink, 1, hashToken(token), p.ID, now, now.Add(ForgottenLasts))
	return p, true, true, nil
}

const (
	selectPasswordLink = `SELECT p.id, p.email, p.name, p.created_at, p.disabled_at, p.password, COALESCE(f.sealed, '') <> '', l.created_at, l.expires_at, l.used_at
		FROM password_links l JOIN people p ON p.id = l.person LEFT JOIN factors f ON f.person = p.id WHERE l.hash = $1`

	usePasswordLink = `UPDATE password_links SET used_at = $2 WHERE hash = $1 AND used_at = 0`

	replacePassword = `UPDATE people SET password = $3 WHERE id = $1 AND password = $2 AND disabled_at = 0`
)

// ForgottenLink returns the person of a link for a new password. The link stays valid.
func (i *Identity) ForgottenLink(ctx context.Context, token string) (p Person, err error) {
	err = i.db.Read(ctx, func(tx *db.Tx) (err error) {
		p, _, err = i.passwordLink(tx, token)
		return err
	})
	return p, err
}

// passwordLink returns the person of a valid link, and the stored password.
func (i *Identity) passwordLink(tx *db.Tx, token string) (p Person, password string, err error) {
	if len(token) != tokenLength {
		return p, "", errLink()
	}
	var factor bool
	var made, expires, used time.Time
	found, err := tx.One(selectPasswordLink, []any{hashToken(token)}, &p.ID, &p.Email, &p.Name, &p.CreatedAt, &p.DisabledAt, &password, &factor, &made, &expires, &used)
	if err == nil && (!found || !used.IsZero() || !p.DisabledAt.IsZero() || password == "" || !factor || !i.within(made, expires)) {
		err = errLink()
	}
	return p, password, err
}

// ChooseForgotten uses a link, which ends it, and stores the new password of its person. It ends all sessions and
// personal tokens. The second factor stays and is required at the next sign-in.
func (i *Identity) ChooseForgotten(ctx context.Context, token, password string, from netip.Addr) error {
	p, err := i.ForgottenLink(ctx, token)
	if err != nil {
		return err
	}
	words, err := i.wordsAround(ctx, p)
	if err != nil {
		return err
	}
	if err := checkPassword(password, words); err != nil {
		return err
	}
	hashes, leave, err := i.hasher.enter(true) // a visitor with a link counts as known
	if err != nil {
		return err
	}
	defer leave()
	sealed, err := hashes.seal(ctx, password)
	if err != nil {
		return err
	}
	return i.db.Write(ctx, func(tx *db.Tx) error {
		p, before, err := i.passwordLink(tx, token)
		if err != nil {
			return err
		}
		now := i.clock.Now()
		n, err := tx.Exec(usePasswordLink, hashToken(token), now)
		if err == nil && n == 1 {
			n, err = tx.Exec(replacePassword, p.ID, before, sealed)
		}
		if err == nil && n != 1 { // another browser used the link first, or an operator reset the person
			err = errLink()
		}
		if err != nil {
			return err
		}
		tx.Defer(endSessions, -1, p.ID, now)
		tx.Defer(endTokens, -1, p.ID, now)
		tx.Defer(endLinks, -1, p.ID, now)
		tx.Defer(endPasswordLinks, -1, p.ID, now)
		return i.note(tx, p, from, audit.Entry{Action: "person.password", Details: changesOf("password", "forgotten", "a new one")})
	})
}
