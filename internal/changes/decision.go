package changes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
)

// ErrMore is returned if a request needs further approvals after this one, and ErrLast if this approval is the last.
// The caller then calls the other function.
var (
	ErrMore = errors.New("changes: the act needs more approvals")
	ErrLast = errors.New("changes: this is the last approval")
)

// CodeEnded is the code of a refusal because the request has already ended.
const CodeEnded = "act_ended"

const (
	insertCheck = `INSERT INTO act_checks (act, checker, name, at, note) VALUES ($1, $2, $3, $4, $5)`
	endRequest  = `UPDATE acts SET state = $3, ended_at = $4, note = $5 WHERE id = $1 AND digest = $2 AND state = 'waiting'`
)

// waiting locks a waiting request of the place. It refuses a request that has changed since the caller saw
// it.
func (s *Store) waiting(tx *db.Tx, by By, seen Request) (Request, error) {
	a, err := s.read(tx, lockRequest, seen.ID)
	switch {
	case err != nil:
		return a, err
	case a.Place != by.Place:
		return a, errNotFound()
	case a.Digest != seen.Digest || a.digest() != a.Digest:
		return a, problem.New(problem.InProgress, "act_changed", "This request differs from the page that you saw. Open it again.")
	case a.State != Waiting:
		return a, problem.New(problem.Duplicate, CodeEnded, "This request is "+string(a.State)+" already")
	case s.over(a):
		return a, problem.New(problem.Gone, "act_expired", "This request has expired. Make a new one.")
	}
	a.Shown = seen.Shown
	return a, nil
}

// standings are the people whose roles decide about a request, by id. They are locked in the order of their ids, and
// nobody can change them until tx ends.
type standings map[string]identity.Standing

func (s *Store) lockPeople(tx *db.Tx, by By, a Request) (standings, error) {
	ids := []string{by.Visitor.Person.ID}
	if a.Key == "" && a.Needs > 0 {
		ids = append(ids, a.Requester)
	}
	for _, c := range a.Checks {
		ids = append(ids, c.Person)
	}
	slices.Sort(ids)
	all := standings{}
	for _, id := range slices.Compact(ids) {
		who, err := s.people.Standing(tx, id, a.Place)
		if err != nil {
			return nil, err
		}
		all[id] = who
	}
	return all, nil
}

// stands refuses an approver who did not have the permission before the request was made.
func (s *Store) stands(approver identity.Standing, rule Rule, a Request) error {
	if err := s.allowed(approver, a.Place, rule.Check); err != nil {
		return err
	}
	if !approver.RoleAt.Before(a.MadeAt) {
		return problem.New(problem.Forbidden, "role_younger", "Your role is newer than this request. Another person must approve it.")
	}
	if !approver.ResetAt.Before(a.MadeAt) {
		return problem.New(problem.Forbidden, "reset_since", "Your account was reset after this request. Another person must approve it.")
	}
	return nil
}

// lapse marks the approvals that no longer count.
func (s *Store) lapse(people standings, rule Rule, a *Request) {
	a.Checks = slices.Clone(a.Checks)
	for i, c := range a.Checks {
		a.Checks[i].Lapsed = s.stands(people[c.Person], rule, *a) != nil
	}
}

