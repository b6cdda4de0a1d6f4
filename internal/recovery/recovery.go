// Package recovery detects that the database may have gone back in time (a restore, a promoted standby). It limits
// what is allowed until operators have repeated the lost changes. During a recovery nothing is paid before every
// provider was queried. The domains call this package to check that. The first phase is closed: customers get 503,
// providers get only queries, and operators repeat their lost changes. The second phase is open: a request whose
// payment a provider knows is adopted instead of sent.
package recovery

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/makola/makola/internal/cache"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// Phase is the progress of a recovery. Values are stored and never change.
type Phase string

// The phases. Before the first recovery the phase is empty.
const (
	PhaseNone   Phase = ""
	PhaseClosed Phase = "closed"
	PhaseOpen   Phase = "open"
	PhaseEnded  Phase = "ended"
)

// State describes the recovery in progress. The zero State means that there is none.
type State struct {
	Phase   Phase
	Cause   string    // the evidence, as text for people
	BegunAt time.Time // when the recovery began
	Since   time.Time // commits after this time may be lost; zero: unknown
	Reason  string    // an operator's reason for the last step
	Actor   string
	skipped map[string]bool
	allowed map[string]bool
	gone    []Account
	saw     time.Duration // when this process first saw the recovery, by Elapsed
}

// Lasts reports whether a recovery is in progress, closed or open.
func (s State) Lasts() bool { return s.Phase == PhaseClosed || s.Phase == PhaseOpen }

// Closed reports whether customers are refused.
func (s State) Closed() bool { return s.Phase == PhaseClosed }

// Skips reports whether an operator allowed payments without an answer of this rail.
func (s State) Skips(rail, mode string) bool { return s.skipped[rail+"/"+mode] }

// Allows reports whether an operator allowed a tenant's purchases that have neither a reference nor a key.
func (s State) Allows(tenant string) bool { return s.allowed[tenant] }

// Exceptions returns the rails (with their modes) and the tenants for which operators made exceptions.
func (s State) Exceptions() (rails, tenants []string) {
	return slices.Sorted(maps.Keys(s.skipped)), slices.Sorted(maps.Keys(s.allowed))
}

// Gone lists the providers of a mode that cannot be queried: an account there was used before, and no server has it
// now. It omits providers that an operator skips.
func (s State) Gone(mode string) (rails []string) {
	for _, a := range s.gone {
		if a.Mode == mode && !s.Skips(a.Rail, mode) {
			rails = append(rails, a.Rail)
		}
	}
	return rails
}

// cachedFor is the maximum age of the State that requests use.
const cachedFor = time.Second

// Recovery stores the recovery of an installation, which has at most one at a time.
type Recovery struct {
	db    *db.DB
	clock *clock.Clock
	log   *slog.Logger
	state *cache.Cache[struct{}, State]

	mu      sync.Mutex
	begunAt time.Time     // begin of the last recovery that this process saw
	saw     time.Duration // when this process first saw that recovery, by Elapsed
}

// New returns a Recovery. It reads nothing.
func New(d *db.DB, c *clock.Clock, log *slog.Logger) *Recovery {
	r := &Recovery{db: d, clock: c, log: log}
	r.state = cache.New(c, cachedFor, 1, func(ctx context.Context, _ struct{}) (State, error) { return r.load(ctx) })
	return r
}

// State returns the state of the recovery. It may be up to a second old.
func (r *Recovery) State(ctx context.Context) (State, error) { return r.state.Get(ctx, struct{}{}) }

// Delays reports whether the campaigns of a tenant must wait. After a restore the database may have lost the record
// that they were sent, and a message centre cannot be queried about them. An operator releases a tenant's campaigns
// with makola recovery allow. A nil Recovery delays none.
func (r *Recovery) Delays(ctx context.Context, tenant string) (bool, error) {
	if r == nil {
		return false, nil
	}
	s, err := r.State(ctx)
	return s.Closed() || s.Lasts() && !s.Allows(tenant), err
}

// Age returns how long this process has seen the recovery. It does not use the time in the row, because another
// process wrote it and the clock may have been set since.
func (r *Recovery) Age(s State) time.Duration { return r.clock.Elapsed() - s.saw }

// sawFirst returns when this process first saw the recovery that began at begunAt, by Elapsed.
func (r *Recovery) sawFirst(begunAt time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !begunAt.Equal(r.begunAt) {
		r.begunAt, r.saw = begunAt, r.clock.Elapsed()
	}
	return r.saw
}

const (
	sqlState      = `SELECT phase, cause, begun_at, since, reason, actor FROM recovery WHERE id = 1`
	sqlExceptions = `SELECT kind, name FROM recovery_exceptions`

	sqlBegin = `INSERT INTO recovery (id, phase, cause, begun_at, since, reason, actor) VALUES (1, $1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET phase = excluded.phase, cause = excluded.cause, begun_at = excluded.begun_at,
since = CASE WHEN recovery.phase = 'ended' THEN excluded.since
	WHEN recovery.since < excluded.since THEN recovery.since ELSE excluded.since END, reason = excluded.reason, actor = excluded.actor`

	// During a recovery, servers store every minute which accounts they have.
	sqlGone = `SELECT rail, mode, fingerprint, seen_at FROM recovery_rails WHERE seen_at < $1 ORDER BY rail, mode, fingerprint`

	// A clock that ran ahead may have stored a time after the begin of the recovery.
	sqlUnsee = `UPDATE recovery_rails SET seen_at = $1 - 1 WHERE seen_at >= $1`

	sqlMove = `UPDATE recovery SET phase = $1, reason = $2, actor = $3 WHERE id = 1 AND phase = $4`

	sqlForgive = `DELETE FROM recovery_exceptions`

	sqlExcept = `INSERT INTO recovery_exceptions (kind, name, reason, actor, at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (kind, name) DO UPDATE SET reason = excluded.reason, actor = excluded.actor, at = excluded.at`
)

func (r *Recovery) load(ctx context.Context) (s State, err error) {
	err = r.db.Read(ctx, func(tx *db.Tx) error {
		s = State{skipped: map[string]bool{}, allowed: map[string]bool{}}
		if _, err := tx.One(sqlState, nil, &s.Phase, &s.Cause, &s.BegunAt, &s.Since, &s.Reason, &s.Actor); err != nil {
			return err
		}
		if err := tx.Query(sqlExceptions, nil, func(row *db.Row) error {
			var kind, name string
			err := row.Scan(&kind, &name)
			if kind == "rail" {
				s.skipped[name] = true
			} else {
				s.allowed[name] = true
			}
			return err
		}); err != nil || !s.Lasts() {
			return err
		}
		return tx.Query(sqlGone, []any{db.Micros(s.BegunAt)}, appendAccount(&s.gone))
	})
	if err == nil && s.Lasts() {
		s.saw = r.sawFirst(s.BegunAt)
	}
	return s, err
}

// Begin begins a recovery in the closed phase. Commits after since may be lost; zero means unknown. A recovery in
// progress begins again, because its exceptions were made for another state of the database.
func (r *Recovery) Begin(ctx context.Context, cause string, since time.Time, reason, actor string, also ...func(*db.Tx) error) error {
	err := r.write(ctx, also, func(tx *db.Tx) error {
		return r.begin(tx, State{Phase: PhaseClosed, Cause: cause, Since: since, Reason: reason, Actor: actor}, newID())
	})
	if err == nil {
		r.begun(cause, since, actor)
	}
	return err
}

// begin stores a new recovery. life identifies the new history of the database, which starts here.
func (r *Recovery) begin(tx *db.Tx, s State, life string) error {
	now := db.Micros(r.clock.Now())
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{sqlForgive, nil},
		{sqlUnsee, []any{now}},
		{sqlBegin, []any{s.Phase, s.Cause, now, db.Micros(s.Since), s.Reason, s.Actor}},
		{sqlNextLife, []any{life}},
		{sqlLife, []any{life, now}},
	} {
		if _, err := tx.Exec(step.sql, step.args...); err != nil {
			return err
		}
	}
	return nil
}

func (r *Recovery) begun(cause string, since time.Time, actor string) {
	r.log.Error("recovery started: database may be older than its last known state", "cause", cause, "since", since, "actor", actor)
}

// Open begins the second phase, in which customers are served again.
func (r *Recovery) Open(ctx context.Context, reason, actor string, also ...func(*db.Tx) error) error {
	return r.move(ctx, PhaseClosed, PhaseOpen, reason, actor, also)
}

// End ends the recovery. The caller must check that nothing is left to settle.
func (r *Recovery) End(ctx context.Context, reason, actor string, also ...func(*db.Tx) error) error {
	return r.move(ctx, PhaseOpen, PhaseEnded, reason, actor, also)
}

// Skip allows payments without an answer of a rail.
func (r *Recovery) Skip(ctx context.Context, rail, mode, reason, actor string, also ...func(*db.Tx) error) error {
	return r.except(ctx, "rail", rail+"/"+mode, reason, actor, also)
}

// Allow allows a tenant's purchases that have neither a reference nor a key.
func (r *Recovery) Allow(ctx context.Context, tenant, reason, actor string, also ...func(*db.Tx) error) error {
	return r.except(ctx, "tenant", tenant, reason, actor, also)
}

