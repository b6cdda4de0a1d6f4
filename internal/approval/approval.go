// Package approval keeps acts: what a person asked for that moves money, keys or roles, word by word, and who else checked
// it before it was done. It decides who may make and who may check; what an act does is no matter of its own.
//
// An act is a row from the first moment. It waits until as many people as it needs have approved it, each another one than
// the maker and than each other, and is done once: the transaction that does it makes its row done, from waiting. A process
// that dies before leaves an act that waits. A checker approves a digest over everything that the page showed.
//
// An act has a place: the installation, or the tenant whose own people make it. Maker and checkers act there by their roles
// there; nobody else finds it.
package approval

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/fresh"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
)

// Lasts is how long an act waits for its checkers.
const Lasts = 24 * time.Hour

// State is what became of an act. Stored.
type State string

// The states. Every one but Waiting is final.
const (
	Waiting   State = "waiting"
	Done      State = "done"
	Rejected  State = "rejected"
	Withdrawn State = "withdrawn" // by its maker
	Expired   State = "expired"
	Failed    State = "failed" // refused by what it is about
)

// Act is what a person asked for.
type Act struct {
	ID        string // that of the form: a form that is sent twice makes one act
	Kind      string // such as "wallet.fund"
	Tenant    string // whom it concerns; empty: the installation
	Place     string // whose people make and check it: a tenant's id, or identity.Installation
	Payload   json.RawMessage
	Sentence  string // the payload for people
	Reason    string
	Maker     string   // the id of a person; of the one who made the Key where a key asked, and empty where that is not known
	MakerName string   // e-mail address, or what the key is called
	Key       string   // the id of the API key that asked; empty: a person did
	Member    string   // the free text of an older key: a person whom it may name does not check
	Barred    []string // the ids of the people besides Maker who do not check: who made or rotated the Key, and whose it is
	Origin    string   // the address that the maker came from
	Digest    string
	Amount    money.Pesewas // what it moves; 0: no money
	Needs     int           // checkers
	State     State
	MadeAt    time.Time
	ExpiresAt time.Time
	EndedAt   time.Time // zero: it waits
	Note      string    // why it was rejected, or failed
	Checks    []Check
	// Refused is why what the act is about refused it, where that has just happened. It is never stored here: Note is.
	Refused *problem.Error
	// Secret is what the act made and its maker is shown once, and Code what its approver is shown once. They are set where
	// the maker has just done the act alone, and are never stored here.
	Secret, Code string
}

// Check is an approval of an act.
type Check struct {
	Person, Name string
	At           time.Time
	Note         string // what others should know of it: who invited the approver, and what the approver shares with the requester
	// Lapsed approvals count no longer: who gave one may not check now, or was reset or given the role since the act was made.
	// Counted fills it in, while the act waits.
	Lapsed bool
}

// Approvals is how many of an act's checks count.
func (a Act) Approvals() (n int) {
	for _, c := range a.Checks {
		if !c.Lapsed {
			n++
		}
	}
	return n
}

// own reports whether a person requested the act, or has or may have the key that did.
func (a Act) own(p identity.Person) bool {
	return p.ID == a.Maker || slices.Contains(a.Barred, p.ID) || identity.Named(a.Member, p)
}

// Rule says who may make and who may check acts of a kind.
type Rule struct {
	Make, Check identity.Permission
	// Light acts need no checker where no line of the policy says otherwise.
	Light bool
	// ByKey says that an API key may ask for them.
	ByKey bool
}

// By is who does something to an act, and from where.
type By struct {
	Visitor identity.Visitor
	Origin  string // an IP address
	Place   string // where they do it: a tenant's id, or identity.Installation
}

// digest is over everything that a checker is shown. Each member is hashed with its length before it.
func (a Act) digest() string {
	sum := sha256.New()
	members := []string{"makola act 1", a.ID, a.Kind, a.Tenant, string(a.Payload), a.Sentence, a.Reason, a.Maker, a.MakerName, a.Origin, a.MadeAt.UTC().Format(time.RFC3339Nano), a.Amount.String(), strconv.Itoa(a.Needs)}
	if a.Place != identity.Installation { // acts of the installation are hashed as by the release before
		members[0] = "makola act 2"
		members = append(members, a.Place)
	}
	if a.Key != "" {
		members[0] = "makola act 3"
		members = append(members, a.Key, a.Member)
	}
	if len(a.Barred) > 0 {
		members[0] = "makola act 4"
		members = append(members, strings.Join(a.Barred, " "))
	}
	for _, s := range members {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(s)))
		sum.Write(size[:])
		sum.Write([]byte(s))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// same says whether two acts ask for the same, whenever they were made.