// Counted marks the approvals of a waiting request that count now.
func (s *Store) Counted(ctx context.Context, rule Rule, a Request) (Request, error) {
	if a.State != Waiting || len(a.Checks) == 0 {
		return a, nil
	}
	people := standings{}
	err := s.db.Read(ctx, func(tx *db.Tx) (err error) {
		for _, c := range a.Checks {
			if people[c.Person], err = s.people.StandingNow(tx, c.Person, a.Place); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.lapse(people, rule, &a)
	}
	return a, err
}

// mayCheck refuses an approver who is the requester, who has already approved, or who did not have the permission
// before the request was made.
func (s *Store) mayCheck(tx *db.Tx, by By, rule Rule, people standings, a Request) error {
	if err := s.people.InForce(tx, by.Visitor); err != nil { // after the lock, so that no reset can happen in between
		return err
	}
	if by.Visitor.ByToken() {
		return problem.New(problem.Forbidden, "console_only", "Approve requests in the console. A personal token cannot approve.")
	}
	return s.apart(tx, by, rule, people, a)
}

// apart is mayCheck without the check of the session, which may still need a code.
func (s *Store) apart(tx *db.Tx, by By, rule Rule, people standings, a Request) error {
	if a.own(people[by.Visitor.Person.ID].Person) {
		return problem.New(problem.Forbidden, "own_act", "Another person must approve this: you requested it, or you own, created or rotated the API key that requested it")
	}
	if err := s.stands(people[by.Visitor.Person.ID], rule, a); err != nil {
		return err
	}
	for _, c := range a.Checks {
		if c.Person == by.Visitor.Person.ID {
			return problem.New(problem.Duplicate, "checked_before", "You have approved this request already")
		}
	}
	return s.independent(tx, by, rule, a)
}

// Outlook is the part of an approver's page that depends on the approver.
type Outlook struct {
	Refused error  // the reason why the person may not approve; nil: the person may approve
	Note    string // the remark that others will see next to the approval, or empty
}

// Outlook reports, without locks, whether a person may approve a waiting request. It also returns the remark on the
// person's approval.
func (s *Store) Outlook(ctx context.Context, by By, rule Rule, a Request) (o Outlook, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		who, err := s.people.StandingNow(tx, by.Visitor.Person.ID, a.Place)
		if err != nil {
			return err
		}
		o = Outlook{Refused: s.apart(tx, by, rule, standings{by.Visitor.Person.ID: who}, a)}
		var refused *problem.Error
		if o.Refused != nil && !errors.As(o.Refused, &refused) {
			return o.Refused
		}
		if o.Refused == nil {
			o.Note, err = s.remark(tx, by, a)
		}
		return err
	})
	return o, err
}

// Approve stores an approval that is not the last one. It returns ErrLast for the last one.
func (s *Store) Approve(ctx context.Context, by By, rule Rule, seen Request) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		a, people, err := s.waitingWithPeople(tx, by, rule, seen)
		if err != nil {
			return err
		}
		if err := s.mayCheck(tx, by, rule, people, a); err != nil {
			return err
		}
		if a.Approvals()+1 >= a.Needs {
			return ErrLast
		}
		if err := s.check(tx, by, &a); err != nil {
			return err
		}
		return s.note(tx, by, a, "act.approve", string(Waiting), nil)
	})
}

// waitingWithPeople is waiting, and also returns the people who decide about the request and marks the approvals that
// count.
func (s *Store) waitingWithPeople(tx *db.Tx, by By, rule Rule, seen Request) (Request, standings, error) {
	a, err := s.waiting(tx, by, seen)
	if err != nil {
		return a, nil, err
	}
	people, err := s.lockPeople(tx, by, a)
	if err == nil {
		s.lapse(people, rule, &a)
	}
	return a, people, err
}

// check stores an approval and adds it to the request.
func (s *Store) check(tx *db.Tx, by By, a *Request) error {
	p := by.Visitor.Person
	note, err := s.remark(tx, by, *a)
	if err != nil {
		return err
	}
	c := Check{Person: p.ID, Name: p.Email, At: s.clock.Now(), Note: note}
	a.Checks = append(a.Checks, c)
	tx.Defer(insertCheck, 1, a.ID, c.Person, c.Name, c.At, c.Note)
	return nil
}

// mayDo refuses a person who may not apply a request. If it needs no approver, only its requester may. Otherwise only
// its last approver may, while the requester still has the permission. It returns ErrMore if further approvals are
// needed. For a request of a key, the caller that knows the key checks it.
func (s *Store) mayDo(tx *db.Tx, by By, rule Rule, people standings, a Request) error {
	if a.Needs == 0 {
		if by.Visitor.Person.ID != a.Requester {
			return problem.New(problem.Forbidden, "not_your_act", "Only the requester can apply a request that needs no approval")
		}
		return s.mayMake(tx, by, rule)
	}
	if a.Key == "" {
		if err := s.allowed(people[a.Requester], a.Place, rule.Make); err != nil {
			return err
		}
	}
	if err := s.mayCheck(tx, by, rule, people, a); err != nil {
		return err
	}
	if a.Approvals()+1 < a.Needs {
		return ErrMore
	}
	return nil
}

// Finish marks a request as applied in tx, the transaction that applies it. It returns ErrMore if the request needs
// more approvals.
func (s *Store) Finish(tx *db.Tx, by By, rule Rule, seen Request, changes []audit.Change) error {
	if by.Machine != "" {
		return s.finishAtOnce(tx, by, seen, changes)
	}
	a, people, err := s.waitingWithPeople(tx, by, rule, seen)
	if err != nil {
		return err
	}
	if err := s.mayDo(tx, by, rule, people, a); err != nil {
		return err
	}
	if a.Needs > 0 {
		if err := s.check(tx, by, &a); err != nil {
			return err
		}
	}
	tx.Defer(endRequest, 1, a.ID, a.Digest, string(Done), s.clock.Now(), "")
	return s.note(tx, by, a, a.Kind, string(Done), changes)
}

