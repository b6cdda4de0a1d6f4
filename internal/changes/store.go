package changes

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// Store keeps requests. It is safe for concurrent use.
type Store struct {
	db         *db.DB
	clock      *clock.Clock
	audit      *audit.Log
	people     *identity.Identity
	production bool
	ownLines   *cache.Cache[ownKind, []Line]
}

// NewStore makes a Store. In production a request needs another person's approval if there is another person who may
// approve it.
func NewStore(d *db.DB, c *clock.Clock, log *audit.Log, people *identity.Identity, production bool) *Store {
	s := &Store{db: d, clock: c, audit: log, people: people, production: production}
	s.ownLines = cache.New(c, linesFresh, linesKept, func(ctx context.Context, of ownKind) ([]Line, error) { return loadOwnLines(ctx, d, of) })
	return s
}

const requestColumns = `id, kind, tenant, payload, sentence, reason, maker, maker_name, origin, digest, needs, state, made_at, expires_at, ended_at, note, pesewas, place, access_key, member, barred, facts`

func (a *Request) scan(r *db.Row) error {
	var payload, barred, facts string
	err := r.Scan(&a.ID, &a.Kind, &a.Tenant, &payload, &a.Sentence, &a.Reason, &a.Requester, &a.RequesterName, &a.Origin, &a.Digest, &a.Needs, &a.State,
		&a.MadeAt, &a.ExpiresAt, &a.EndedAt, &a.Note, &a.Amount, &a.Place, &a.Key, &a.Member, &barred, &facts)
	a.Payload, a.Barred, a.Facts = json.RawMessage(payload), strings.Fields(barred), factsOf(facts)
	return err
}

