package recovery

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
)

// Kind is a kind of rows that are never deleted. Values are stored in files and never change.
type Kind string

// The kinds.
const (
	Payment  Kind = "payment"
	Campaign Kind = "campaign"
)

// row identifies a row whose COMMIT this node has seen.
type row struct {
	Kind   Kind   `json:"kind"`
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	Life   string `json:"life"` // the database's history when the transaction began
}

// Restore is a restore from a backup, which the database recorded.
type Restore struct {
	ID     string
	MadeAt time.Time // not later than the backup's snapshot
}

// WatchOptions configure a node's watch.
type WatchOptions struct {
	Node   string
	Folder string // the node's data folder; the SQLite file is in it
	// Synchronous means that each commit is confirmed only after a standby has it. The promotion of a standby then
	// loses nothing.
	Synchronous bool
	Restored    Restore   // the last restore of this database; zero: there was none
	Accounts    []Account // this node's accounts at providers
	// Began runs in the transaction in which a node begins a recovery. It ends the leases of running nodes, because
	// their memory is about the lost state. It may be nil.
	Began func(*db.Tx)
}

// shardsWatched is the number of group commits of one kind that are watched separately. The commits of one group
// commit are in order, so its last row proves all its earlier ones. Commits of two group commits may be seen in
// another order.
const shardsWatched = 16

// lookEvery is the interval of checks without a special reason. They are needed because, behind a pooler, the same
// connection may lead to another server.
const lookEvery = 5 * time.Second

// Watch checks that the database is the same as before. It must be at the same place and have the last rows whose
// COMMIT this node has seen. If not, a recovery begins. A nil Watch checks nothing.
type Watch struct {
	r *Recovery
	o WatchOptions

	life     atomic.Pointer[string] // the database's history at the last check
	payments [shardsWatched]atomic.Pointer[row]
	campaign [shardsWatched]atomic.Pointer[row]
	looked   atomic.Uint64 // the epoch of the database's connections at the last check
	looking  chan struct{} // a lock: at most one check runs

	installation atomic.Pointer[string]
	stop         context.CancelFunc
	stopped      chan struct{}
}

// NewWatch returns a node's watch.
func NewWatch(r *Recovery, o WatchOptions) *Watch {
	w := &Watch{r: r, o: o, looking: make(chan struct{}, 1)}
	w.life.Store(new(string))
	return w
}

// Commits records a row that a transaction of one of the node's group commits inserts. If the transaction inserts
// several rows, only the last counts. shard is the number of the group commit.
func (w *Watch) Commits(tx *db.Tx, shard int, kind Kind, tenant, id string) {
	if w == nil {
		return
	}
	// The history may change before the commit. The check for the new history has then been made already.
	seen := &row{Kind: kind, Tenant: tenant, ID: id, Life: *w.life.Load()}
	tx.AfterCommit(func() { w.slot(kind, shard).Store(seen) })
}

func (w *Watch) slot(kind Kind, shard int) *atomic.Pointer[row] {
	if kind == Campaign {
		return &w.campaign[shard%shardsWatched]
	}
	return &w.payments[shard%shardsWatched]
}

// Sure checks that the database is still the same, before a payment is first sent to a provider. It checks only if a
// connection was made since the last check, and begins a recovery if necessary. The caller must read State
// afterwards. An error means that the database cannot be queried now.
func (w *Watch) Sure(ctx context.Context) error {
	if w == nil || w.looked.Load() == w.r.db.Epoch() {
		return nil
	}
	return w.again(ctx)
}