// finishAtOnce stores the request of a command without a person in tx, as done. If the command left the request to a
// server, it exists already, and finishAtOnce ends it.
func (s *Store) finishAtOnce(tx *db.Tx, by By, a Request, changes []audit.Change) error {
	if !a.byMachine() {
		return problem.New(problem.Forbidden, "not_your_act", "Only a person can approve the request of a person")
	}
	_, err := s.waiting(tx, by, a)
	switch {
	case problem.Is(err, problem.NotFound):
		a.State, a.EndedAt = Done, s.clock.Now()
		s.insert(tx, a)
	case err != nil:
		return err
	default:
		tx.Defer(endRequest, 1, a.ID, a.Digest, string(Done), s.clock.Now(), "")
	}
	return s.note(tx, by, a, a.Kind, string(Done), changes)
}

// end ends a request without applying it.
func (s *Store) end(tx *db.Tx, by By, a Request, to State, note string) error {
	a.Note = note
	tx.Defer(endRequest, 1, a.ID, a.Digest, string(to), s.clock.Now(), note)
	return s.note(tx, by, a, "act."+string(to), string(to), nil)
}

// Reject ends a request in tx with a reason. The person must be allowed to approve it.
func (s *Store) Reject(tx *db.Tx, by By, rule Rule, seen Request, why string) error {
	if strings.TrimSpace(why) == "" || utf8.RuneCountInString(why) > 500 {
		return problem.Field("note", "is required, with at most 500 characters")
	}
	a, people, err := s.waitingWithPeople(tx, by, rule, seen)
	if err != nil {
		return err
	}
	if err := s.mayCheck(tx, by, rule, people, a); err != nil {
		return err
	}
	return s.end(tx, by, a, Rejected, why)
}

// Withdraw ends a request in tx, by its requester.
func (s *Store) Withdraw(tx *db.Tx, by By, seen Request) error {
	a, err := s.waiting(tx, by, seen)
	if err != nil {
		return err
	}
	if err := s.people.InForce(tx, by.Visitor); err != nil {
		return err
	}
	if a.Requester != by.Visitor.Person.ID {
		return problem.New(problem.Forbidden, "not_your_act", "Only the requester can withdraw a request")
	}
	return s.end(tx, by, a, Withdrawn, "")
}

// Fail ends a request in tx because its subject refused the change. It leaves a request that has ended as it is.
func (s *Store) Fail(tx *db.Tx, by By, rule Rule, seen Request, why string) error {
	a, people, err := s.waitingWithPeople(tx, by, rule, seen)
	if err != nil {
		return err
	}
	if err := s.mayDo(tx, by, rule, people, a); err != nil {
		return err
	}
	return s.end(tx, by, a, Failed, why)
}

// over reports whether a request has waited for too long. After the clock was set, no request expires for the time
// Lasts. So a clock that is set forward does not expire requests.
func (s *Store) over(a Request) bool { return !a.ExpiresAt.After(s.overBefore()) }

// overBefore returns the time before which requests have expired. Zero means that no request has expired.
func (s *Store) overBefore() time.Time {
	if s.clock.Ago(Lasts).IsZero() {
		return time.Time{}
	}
	return s.clock.Now()
}

// expiredAtOnce is the number of requests that are read at once.
const expiredAtOnce = 100

const selectExpired = `SELECT ` + requestColumns + ` FROM acts WHERE state = 'waiting' AND expires_at <= $1 AND id > $2 ORDER BY id LIMIT $3`

// Expired lists some of the requests that have waited for too long, in the order of their ids. after is the id after
// which the list begins.
func (s *Store) Expired(ctx context.Context, after string) ([]Request, error) {
	return db.ReadAll(ctx, s.db, selectExpired, []any{s.overBefore(), after, expiredAtOnce}, (*Request).scan)
}

// Expire ends a request in tx because it waited too long. It leaves a request that has ended as it is.
func (s *Store) Expire(tx *db.Tx, seen Request) error {
	a, err := s.read(tx, lockRequest, seen.ID)
	if err != nil || a.State != Waiting || !s.over(a) {
		return err
	}
	return s.end(tx, By{}, a, Expired, "")
}
