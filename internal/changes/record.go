package changes

import (
	"context"
	"errors"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// Make stores a request in the state Waiting. The same form again returns the same request. Another form under its id is
// a Duplicate. The functions begin run in the transaction of a new request.
func (s *Store) Make(ctx context.Context, by By, rule Rule, a Request, begin ...func(*db.Tx) error) (made Request, err error) {
	a.Requester, a.RequesterName, a.Origin, a.Place, a.State, a.Checks = by.id(), by.name(), by.Origin, by.Place, Waiting, nil
	landed := func(tx *db.Tx) (bool, error) {
		made, err = s.read(tx, selectRequest, a.ID)
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
		made.ExpiresAt = made.MadeAt.Add(rule.lasts())
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
		for _, fn := range begin {
			if err := fn(tx); err != nil {
				return err
			}
		}
		s.insert(tx, made)
		if made.Needs == 0 {
			return nil // it is applied at once, with a separate audit entry
		}
		return s.note(tx, by, made, "act.make", string(Waiting), nil)
	})
	if errors.Is(err, db.ErrUnique) { // the same form was sent twice at the same moment
		made, err = s.Get(ctx, a.ID)
	}
	if err == nil && !made.same(a) {
		return Request{}, problem.New(problem.Duplicate, "act_exists", "This form was already used for another request. Open the form again.")
	}
	return made, err
}

// AtOnce completes the request of a command without a person. The transaction that applies the request also stores
// it.
func (s *Store) AtOnce(by By, a Request) Request {
	a.Requester, a.RequesterName, a.Origin, a.Place, a.State, a.MadeAt = by.id(), by.name(), by.Origin, by.Place, Waiting, s.clock.Now()
	a.ExpiresAt = a.MadeAt.Add(Lasts)
	a.Digest = a.digest()
	return a
}

// Planned completes a request that is stored by the transaction of its domain. It refuses a request that too few
// people may approve. If no approver is needed, Needs is 0.
func (s *Store) Planned(ctx context.Context, rule Rule, a Request) (Request, error) {
	if a.Key != "" && !rule.ByKey {
		return Request{}, problem.New(problem.Forbidden, "person_needed", "An API key cannot request this. A person must request it")
	}
	err := s.db.Read(ctx, func(tx *db.Tx) (err error) {
		a.Needs, err = s.needs(tx, rule, a)
		return err
	})
	if err == nil && a.Needs > 0 && a.Key == "" {
		err = s.db.Write(ctx, func(tx *db.Tx) error { return s.limit(tx, a, a.Kind+" "+a.Tenant+" "+a.reference()) })
	}
	a.State, a.MadeAt = Waiting, s.clock.Now()
	a.ExpiresAt = a.MadeAt.Add(rule.lasts())
	a.Digest = a.digest()
	return a, err
}

// InsertPlanned stores a request from Planned in tx: as waiting, or as applied with changes if it needs no approver. by
// is empty for the request of a key.
func (s *Store) InsertPlanned(tx *db.Tx, by By, rule Rule, a Request, changes ...audit.Change) error {
	if a.Key == "" {
		if err := s.mayMake(tx, by, rule); err != nil {
			return err
		}
	}
	if a.Needs > 0 {
		s.insert(tx, a)
		return s.note(tx, by, a, "act.make", string(Waiting), nil)
	}
	a.State, a.EndedAt = Done, s.clock.Now()
	s.insert(tx, a)
	return s.note(tx, by, a, a.Kind, string(Done), changes)
}
