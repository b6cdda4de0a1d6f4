package changes

import (
	"context"
	"slices"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// The lifetimes of a secret: until its requester fetches it, and in which the same session can fetch it again.
const (
	SecretLasts = 24 * time.Hour
	shownAgain  = time.Minute
)

const (
	insertSecret = `INSERT INTO act_secrets (act, sealed, kept_at, shown_at, session) VALUES ($1, $2, $3, 0, '')`
	lockSecret   = `SELECT sealed, kept_at, shown_at, session FROM act_secrets WHERE act = $1 FOR UPDATE`
	showSecret   = `UPDATE act_secrets SET shown_at = $2, session = $3 WHERE act = $1 AND shown_at = 0`
	dropSecrets  = `DELETE FROM act_secrets WHERE kept_at <= $1 OR shown_at > 0 AND shown_at <= $2`
	selectSecret = `SELECT act FROM act_secrets WHERE act = $1 AND shown_at = 0 AND kept_at > $2`
)

// Part is one of the secrets that a request makes.
type Part string

// The parts. The requester sees the first part, such as a link. An approver sees the code that the link needs, or the
// requester if nobody had to approve.
const (
	Secret Part = ""
	Code   Part = ".code"
)

// Of returns the id under which a part of a request's secrets is stored and sealed.
func (p Part) Of(a Request) string { return a.ID + string(p) }

// For reports whether a person may see the part of a request.
func (p Part) For(a Request, person string) bool {
	if p == Code && a.Needs > 0 {
		return slices.ContainsFunc(a.Checks, func(c Check) bool { return c.Person == person })
	}
	return a.Requester == person
}

// Keep stores in tx a secret that a request made, sealed.
func (s *Store) Keep(tx *db.Tx, a Request, p Part, sealed []byte) {
	tx.Defer(insertSecret, 1, p.Of(a), sealed, s.clock.Now())
}

// ErrShown is returned for a secret that was removed or never existed.
func ErrShown() error {
	return problem.New(problem.Gone, "secret_shown", "The secret was shown before, or a day has passed. Create another one.")
}

// Kept reports whether a part of a request's secrets still waits for a person.
func (s *Store) Kept(ctx context.Context, a Request, p Part, person string) (found bool, err error) {
	if a.State != Done || !p.For(a, person) {
		return false, nil
	}
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		var id string
		found, err = tx.One(selectSecret, []any{p.Of(a), s.clock.Now().Add(-SecretLasts)}, &id)
		return err
	})
	return found, err
}

// Reveal returns a part of a request's secrets to the person for whom it was kept, and records that it was shown. The
// person must still have the permission to request or approve.
func (s *Store) Reveal(ctx context.Context, by By, rule Rule, p Part, seen Request) (sealed []byte, err error) {
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		a, err := s.read(tx, lockRequest, seen.ID)
		if err != nil {
			return err
		}
		if a.Place != by.Place || a.State != Done {
			return errNotFound()
		}
		if !p.For(a, by.Visitor.Person.ID) {
			return problem.New(problem.Forbidden, "not_your_act", "Only another person can see this: a link is shown to its requester, and its code to the approver")
		}
		allow := rule.Make
		if a.Requester != by.Visitor.Person.ID {
			allow = rule.Check
		}
		if err := s.Allow(tx, by, allow); err != nil {
			return err
		}
		var kept, shown time.Time
		var session string
		sealed = nil
		found, err := tx.One(lockSecret, []any{p.Of(a)}, &sealed, &kept, &shown, &session)
		now := s.clock.Now()
		switch {
		case err != nil:
			return err
		case !found, !now.Before(kept.Add(SecretLasts)), !shown.IsZero() && (session != by.Visitor.Session.ID || !now.Before(shown.Add(shownAgain))):
			return ErrShown()
		case !shown.IsZero():
			return nil
		}
		tx.Defer(showSecret, 1, p.Of(a), now, by.Visitor.Session.ID)
		return s.audit.Write(tx, audit.Entry{Actor: by.Visitor.Person.Email, Person: by.Visitor.Person.ID, Origin: by.Origin, Action: "act.reveal" + string(p), Tenant: a.Tenant, Subject: a.ID,
			Reason: a.Reason, Details: map[string]any{"act": a.ID, "kind": a.Kind, "sentence": a.Sentence}})
	})
	return sealed, err
}

// Forget removes secrets that were shown, and secrets that waited for too long.
func (s *Store) Forget(ctx context.Context) error {
	now := s.clock.Now()
	return s.db.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(dropSecrets, -1, now.Add(-SecretLasts), now.Add(-shownAgain))
		return nil
	})
}
