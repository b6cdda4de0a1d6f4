package identity

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/dbtest"
)

var start = time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC)

// fixture is a new database with a person who has a role.
type fixture struct {
	*Identity
	t      *testing.T
	db     *db.DB
	clock  *clock.Clock
	person Person
}

func newIdentity(t *testing.T, d *db.DB, c *clock.Clock) *Identity {
	t.Helper()
	secret, err := config.NewSecret(bytes.Repeat([]byte{7}, config.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	i := New(d, c, audit.New(d, c), Options{Secret: secret, Development: true})
	i.hasher.memory, i.hasher.time = 64, 1 // cheap hashes, because these tests do not depend on the cost of a password
	return i
}

func each(t *testing.T, memberships []Membership, fn func(f *fixture)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		f := &fixture{Identity: newIdentity(t, d, c), t: t, db: d, clock: c}
		var err error
		if f.person, err = f.Ensure(t.Context(), "Ama@Example.com ", "Ama Owusu", memberships); err != nil {
			t.Fatal(err)
		}
		fn(f)
	})
}

func (f *fixture) link() string {
	f.t.Helper()
	token, err := f.NewLink(f.t.Context(), f.person.ID)
	if err != nil {
		f.t.Fatal(err)
	}
	return token
}

func (f *fixture) signIn() string {
	f.t.Helper()
	token, err := f.SignIn(f.t.Context(), f.link(), "A browser")
	if err != nil {
		f.t.Fatal(err)
	}
	return token
}

// in reports whether a token signs its bearer in, and fails the test on any error other than errAttempt.
func (f *fixture) in(token string, used bool) bool {
	f.t.Helper()
	_, err := f.Visit(f.t.Context(), token, used)
	if err != nil && !problem.Is(err, problem.Unauthenticated) {
		f.t.Fatal(err)
	}
	return err == nil
}

var operator = []Membership{{roles.Installation, roles.Owner}, {"t1", roles.Owner}}

// A link signs in once.
func TestLink_signsInOnce(t *testing.T) {
	each(t, operator, func(f *fixture) {
		link := f.link()
		for range 2 { // looking at a link does not use it up
			if p, err := f.Link(f.t.Context(), link); err != nil || p.Person.Email != "ama@example.com" || p.Invitation {
				f.t.Fatalf("%+v, %v", p, err)
			}
		}
		var won atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if _, err := f.SignIn(context.WithoutCancel(f.t.Context()), link, ""); err == nil {
					won.Add(1)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			f.t.Fatalf("%d browsers signed in with one link", won.Load())
		}
		if _, err := f.Link(f.t.Context(), link); !problem.Is(err, problem.Unauthenticated) {
			f.t.Fatalf("a used link: %v", err)
		}
	})
}

// A link works for thirty minutes.
func TestLink_lastsThirtyMinutes(t *testing.T) {
	each(t, operator, func(f *fixture) {
		link := f.link()
		f.clock.Advance(LinkLasts)
		for _, token := range []string{link, "", "x", strings.Repeat("A", tokenLength)} {
			if _, err := f.SignIn(f.t.Context(), token, ""); !problem.Is(err, problem.Unauthenticated) {
				f.t.Errorf("%q: %v", token, err)
			}
		}
	})
}

// The tables contain only hashes of tokens.
func TestTables_holdHashesOnly(t *testing.T) {
	each(t, operator, func(f *fixture) {
		link := f.link()
		token := f.signIn()
		for _, table := range []string{"sessions", "sign_in_links"} {
			err := f.db.Read(f.t.Context(), func(tx *db.Tx) error {
				return tx.Query("SELECT hash FROM "+table, nil, func(r *db.Row) error {
					var hash string
					err := r.Scan(&hash)
					if hash == link || hash == token || len(hash) != 64 {
						f.t.Errorf("%s holds %q", table, hash)
					}
					return err
				})
			})
			if err != nil {
				f.t.Fatal(err)
			}
		}
	})
}

// An idle session ends. For operators the time is shorter.
func TestSession_endsWhenIdle(t *testing.T) {
	for _, c := range []struct {
		name        string
		memberships []Membership
		idle        time.Duration
	}{{"operator", operator, IdleOperator}, {"member", []Membership{{"t1", roles.Finance}}, IdleMember}} {
		t.Run(c.name, func(t *testing.T) {
			each(t, c.memberships, func(f *fixture) {
				read, polled := f.signIn(), f.signIn()
				f.clock.Advance(c.idle - time.Second)
				if !f.in(read, true) || !f.in(polled, false) {
					f.t.Fatal("ended before its time")
				}
				f.clock.Advance(time.Second)
				if !f.in(read, false) {
					f.t.Fatal("the use did not count")
				}
				if f.in(polled, true) {
					f.t.Fatal("what a page asks by itself kept the session alive")
				}
			})
		})
	}
}

// If the clock is set back, earlier sessions end, because they would last longer by that amount.
func TestSession_clockSetBack(t *testing.T) {
	each(t, operator, func(f *fixture) {
		token := f.signIn()
		f.clock.Set(-30 * time.Second) // the allowed difference between nodes
		if !f.in(token, false) {
			f.t.Fatal("ended by a small step")
		}
		f.clock.Set(-24 * time.Hour)
		if f.in(token, false) {
			f.t.Fatal("it lives on a day before it was made")
		}
	})
}