const (
	selectRequest  = `SELECT ` + requestColumns + ` FROM acts WHERE id = $1`
	lockRequest    = selectRequest + ` FOR UPDATE`
	selectChecks   = `SELECT checker, name, at, note FROM act_checks WHERE act = $1 ORDER BY at, checker`
	selectRequests = `SELECT ` + requestColumns + ` FROM acts WHERE ($1 = '' OR tenant = $1) AND ($2 = '' OR state = $2) AND ($3 = '' OR id < $3) AND ($4 = 1 OR place = $5)
		ORDER BY id DESC LIMIT $6`
	insertRequest = `INSERT INTO acts (` + requestColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)`
)

// Get finds a request with its approvals.
func (s *Store) Get(ctx context.Context, id string) (Request, error) {
	return db.Get(ctx, s.db, func(tx *db.Tx) (Request, error) { return s.read(tx, selectRequest, id) })
}

func errNotFound() error {
	return problem.New(problem.NotFound, "act_not_found", "There is no such request")
}

func (s *Store) read(tx *db.Tx, query, id string) (a Request, err error) {
	found := false
	if err := tx.Query(query, []any{id}, func(r *db.Row) error { found = true; return a.scan(r) }); err != nil {
		return a, err
	}
	if !found {
		return a, errNotFound()
	}
	a.Checks, err = db.All(tx, selectChecks, []any{id}, func(c *Check, r *db.Row) error { return r.Scan(&c.Person, &c.Name, &c.At, &c.Note) })
	return a, err
}

// Filter narrows a list. Empty members have no effect.
type Filter struct {
	Tenant    string
	State     State
	Before    string // only requests older than this one
	Place     string // only requests of this place; empty: of the installation
	AllPlaces bool   // requests of every place
	Limit     int
}

// List returns requests without their approvals, the latest first.
func (s *Store) List(ctx context.Context, f Filter) (list []Request, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		all := 0
		if f.AllPlaces {
			all = 1
		}
		list, err = db.All(tx, selectRequests, []any{f.Tenant, string(f.State), f.Before, all, f.Place, f.Limit}, (*Request).scan)
		return err
	})
	return list, err
}

const countWaiting = `SELECT count(*) FROM acts WHERE state = 'waiting'`

// Waiting counts the requests that wait.
func (s *Store) Waiting(ctx context.Context) (n int, err error) {
	_, err = s.db.ReadOne(ctx, countWaiting, nil, &n)
	return n, err
}

// Write runs fn in one transaction.
func (s *Store) Write(ctx context.Context, fn func(*db.Tx) error) error { return s.db.Write(ctx, fn) }

// Apply is Write for the transaction that applies a request. If the response to COMMIT is lost, Apply finds out
// whether the transaction took effect by the request that it stored.
func (s *Store) Apply(ctx context.Context, a Request, fn func(*db.Tx) error) error {
	if !a.byMachine() {
		return s.db.Write(ctx, fn)
	}
	landed := func(tx *db.Tx) (bool, error) {
		_, err := s.read(tx, selectRequest, a.ID)
		if problem.Is(err, problem.NotFound) {
			return false, nil
		}
		return err == nil, err
	}
	return s.db.WriteRecognising(ctx, landed, fn)
}

// now returns the time for facts.
func (s *Store) now() time.Time { return s.clock.Now().UTC().Truncate(time.Millisecond) }

const eraseFacts = `UPDATE acts SET facts = '' WHERE id = $1 AND state <> 'waiting'`

// EraseFacts removes, in tx, the facts of the request with a payout's id, because they may contain the payee's name.
func EraseFacts(tx *db.Tx, payout string) { tx.Defer(eraseFacts, -1, payout) }

func (s *Store) insert(tx *db.Tx, a Request) {
	tx.Defer(insertRequest, 1, a.ID, a.Kind, a.Tenant, string(a.Payload), a.Sentence, a.Reason, a.Requester, a.RequesterName, a.Origin,
		a.Digest, a.Needs, string(a.State), a.MadeAt, a.ExpiresAt, a.EndedAt, a.Note, int64(a.Amount), a.Place, a.Key, a.Member, strings.Join(a.Barred, " "), a.Facts.text())
}

// mayMake refuses a requester whose session or role does not now allow the request.
func (s *Store) mayMake(tx *db.Tx, by By, rule Rule) error { return s.Allow(tx, by, rule.Make) }

// Allow refuses, in tx, a visitor whose session, token or role does not now give a permission at the place.
func (s *Store) Allow(tx *db.Tx, by By, p roles.Permission) error {
	if by.Machine != "" {
		return nil
	}
	who, err := s.people.Standing(tx, by.Visitor.Person.ID, by.Place)
	if err != nil {
		return err
	}
	if err := s.people.InForce(tx, by.Visitor); err != nil { // after the lock, so that no reset can happen in between
		return err
	}
	return s.allowed(who, by.Place, p)
}

// allowed refuses a person without a permission at a place and, in production, without a second factor.
func (s *Store) allowed(who identity.Standing, place string, p roles.Permission) error {
	switch {
	case !who.Can(roles.SiteOf(place), p):
		return problem.New(problem.Forbidden, "not_allowed", who.Person.Email+" does not have the permission "+string(p))
	case s.production && !who.HasFactor:
		return problem.New(problem.Forbidden, "no_factor", who.Person.Email+" has no second factor")
	}
	return nil
}

// note writes the audit entry of a step of a request.
func (s *Store) note(tx *db.Tx, by By, a Request, action, after string, changes []audit.Change) error {
	before := ""
	if action != "act.make" {
		before = string(Waiting)
	}
	e := audit.Entry{Actor: by.name(), Person: by.Visitor.Person.ID, Origin: by.Origin, Action: action, Tenant: a.Tenant, Subject: a.ID, Reason: a.Reason}
	switch {
	case e.Actor == "" && action == "act.make":
		e.Actor, e.Person, e.Origin = a.RequesterName, a.Requester, a.Origin
		if a.Key != "" {
			e.Person = ""
		}
	case e.Actor == "":
		e.Actor = "makola"
	}
	all := changes
	if by.Machine == "" { // otherwise the request begins and ends with this entry
		all = append(all, audit.Change{What: "act", Before: before, After: after})
	}
	e.Details = map[string]any{"act": a.ID, "kind": a.Kind, "sentence": a.Sentence, "maker": a.RequesterName, "digest": a.Digest, "note": a.Note, "changes": all}
	if reference := a.reference(); reference != "" {
		e.Details.(map[string]any)["reference"] = reference
	}
	if a.Shown != "" {
		e.Details.(map[string]any)["shown"] = a.Shown
	}
	if n := len(a.Checks); n > 0 && a.Checks[n-1].Person == e.Person && a.Checks[n-1].Note != "" {
		e.Details.(map[string]any)["approver"] = a.Checks[n-1].Note
	}
	if len(changes) > 0 { // it is done
		return s.audit.WriteNoted(tx, e)
	}
	return s.audit.Write(tx, e)
}