// again runs one check, after a running one has ended.
func (w *Watch) again(ctx context.Context) error {
	select {
	case w.looking <- struct{}{}:
		defer func() { <-w.looking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	epoch := w.r.db.Epoch()
	if err := w.look(ctx, nil, w.seen(), ""); err != nil {
		return fmt.Errorf("recovery: check whether the database went back in time: %w", err)
	}
	w.looked.Store(epoch)
	return nil
}

// seen returns the last rows in memory.
func (w *Watch) seen() (list []row) {
	for _, slots := range []*[shardsWatched]atomic.Pointer[row]{&w.payments, &w.campaign} {
		for i := range slots {
			if r := slots[i].Load(); r != nil {
				list = append(list, *r)
			}
		}
	}
	return list
}

// standing is the evidence by which a database is recognized.
type standing struct {
	found                           bool
	installation, life              string
	system, timeline, tables, token string
	restored                        string
}

const (
	standColumns = `installation, life, system, timeline, tables, token, restored`
	sqlStands    = `SELECT ` + standColumns + ` FROM recovery_place WHERE id = 1`
	sqlStandsFor = sqlStands + ` FOR UPDATE`

	sqlSettle = `INSERT INTO recovery_place (id, installation, life, system, timeline, tables, token, restored, noted_at)
VALUES (1, $1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (id) DO UPDATE SET system = excluded.system, timeline = excluded.timeline, tables = excluded.tables, token = excluded.token,
restored = excluded.restored, noted_at = excluded.noted_at`

	sqlFirstLife = `INSERT INTO recovery_lives (life, begun_at) SELECT life, CAST($1 AS INTEGER) FROM recovery_place WHERE id = 1 ON CONFLICT (life) DO NOTHING`
	sqlNextLife  = `UPDATE recovery_place SET life = $1 WHERE id = 1`
	sqlLife      = `INSERT INTO recovery_lives (life, begun_at) VALUES ($1, $2)`
	sqlLived     = `SELECT 1 FROM recovery_lives WHERE life = $1`

	sqlAnyPayment    = `SELECT 1 FROM payments LIMIT 1`
	sqlPaymentThere  = `SELECT 1 FROM payments WHERE id = $1`
	sqlCampaignThere = `SELECT 1 FROM campaigns WHERE tenant = $1 AND id = $2`
)

func stands(tx *db.Tx, sql string) (s standing, err error) {
	s.found, err = tx.One(sql, nil, &s.installation, &s.life, &s.system, &s.timeline, &s.tables, &s.token, &s.restored)
	return s, err
}

// A finding is the reason why a recovery begins. The zero finding means that there is none.
type finding struct {
	cause string
	since time.Time
	opens bool // a promoted standby: the recovery begins in the open phase
}

// look compares the current evidence with the stored one, and stores changes. tokens are those in the file
// makola.place, or nil if the file was not read. next is the new token.
func (w *Watch) look(ctx context.Context, tokens []string, rows []row, next string) error {
	place, err := w.r.db.Place(ctx)
	if err != nil {
		return err
	}
	now := standing{system: place.System, timeline: place.Timeline, tables: place.Tables, token: next, restored: w.o.Restored.ID}
	same := false
	err = w.r.db.Read(db.System(ctx), func(tx *db.Tx) error {
		was, err := stands(tx, sqlStands)
		if err != nil {
			return err
		}
		f, err := w.judge(tx, was, now, tokens, rows)
		if same = err == nil && was.found && f == (finding{}) && now.over(was) == was; same {
			w.known(was)
		}
		return err
	})
	if err != nil || same {
		return err
	}
	return w.note(ctx, now, tokens, rows)
}

// over returns the current evidence. Values that are unknown now are taken from was.
func (now standing) over(was standing) standing {
	for _, part := range []struct {
		to   *string
		from string
	}{{&was.system, now.system}, {&was.timeline, now.timeline}, {&was.tables, now.tables}, {&was.token, now.token}, {&was.restored, now.restored}} {
		if part.from != "" {
			*part.to = part.from
		}
	}
	return was
}

func (w *Watch) known(s standing) {
	w.installation.Store(&s.installation)
	w.life.Store(&s.life)
	// The cached state may be about another history.
	w.r.state.Forget(struct{}{})
}

// note repeats the decision under a lock and stores the result. Of several nodes, only one begins the recovery.
func (w *Watch) note(ctx context.Context, now standing, tokens []string, rows []row) error {
	var f finding
	var after standing
	var again bool // another node may have inserted the first row meanwhile
	life := newID()
	err := w.r.write(ctx, nil, func(tx *db.Tx) error {
		again = false
		was, err := stands(tx, sqlStandsFor)
		if err != nil {
			return err
		}
		if f, err = w.judge(tx, was, now, tokens, rows); err != nil {
			return err
		}
		after = now.over(was)
		if !was.found {
			after.installation, after.life, after.found = newID(), life, true
		}
		tx.Defer(sqlSettle, 1, after.installation, after.life, after.system, after.timeline, after.tables, after.token, after.restored, w.r.clock.Now())
		if !was.found {
			tx.Defer(sqlFirstLife, -1, w.r.clock.Now())
			again = true
		}
		if f.cause == "" {
			return nil
		}
		if err := tx.Flush(); err != nil {
			return err
		}
		after.life = life
		phase := PhaseClosed
		if f.opens {
			phase = PhaseOpen
		}
		if w.o.Began != nil {
			w.o.Began(tx)
		}
		return w.r.begin(tx, State{Phase: phase, Cause: f.cause, Since: f.since, Actor: "node " + w.o.Node}, life)
	})
	if err != nil {
		return err
	}
	w.known(after)
	if f.cause != "" {
		w.r.begun(f.cause, f.since, "node "+w.o.Node)
	}
	if again {
		return w.r.db.Read(db.System(ctx), func(tx *db.Tx) error {
			s, err := stands(tx, sqlStands)
			w.known(s)
			return err
		})
	}
	return nil
}

// judge compares the current evidence with the stored one. It returns a finding if they do not belong to the same
// history.
func (w *Watch) judge(tx *db.Tx, was, now standing, tokens []string, rows []row) (finding, error) {
	if !was.found {
		// The database dates from before this table existed. If the file makola.place exists, the database is older
		// than the file.
		if len(tokens) == 0 {
			return finding{}, nil
		}
		var one int64
		used, err := tx.One(sqlAnyPayment, nil, &one)
		if !used || err != nil {
			return finding{}, err
		}
		return finding{cause: "the database is older than the file makola.place in the same folder"}, nil
	}
	if now.restored != "" && now.restored != was.restored {
		return finding{cause: "the database was restored from a backup", since: w.o.Restored.MadeAt}, nil
	}
	if differ(was.system, now.system) || differ(was.tables, now.tables) {
		return finding{cause: "the database is a copy at another place"}, nil
	}
	if tokens != nil && was.token != "" && !slices.Contains(tokens, was.token) {
		return finding{cause: "the file makola.place in the same folder belongs to another database"}, nil
	}
	promoted := differ(was.timeline, now.timeline)
	missing, err := w.missing(tx, was, rows)
	if err != nil {
		return finding{}, err
	}
	switch {
	case missing != nil:
		return finding{cause: fmt.Sprintf("a committed %s is missing: %s", missing.Kind, missing.ID), opens: promoted}, nil
	case promoted && !w.o.Synchronous:
		return finding{cause: "a standby was promoted", opens: true}, nil
	}
	return finding{}, nil
}

func differ(a, b string) bool { return a != "" && b != "" && a != b }

// missing returns a row that was committed and no longer exists, or nil. It ignores rows from before a recovery that
// the database knows. It checks rows of a history that the database does not know.
func (w *Watch) missing(tx *db.Tx, was standing, rows []row) (*row, error) {
	former := map[string]bool{was.life: false}
	for _, r := range rows {
		var one int64
		if _, asked := former[r.Life]; !asked {
			lived, err := tx.One(sqlLived, []any{r.Life}, &one)
			if err != nil {
				return nil, err
			}
			former[r.Life] = lived
		}
		if former[r.Life] {
			continue
		}
		sql, args := sqlPaymentThere, []any{r.ID}
		if r.Kind == Campaign {
			sql, args = sqlCampaignThere, []any{r.Tenant, r.ID}
		}
		there, err := tx.One(sql, args, &one)
		if err != nil {
			return nil, err
		}
		if !there {
			return &r, nil
		}
	}
	return nil, nil
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }
