package relocation_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/relocation"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/matrix"
)

func key(t *testing.T, n byte) config.Secret {
	t.Helper()
	secret, err := config.NewSecret(slices.Repeat([]byte{n}, config.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// tenants is the number of tenants in a source.
const tenants = 3

// newSource returns a SQLite database that a server has used, with a few customers.
func newSource(t *testing.T, f *db.Faults) *db.DB {
	t.Helper()
	o := dbtest.Options(t, db.SQLite)
	o.Faults = f
	d := dbtest.OpenWith(t, o)
	c := clock.Real()
	if err := installation.New(d, c).Check(t.Context(), key(t, 1)); err != nil {
		t.Fatal(err)
	}
	for i := range tenants {
		newTenant(t, d, fmt.Sprint("Customer ", i))
	}
	return d
}

func tenantsOf(d *db.DB) *tenant.Store {
	c := clock.Real()
	return tenant.New(d, ledger.New(d, c, "test"), c)
}

func newTenant(t *testing.T, d *db.DB, name string) {
	t.Helper()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tenantsOf(d).Create(tx, tenant.Tenant{Name: name, Mode: tenant.Test})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func newTarget(t *testing.T, f *db.Faults) *db.DB {
	t.Helper()
	o := dbtest.Options(t, db.Postgres)
	o.Faults = f
	return dbtest.OpenWith(t, o)
}

func newMove(from, to *db.DB) relocation.Move {
	return relocation.Move{From: from, To: to, Clock: clock.Real(), Actor: "cli:ama", Origin: "test",
		Check: func(context.Context, *db.DB) ([]string, error) { return nil, nil }, Progress: func(string, int64, int64) {}}
}

// serves reports whether a server would run with the installation in a database.
func serves(t *testing.T, d *db.DB) bool {
	t.Helper()
	a := installation.New(d, clock.Real())
	tied, err := a.Tied(t.Context())
	if err == nil {
		err = a.CheckSecret(t.Context(), key(t, 1))
	}
	if err != nil && !problem.Is(err, problem.Forbidden) {
		t.Fatal(err)
	}
	return tied && err == nil
}

func isMarked(t *testing.T, d *db.DB) (marked bool) {
	t.Helper()
	err := d.Read(t.Context(), func(tx *db.Tx) error {
		mark, err := installation.ReadMark(tx)
		marked = mark.State != ""
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return marked
}

// moved fails the test unless the installation is complete in the target and only there.
func moved(t *testing.T, m relocation.Move) {
	t.Helper()
	if serves(t, m.From) || !serves(t, m.To) {
		t.Fatalf("the source can be served: %v; the target: %v", serves(t, m.From), serves(t, m.To))
	}
	list, err := tenantsOf(m.To).List(t.Context(), "", 100)
	if err != nil || len(list) != tenants {
		t.Fatalf("the target has %d customers: %v", len(list), err)
	}
	entries, err := audit.New(m.To, clock.Real()).List(t.Context(), audit.Filter{Action: "database.move"})
	if err != nil || len(entries) != 1 || entries[0].Actor != "cli:ama" {
		t.Fatalf("the target's log has %v of the move: %v", entries, err)
	}
}

func TestMove_happensOnce(t *testing.T) {
	t.Parallel()
	m := newMove(newSource(t, nil), newTarget(t, nil))
	first, err := m.Run(t.Context())
	if err != nil || first.Already || first.Rows < tenants || first.Tables < 60 {
		t.Fatalf("%+v, %v", first, err)
	}
	moved(t, m)
	again, err := m.Run(t.Context())
	if err != nil || !again.Already || again.Token != first.Token {
		t.Fatalf("%+v, %v", again, err)
	}
	if err := m.Abandon(t.Context()); problem.From(err).Code != "already_switched" {
		t.Fatalf("a move that is done is abandoned: %v", err)
	}
	moved(t, m)
}

// boundaries is larger than the number of exchanges or commits of a small move.
const boundaries = 1000

// The connection to either database breaks at any exchange or COMMIT, before or after it takes effect. The move
// continues when it is run again. Until the switch is made it can also be abandoned. In the gate only some boundaries
// are tested.
func TestMove_interruptedResumesOrIsAbandoned(t *testing.T) {
	t.Parallel()
	if !slices.Contains(dbtest.Engines(), db.Postgres) { // all steps would be skipped, which looks as if each of them was reached
		t.Skip("make quick runs SQLite alone")
	}
	for _, side := range []string{"source", "target"} {
		for _, boundary := range []db.Boundary{db.BoundaryExchange, db.BoundaryCommit} {
			for _, fault := range []db.Fault{db.FaultBefore, db.FaultAfter} {
				t.Run(fmt.Sprint(side, boundary, fault), func(t *testing.T) {
					t.Parallel()
					next := matrix.Next
					if boundary == db.BoundaryExchange {
						next = func(nth int) int { return nth + 97 } // most of them read one more table
					}
					nth, reached := 1, true
					for ; nth <= boundaries && reached; nth = next(nth) {
						t.Run(fmt.Sprint(nth), func(t *testing.T) { reached = breakOff(t, side, boundary, nth, fault) })
					}
					if t.Logf("fewer than %d boundaries", nth); reached || nth <= next(1) {
						t.Errorf("of %d boundaries the last was reached: %v", nth, reached)
					}
				})
			}
		}
	}
}

// breakOff interrupts a move at the nth boundary. It returns false if there are fewer boundaries.
func breakOff(t *testing.T, side string, boundary db.Boundary, nth int, fault db.Fault) bool {
	t.Helper()
	var source, target db.Faults
	m := newMove(newSource(t, &source), newTarget(t, &target))
	faulty := &source
	if side == "target" {
		faulty = &target
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	passed := 0
	faulty.Decide(func(b db.Boundary) db.Fault {
		if b != boundary || passed == nth {
			return db.FaultNone
		}
		if passed++; passed < nth {
			return db.FaultNone
		}
		cancel() // nothing is retried, as after a kill
		return fault
	})
	_, broke := m.Run(ctx)
	faulty.Decide(nil)
	if passed < nth {
		if broke != nil {
			t.Fatal(broke)
		}
		return false
	}
	if serves(t, m.From) && serves(t, m.To) {
		t.Fatalf("both databases can be served after fault %d", nth)
	}
	if broke != nil && nth%2 == 0 && !serves(t, m.To) { // odd boundaries continue the move
		if serves(t, m.From) {
			return true // the move was interrupted before the source was marked
		}
		claimed := isMarked(t, m.To)
		if err := m.Abandon(t.Context()); err != nil {
			t.Fatalf("abandoned after fault %d (%v): %v", nth, broke, err)
		}
		if !serves(t, m.From) || serves(t, m.To) {
			t.Fatalf("after it was abandoned the source can be served: %v; the target: %v", serves(t, m.From), serves(t, m.To))
		}
		if !claimed {
			return true // the same target can be used again
		}
		if _, err := m.Run(t.Context()); err == nil || problem.From(err).Code != "target_taken" {
			t.Fatalf("a target that was given up is taken again: %v", err)
		}
		m.To = newTarget(t, nil)
	}
	if _, err := m.Run(t.Context()); err != nil {
		t.Fatalf("again after fault %d (%v): %v", nth, broke, err)
	}
	moved(t, m)
	return true
}

func TestMove_refusesNonEmptyTarget(t *testing.T) {
	t.Parallel()
	from, to := newSource(t, nil), newTarget(t, nil)
	newTenant(t, to, "Another")
	if _, err := newMove(from, to).Run(t.Context()); problem.From(err).Code != "target_taken" {
		t.Errorf("it was taken: %v", err)
	}
	to = newTarget(t, nil)
	if err := installation.New(to, clock.Real()).Check(t.Context(), key(t, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := newMove(from, to).Run(t.Context()); problem.From(err).Code != "target_taken" {
		t.Errorf("one that a server was started on was taken: %v", err)
	}
	if !serves(t, from) {
		t.Error("the source cannot be served after a refusal")
	}
}

// If a row is written to the source after it was copied, the move does not complete, so the row is not lost.
func TestMove_refusesDifferingCopy(t *testing.T) {
	t.Parallel()
	m := newMove(newSource(t, nil), newTarget(t, nil))
	m.Progress = func(step string, done, _ int64) {
		if step != "compared tables" || done != 0 {
			return
		}
		_, err := m.From.Exec(t.Context(), `UPDATE tenants SET name = 'Changed' WHERE name = 'Customer 1'`)
		if err != nil {
			t.Error(err)
		}
	}
	for range 2 { // the move is not completed when it is run again, either
		if _, err := m.Run(t.Context()); problem.From(err).Code != "copy_differs" {
			t.Fatalf("the move ended: %v", err)
		}
	}
	if serves(t, m.From) || serves(t, m.To) {
		t.Error("one of the databases can be served")
	}
}

func TestMove_refusesWrongBooks(t *testing.T) {
	t.Parallel()
	m := newMove(newSource(t, nil), newTarget(t, nil))
	m.Check = func(context.Context, *db.DB) ([]string, error) { return []string{"a balance differs"}, nil }
	if _, err := m.Run(t.Context()); problem.From(err).Code != "copy_wrong" || serves(t, m.To) {
		t.Errorf("the move ended: %v", err)
	}
}

// A move must end with the same target with which it began.
func TestMove_refusesAnotherTarget(t *testing.T) {
	t.Parallel()
	m := newMove(newSource(t, nil), newTarget(t, nil))
	right := m.Check
	m.Check = func(context.Context, *db.DB) ([]string, error) { return nil, context.Canceled }
	if _, err := m.Run(t.Context()); err == nil {
		t.Fatal("it did not break off")
	}
	m.Check = right
	other := m
	other.To = newTarget(t, nil)
	if _, err := other.Run(t.Context()); problem.From(err).Code != "other_target" {
		t.Errorf("another target is gone on with: %v", err)
	}
	if err := other.Abandon(t.Context()); problem.From(err).Code != "other_target" {
		t.Errorf("the move is abandoned at another target: %v", err)
	}
	if _, err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	moved(t, m)
}

// Two runs of one move, or two installations that move to one database, never leave two databases that can be served,
// or a mixture.
func TestMove_concurrentRunsOneWins(t *testing.T) {
	t.Parallel()
	from, to := newSource(t, nil), newTarget(t, nil)
	moves := []relocation.Move{newMove(from, to), newMove(from, to), newMove(newSource(t, nil), to)}
	ended := make(chan error, len(moves))
	for _, m := range moves {
		go func() { _, err := m.Run(t.Context()); ended <- err }()
	}
	for range moves {
		if err := <-ended; err != nil {
			t.Log(err)
		}
	}
	for _, m := range moves { // one after another; an interrupted move continues
		if _, err := m.Run(t.Context()); err != nil {
			t.Log(err)
		}
	}
	for _, m := range moves[1:] {
		if err := m.Abandon(t.Context()); err != nil {
			t.Log(err)
		}
	}
	own, other := serves(t, from), serves(t, moves[2].From)
	if own == other || !serves(t, to) {
		t.Fatalf("the target can be served: %v; one source: %v; the other: %v", serves(t, to), own, other)
	}
	if own {
		moved(t, moves[2])
	} else {
		moved(t, moves[0])
	}
}

// An operator can abandon a move without a check of the target, for a target that no longer exists.
func TestMove_abandonedWithoutTarget(t *testing.T) {
	t.Parallel()
	m := newMove(newSource(t, nil), newTarget(t, nil))
	if err := m.Release(t.Context()); problem.From(err).Code != "not_moving" {
		t.Errorf("a source that does not move is released: %v", err)
	}
	m.Check = func(context.Context, *db.DB) ([]string, error) { return nil, context.Canceled }
	if _, err := m.Run(t.Context()); err == nil {
		t.Fatal("it did not break off")
	}
	if err := m.Release(t.Context()); err != nil || !serves(t, m.From) || serves(t, m.To) {
		t.Errorf("the source can be served: %v; the target: %v; %v", serves(t, m.From), serves(t, m.To), err)
	}
}