func (a Act) same(b Act) bool {
	return a.Kind == b.Kind && a.Tenant == b.Tenant && a.Place == b.Place && string(a.Payload) == string(b.Payload) && a.Reason == b.Reason && a.Maker == b.Maker
}

// Store keeps acts. It is safe for concurrent use.
type Store struct {
	db         *db.DB
	clock      *clock.Clock
	audit      *audit.Log
	people     *identity.Identity
	production bool
	ownLines   *fresh.Cache[ownKind, []Line]
}

// New makes a Store. In production the acts of somebody need a check by another person, where there is one who may.
func New(d *db.DB, c *clock.Clock, log *audit.Log, people *identity.Identity, production bool) *Store {
	s := &Store{db: d, clock: c, audit: log, people: people, production: production}
	s.ownLines = fresh.New(c, linesFresh, linesKept, s.loadOwnLines)
	return s
}

const actColumns = `id, kind, tenant, payload, sentence, reason, maker, maker_name, origin, digest, needs, state, made_at, expires_at, ended_at, note, pesewas, place, access_key, member, barred`

func scan(r *db.Row, a *Act) error {
	var payload, barred string
	err := r.Scan(&a.ID, &a.Kind, &a.Tenant, &payload, &a.Sentence, &a.Reason, &a.Maker, &a.MakerName, &a.Origin, &a.Digest, &a.Needs, &a.State,
		&a.MadeAt, &a.ExpiresAt, &a.EndedAt, &a.Note, &a.Amount, &a.Place, &a.Key, &a.Member, &barred)
	a.Payload, a.Barred = json.RawMessage(payload), strings.Fields(barred)
	return err
}

