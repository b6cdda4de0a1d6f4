package identity

import (
	"context"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
)

// The kinds of links. A development link signs its bearer in. With an invitation, a person without a password chooses
// one. Values are stored.
const (
	kindDevelopment = "development"
	kindInvitation  = "invitation"
)

// LinkOf describes the purpose of a link.
type LinkOf struct {
	Person     Person
	Invitation bool // the person must choose a password
}

const insertLink = `INSERT INTO sign_in_links (hash, person, created_at, expires_at, kind, code) VALUES ($1, $2, $3, $4, $5, $6)`

// NewLink returns the token of a link that signs a person in on a development server. The link is valid once and
// within LinkLasts.
func (i *Identity) NewLink(ctx context.Context, person string) (token string, err error) {
	token = newToken()
	err = i.db.Write(ctx, func(tx *db.Tx) error {
		now := i.clock.Now()
		tx.Defer(insertLink, 1, hashToken(token), person, now, now.Add(LinkLasts), kindDevelopment, "")
		return nil
	})
	return token, err
}

const selectLink = `SELECT p.id, p.email, p.name, p.created_at, p.disabled_at, p.password <> '', l.kind, l.created_at, l.expires_at, l.used_at
	FROM sign_in_links l JOIN people p ON p.id = l.person WHERE l.hash = $1 AND l.kind = 'development' OR l.hash = $2 AND l.code <> ''`

// Link returns the person and purpose of a link. The link stays valid.
func (i *Identity) Link(ctx context.Context, token string) (LinkOf, error) {
	var l LinkOf
	err := i.db.Read(ctx, func(tx *db.Tx) (err error) {
		l, err = i.link(tx, token)
		return err
	})
	return l, err
}

func (i *Identity) link(tx *db.Tx, token string) (LinkOf, error) {
	if len(token) != tokenLength {
		return LinkOf{}, errLink()
	}
	var p Person
	var made, expires, used time.Time
	var known bool // whether the person has a password
	var kind string
	found, err := tx.One(selectLink, []any{hashToken(token), hashInvitation(token)}, &p.ID, &p.Email, &p.Name, &p.CreatedAt, &p.DisabledAt, &known, &kind, &made, &expires, &used)
	if err != nil {
		return LinkOf{}, err
	}
	invitation := kind == kindInvitation
	if !found || !used.IsZero() || !p.DisabledAt.IsZero() || !i.within(made, expires) || invitation && known || !invitation && !i.development {
		return LinkOf{}, errLink()
	}
	return LinkOf{p, invitation}, nil
}

const useLink = `UPDATE sign_in_links SET used_at = $2 WHERE hash = $1 AND used_at = 0`

// use finds a valid link and ends it.
func (i *Identity) use(tx *db.Tx, token string, invitation bool) (Person, error) {
	l, err := i.link(tx, token)
	if err != nil {
		return Person{}, err
	}
	if l.Invitation != invitation {
		return Person{}, errLink()
	}
	hash := hashToken(token)
	if invitation {
		hash = hashInvitation(token)
	}
	n, err := tx.Exec(useLink, hash, i.clock.Now())
	if err == nil && n != 1 { // another browser used the link first
		err = errLink()
	}
	return l.Person, err
}

// SignIn uses a link of a development server and begins a session. agent is the User-Agent of the browser.
func (i *Identity) SignIn(ctx context.Context, link, agent string) (token string, err error) {
	token = newToken()
	id := uuid.Must(uuid.NewV7()).String()
	err = i.db.Write(ctx, func(tx *db.Tx) error {
		p, err := i.use(tx, link, false)
		if err != nil {
			return err
		}
		now := i.clock.Now()
		tx.Defer(insertSession, 1, hashToken(token), id, p.ID, shorten(agent), now, now, "", time.Time{}, false)
		return nil
	})
	return token, err
}

const choosePassword = `UPDATE people SET password = $2 WHERE id = $1 AND password = '' AND disabled_at = 0`

// Accept uses an invitation: the person gives the code and chooses a password. It begins a session.
func (i *Identity) Accept(ctx context.Context, link, code, password, agent string, from netip.Addr) (token string, err error) {
	l, err := i.Link(ctx, link)
	if err != nil {
		return "", err
	}
	words, err := i.wordsAround(ctx, l.Person)
	if err != nil {
		return "", err
	}
	if err := checkPassword(password, words); err != nil {
		return "", err
	}
	hashes, leave, err := i.hasher.enter(true) // a visitor with a link counts as known
	if err != nil {
		return "", err
	}
	defer leave()
	if err := i.tryCode(ctx, link, code, l.Person, from); err != nil {
		return "", err
	}
	sealed, err := hashes.seal(ctx, password)
	if err != nil {
		return "", err
	}
	token = newToken()
	id := uuid.Must(uuid.NewV7()).String()
	err = i.db.Write(ctx, func(tx *db.Tx) error {
		p, err := i.use(tx, link, true)
		if err != nil {
			return err
		}
		n, err := tx.Exec(choosePassword, p.ID, sealed)
		if err == nil && n != 1 {
			err = errLink()
		}
		if err != nil {
			return err
		}
		now := i.clock.Now()
		tx.Defer(insertSession, 1, hashToken(token), id, p.ID, shorten(agent), now, now, sourceOf(from), time.Time{}, true)
		return i.note(tx, p, from, audit.Entry{Action: "person.invitation", Details: changesOf("password", "none", "a new one")})
	})
	return token, err
}