func (r *Recovery) move(ctx context.Context, from, to Phase, reason, actor string, also []func(*db.Tx) error) error {
	err := r.write(ctx, also, func(tx *db.Tx) error {
		n, err := tx.Exec(sqlMove, to, reason, actor, from)
		if err == nil && n != 1 {
			err = problem.New(problem.Invalid, "recovery_phase", "The recovery is not "+string(from))
		}
		return err
	})
	if err == nil {
		r.log.Warn("recovery", "phase", string(to), "actor", actor, "reason", reason)
	}
	return err
}

func (r *Recovery) except(ctx context.Context, kind, name, reason, actor string, also []func(*db.Tx) error) error {
	return r.write(ctx, also, func(tx *db.Tx) error {
		if err := r.mustLast(tx); err != nil {
			return err
		}
		_, err := tx.Exec(sqlExcept, kind, name, reason, actor, db.Micros(r.clock.Now()))
		return err
	})
}

// mustLast returns an error if no recovery is in progress.
func (r *Recovery) mustLast(tx *db.Tx) error {
	var s State
	_, err := tx.One(sqlState, nil, &s.Phase, &s.Cause, &s.BegunAt, &s.Since, &s.Reason, &s.Actor)
	if err == nil && !s.Lasts() {
		err = problem.New(problem.Invalid, "recovery_phase", "No recovery is in progress")
	}
	return err
}

// write runs a step and the functions in also in one transaction, and clears the cached state.
func (r *Recovery) write(ctx context.Context, also []func(*db.Tx) error, step func(*db.Tx) error) error {
	defer r.state.Forget(struct{}{})
	return r.db.Write(ctx, func(tx *db.Tx) error {
		if err := step(tx); err != nil {
			return err
		}
		for _, fn := range also {
			if err := fn(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// A Conflict is a request that a provider completed before the restore and that cannot be adopted. Either the wallet
// does not cover it, or its amount or party differs. An operator resolves it by a claim.
type Conflict struct {
	Tenant            string
	Kind              string
	Reference         string
	ProviderReference string
	Rail              string
	Amount            int64 // pesewas
	Why               string
	At                time.Time
}

const (
	sqlConflict = `INSERT INTO recovery_conflicts (tenant, kind, reference, provider_reference, rail, amount, why, at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (tenant, kind, reference) DO UPDATE SET rail = excluded.rail, amount = excluded.amount, why = excluded.why, at = excluded.at`

	sqlConflicts = `SELECT tenant, kind, reference, provider_reference, rail, amount, why, at FROM recovery_conflicts ORDER BY at, tenant, kind, reference LIMIT $1`

	sqlDismissed = `DELETE FROM recovery_conflicts WHERE tenant = $1 AND reference = $2`

	sqlSettled = `DELETE FROM recovery_conflicts WHERE tenant = $1 AND kind = $2 AND reference = $3`
)

// maxConflicts is the maximum length of the list.
const maxConflicts = 1000

// Note stores a conflict for the operators.
func (r *Recovery) Note(ctx context.Context, c Conflict) error {
	_, err := r.db.Exec(ctx, sqlConflict, c.Tenant, c.Kind, c.Reference, c.ProviderReference, c.Rail, c.Amount, c.Why, db.Micros(r.clock.Now()))
	return err
}

// Settled removes a conflict in the transaction that resolves it.
func (r *Recovery) Settled(tx *db.Tx, tenant, kind, reference string) error {
	_, err := tx.Exec(sqlSettled, tenant, kind, reference)
	return err
}

// Over removes a conflict whose payment is already in the books.
func (r *Recovery) Over(ctx context.Context, c Conflict) error {
	return r.db.Write(ctx, func(tx *db.Tx) error { return r.Settled(tx, c.Tenant, c.Kind, c.Reference) })
}

// Dismiss removes all conflicts about a tenant's reference, of every kind. It is for a result that an operator has
// booked by hand, such as a data package without a known price.
func (r *Recovery) Dismiss(ctx context.Context, tenant, reference string, also ...func(*db.Tx) error) error {
	return r.write(ctx, also, func(tx *db.Tx) error {
		n, err := tx.Exec(sqlDismissed, tenant, reference)
		if err == nil && n == 0 {
			err = problem.New(problem.NotFound, "conflict_not_found", "There is no conflict about "+reference+" of this customer")
		}
		return err
	})
}

// Conflicts lists the conflicts that wait for an operator, oldest first.
func (r *Recovery) Conflicts(ctx context.Context) ([]Conflict, error) {
	return db.ReadAll(ctx, r.db, sqlConflicts, []any{maxConflicts}, func(c *Conflict, row *db.Row) error {
		return row.Scan(&c.Tenant, &c.Kind, &c.Reference, &c.ProviderReference, &c.Rail, &c.Amount, &c.Why, &c.At)
	})
}