const (
	selectAct    = `SELECT ` + actColumns + ` FROM acts WHERE id = $1`
	lockAct      = selectAct + ` FOR UPDATE`
	selectChecks = `SELECT checker, name, at, note FROM act_checks WHERE act = $1 ORDER BY at, checker`
	selectActs   = `SELECT ` + actColumns + ` FROM acts WHERE ($1 = '' OR tenant = $1) AND ($2 = '' OR state = $2) AND ($3 = '' OR id < $3) AND ($4 = 1 OR place = $5)
		ORDER BY id DESC LIMIT $6`
	insertAct = `INSERT INTO acts (` + actColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`
)

// Get finds an act with its checks.
func (s *Store) Get(ctx context.Context, id string) (a Act, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		a, err = s.read(tx, selectAct, id)
		return err
	})
	return a, err
}

func errNotFound() error {
	return problem.New(problem.NotFound, "act_not_found", "There is no such act")
}

func (s *Store) read(tx *db.Tx, query, id string) (a Act, err error) {
	found := false
	if err := tx.Query(query, []any{id}, func(r *db.Row) error { found = true; return scan(r, &a) }); err != nil {
		return a, err
	}
	if !found {
		return a, errNotFound()
	}
	err = tx.Query(selectChecks, []any{id}, func(r *db.Row) error {
		var c Check
		err := r.Scan(&c.Person, &c.Name, &c.At, &c.Note)
		a.Checks = append(a.Checks, c)
		return err
	})
	return a, err
}

// Filter narrows a list. Empty members do not.
type Filter struct {
	Tenant    string
	State     State
	Before    string // only those that are older than this one
	Place     string // only those of this place; empty: of the installation
	AllPlaces bool   // those of every place
	Limit     int
}

// List gives acts without their checks, the latest first.
func (s *Store) List(ctx context.Context, f Filter) (list []Act, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		list = nil
		all := 0
		if f.AllPlaces {
			all = 1
		}
		return tx.Query(selectActs, []any{f.Tenant, string(f.State), f.Before, all, f.Place, f.Limit}, func(r *db.Row) error {
			var a Act
			err := scan(r, &a)
			list = append(list, a)
			return err
		})
	})
	return list, err
}

const countWaiting = `SELECT count(*) FROM acts WHERE state = 'waiting'`

// Waiting counts the acts that wait.
func (s *Store) Waiting(ctx context.Context) (n int, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		_, err := tx.One(countWaiting, nil, &n)
		return err
	})
	return n, err
}

// Write runs fn in one transaction, for acts that no domain has a verb for.
func (s *Store) Write(ctx context.Context, fn func(*db.Tx) error) error { return s.db.Write(ctx, fn) }

// Make writes an act down, which waits. The same form again gives the same act; another one under its id is a Duplicate.
func (s *Store) Make(ctx context.Context, by By, rule Rule, a Act) (made Act, err error) {
	p := by.Visitor.Person
	a.Maker, a.MakerName, a.Origin, a.Place, a.State, a.Checks = p.ID, p.Email, by.Origin, by.Place, Waiting, nil
	landed := func(tx *db.Tx) (bool, error) {
		made, err = s.read(tx, selectAct, a.ID)
		if problem.Is(err, problem.NotFound) {
			return false, nil
		}
		return err == nil, err
	}
	err = s.db.WriteRecognising(ctx, landed, func(tx *db.Tx) error {
		if there, err := landed(tx); err != nil || there {
			return err
		}
		if err := s.mayMake(tx, by, rule); err != nil {
			return err
		}
		made = a
		made.MadeAt = s.clock.Now()
		made.ExpiresAt = made.MadeAt.Add(Lasts)
		if made.Needs, err = s.needs(tx, rule, made); err != nil {
			return err
		}
		if made.Needs > 0 {
			twin, found, err := s.twin(tx, made)
			if err != nil {
				return err
			}
			if found {
				made = twin
				return nil
			}
			if err := s.limit(tx, made, made.ID); err != nil {
				return err
			}
		}
		made.Digest = made.digest()
		s.insert(tx, made)
		if made.Needs == 0 {
			return nil // it is done at once, with an entry of its own
		}
		return s.note(tx, by, made, "act.make", string(Waiting), nil)
	})
	if errors.Is(err, db.ErrUnique) { // the same form, at the same moment
		made, err = s.Get(ctx, a.ID)
	}
	if err == nil && !made.same(a) {
		return Act{}, problem.New(problem.Duplicate, "act_exists", "This form was used for something else. Open it again.")
	}
	return made, err
}

func (s *Store) insert(tx *db.Tx, a Act) {
	tx.Defer(insertAct, 1, a.ID, a.Kind, a.Tenant, string(a.Payload), a.Sentence, a.Reason, a.Maker, a.MakerName, a.Origin,
		a.Digest, a.Needs, string(a.State), a.MadeAt, a.ExpiresAt, a.EndedAt, a.Note, int64(a.Amount), a.Place, a.Key, a.Member, strings.Join(a.Barred, " "))
}

// mayMake refuses a maker whose session or role does not allow it now.
func (s *Store) mayMake(tx *db.Tx, by By, rule Rule) error { return s.Allow(tx, by, rule.Make) }

// Allow refuses, in tx, a visitor whose session, token or role does not allow now what needs a permission at the place.
func (s *Store) Allow(tx *db.Tx, by By, p identity.Permission) error {
	who, err := s.people.Standing(tx, by.Visitor.Person.ID, by.Place)
	if err != nil {
		return err
	}
	if err := s.people.InForce(tx, by.Visitor); err != nil { // behind the lock, so that a reset comes before or after
		return err
	}
	return s.allowed(who, by.Place, p)
}

// allowed refuses a person without a permission at a place and, in production, without a second factor.
func (s *Store) allowed(who identity.Standing, place string, p identity.Permission) error {
	switch {
	case !who.Can(identity.SiteOf(place), p):
		return problem.New(problem.Forbidden, "not_allowed", who.Person.Email+" does not have the permission "+string(p))
	case s.production && !who.HasFactor:
		return problem.New(problem.Forbidden, "no_factor", who.Person.Email+" has no second factor")
	}
	return nil
}

// note writes the entry of what was done to an act.
func (s *Store) note(tx *db.Tx, by By, a Act, action, after string, changes []audit.Change) error {
	before := ""
	if action != "act.make" {
		before = string(Waiting)
	}
	e := audit.Entry{Actor: by.Visitor.Person.Email, Person: by.Visitor.Person.ID, Origin: by.Origin, Action: action, Tenant: a.Tenant, Subject: a.ID, Reason: a.Reason}
	switch {
	case e.Actor == "" && action == "act.make":
		e.Actor, e.Person, e.Origin = a.MakerName, a.Maker, a.Origin
		if a.Key != "" {
			e.Person = ""
		}
	case e.Actor == "":
		e.Actor = "makola"
	}
	e.Details = map[string]any{"act": a.ID, "kind": a.Kind, "sentence": a.Sentence, "maker": a.MakerName, "digest": a.Digest, "note": a.Note,
		"changes": append(changes, audit.Change{What: "act", Before: before, After: after})}
	if n := len(a.Checks); n > 0 && a.Checks[n-1].Person == e.Person && a.Checks[n-1].Note != "" {
		e.Details.(map[string]any)["approver"] = a.Checks[n-1].Note
	}
	if len(changes) > 0 { // it is done
		return s.audit.WriteNoted(tx, e)
	}
	return s.audit.Write(tx, e)
}