// A session ends after twelve hours, even if it is in use.
func TestSession_endsAfterTwelveHours(t *testing.T) {
	each(t, operator, func(f *fixture) {
		token := f.signIn()
		for range int(Longest/(10*time.Minute)) - 1 {
			f.clock.Advance(10 * time.Minute)
			if !f.in(token, true) {
				f.t.Fatal("a session in use ended")
			}
		}
		f.clock.Advance(10 * time.Minute)
		if f.in(token, true) {
			f.t.Fatal("a session lasts longer than twelve hours")
		}
	})
}

// The last use of a session is stored at most once a minute.
func TestSession_storesUseOnceAMinute(t *testing.T) {
	each(t, operator, func(f *fixture) {
		token := f.signIn()
		f.clock.Advance(59 * time.Second)
		f.in(token, true)
		if v, err := f.Visit(f.t.Context(), token, true); err != nil || !v.Session.UsedAt.Equal(start) {
			f.t.Fatalf("%v, %v", v.Session.UsedAt, err)
		}
		f.clock.Advance(time.Second)
		f.in(token, true)
		if v, err := f.Visit(f.t.Context(), token, true); err != nil || !v.Session.UsedAt.Equal(start.Add(time.Minute)) {
			f.t.Fatalf("%v, %v", v.Session.UsedAt, err)
		}
	})
}

// An ended session is refused on every node within a second.
func TestSession_endTakesEffectInASecond(t *testing.T) {
	each(t, operator, func(f *fixture) {
		here, there := f.signIn(), f.signIn()
		other := newIdentity(f.t, f.db, f.clock) // another node
		if _, err := other.Visit(f.t.Context(), there, false); err != nil {
			f.t.Fatal(err)
		}
		v, err := f.Visit(f.t.Context(), here, true)
		if err != nil {
			f.t.Fatal(err)
		}
		list, err := f.Sessions(f.t.Context(), v)
		if err != nil || len(list) != 2 || list[0].Agent != "A browser" {
			f.t.Fatalf("%+v, %v", list, err)
		}
		stranger := Visitor{Person: Person{ID: "someone else"}}
		if err := f.End(f.t.Context(), stranger, list[0].ID); err != nil {
			f.t.Fatal(err)
		}
		f.clock.Advance(Freshness)
		if !f.in(there, false) {
			f.t.Fatal("a stranger ended the session")
		}
		if err := f.End(f.t.Context(), v, list[0].ID); err != nil {
			f.t.Fatal(err)
		}
		f.clock.Advance(Freshness)
		if _, err := other.Visit(f.t.Context(), there, false); !problem.Is(err, problem.Unauthenticated) {
			f.t.Fatalf("the other node: %v", err)
		}
		if err := f.SignOut(f.t.Context(), here); err != nil {
			f.t.Fatal(err)
		}
		if f.in(here, true) {
			f.t.Fatal("still in after signing out")
		}
	})
}

// Ensure creates a person once. It does not change an existing role.
func TestEnsure_createsOnceAndKeepsRole(t *testing.T) {
	each(t, []Membership{{"t1", roles.Finance}}, func(f *fixture) {
		if set, err := f.SetUp(f.t.Context()); err != nil || !set {
			f.t.Fatalf("%v, %v", set, err)
		}
		again, err := f.Ensure(f.t.Context(), "ama@example.com", "Another Name", []Membership{{"t1", roles.Owner}, {"t2", roles.Support}})
		if err != nil || again != f.person {
			f.t.Fatalf("%+v, %v", again, err)
		}
		v, err := f.Visit(f.t.Context(), f.signIn(), true)
		if err != nil || v.Role("t1") != roles.Finance || v.Role("t2") != roles.Support || v.Operator() {
			f.t.Fatalf("%+v, %v", v, err)
		}
		if v.Can("t1", roles.ReadNumbers) || !v.Can("t1", roles.ReadPayments) || v.Can("t3", roles.ReadPayments) || v.Can(roles.Installation, roles.ReadPayments) {
			f.t.Fatal("the roles do not decide")
		}
	})
}

// Invalid addresses, names and roles are refused.
func TestEnsure_refusesBadPeople(t *testing.T) {
	each(t, nil, func(f *fixture) {
		for _, c := range []struct {
			email, name string
			role        roles.Role
		}{{"", "A", roles.Owner}, {"no address", "A", roles.Owner}, {"a@b", "", roles.Owner}, {"a@b", " A", roles.Owner}, {"a@b\n", "A\x00", roles.Owner}, {"a@b", "A", "king"}, {"a@b", "A", roles.SRE}} {
			if _, err := f.Ensure(f.t.Context(), c.email, c.name, []Membership{{"t1", c.role}}); !problem.Is(err, problem.Invalid) {
				f.t.Errorf("%+v: %v", c, err)
			}
		}
	})
}

// Old sessions and links are removed.
func TestPrune_oldSessionsAndLinks(t *testing.T) {
	each(t, operator, func(f *fixture) {
		f.signIn()
		f.clock.Advance(keepEnded + time.Hour)
		token := f.signIn()
		if err := f.Prune(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		err := f.db.Read(f.t.Context(), func(tx *db.Tx) error {
			n, err := tx.Count([]string{"sessions", "sign_in_links"})
			if n["sessions"] != 1 || n["sign_in_links"] != 1 {
				f.t.Errorf("left: %v", n)
			}
			return err
		})
		if err != nil || !f.in(token, true) {
			f.t.Fatal(err)
		}
	})
}
