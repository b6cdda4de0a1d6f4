package books

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
)

const (
	recentCheck = "recent"
	fullCheck   = "full"
)

// Found are the problems of a check, by book.
type Found map[string]*ledger.Findings

func newFound() Found {
	f := Found{}
	for _, name := range Names() {
		f[name] = &ledger.Findings{}
	}
	return f
}

// Count returns the number of problems.
func (f Found) Count() (n int) {
	for _, of := range f {
		n += len(of.Problems)
	}
	return n
}

func (f Found) join(other Found) {
	for name, of := range other {
		if f[name] != nil && of != nil {
			f[name].Join(*of)
		}
	}
}

// text formats problems for storage. It is empty if there are none.
func (f Found) text() (string, error) {
	if f.Count() == 0 {
		return "", nil
	}
	text, err := json.Marshal(f)
	return string(text), err
}

func foundOf(text string) (Found, error) {
	f := newFound()
	if text == "" {
		return f, nil
	}
	stored := Found{}
	err := json.Unmarshal([]byte(text), &stored)
	f.join(stored)
	return f, err
}

// A check is the stored state of the recent or of the full check.
type check struct {
	name        string
	version     int64 // zero: not stored
	stage       stage
	position    string
	payments    int64
	proof       *ledger.Proof
	stored      map[ledger.Key]int64 // the sums of the proof, as they are stored
	forget      bool                 // the stored sums belong to another proof
	found       Found
	result      Found
	requestedAt time.Time
	begunAt     time.Time
	endedAt     time.Time
}

const (
	selectCheck = `SELECT version, stage, position, next, payments, transfers, found, result, requested_at, begun_at, ended_at FROM book_checks WHERE name = $1`
	selectSums  = `SELECT asset, account, moved FROM book_sums WHERE name = $1`
)

// load reads the state of a check.
func load(tx *db.Tx, name string, sums bool) (*check, error) {
	c := &check{name: name, proof: ledger.NewProof(), stored: map[ledger.Key]int64{}, found: newFound(), result: newFound()}
	var found, result string
	_, err := tx.One(selectCheck, []any{name}, &c.version, &c.stage, &c.position, &c.proof.Next, &c.payments, &c.proof.Transfers, &found, &result,
		&c.requestedAt, &c.begunAt, &c.endedAt)
	if err != nil {
		return nil, err
	}
	if c.found, err = foundOf(found); err != nil {
		return nil, err
	}
	if c.result, err = foundOf(result); err != nil || !sums {
		return c, err
	}
	err = tx.Query(selectSums, []any{name}, func(r *db.Row) error {
		var k ledger.Key
		var moved int64
		err := r.Scan(&k.Asset, &k.ID, &moved)
		c.stored[k] = moved
		return err
	})
	c.proof.Sums = maps.Clone(c.stored)
	return c, err
}

const (
	insertCheck = `INSERT INTO book_checks (name, version, stage, position, next, payments, transfers, found, result, requested_at, begun_at, ended_at)
VALUES ($1, $2 + 1, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
	updateCheck = `UPDATE book_checks SET version = version + 1, stage = $3, position = $4, next = $5, payments = $6, transfers = $7, found = $8, result = $9,
	requested_at = CASE WHEN requested_at > $10 THEN requested_at ELSE $10 END, begun_at = $11, ended_at = $12 WHERE name = $1 AND version = $2`
	upsertSums = `INSERT INTO book_sums (name, asset, account, moved) SELECT $2, r.asset, r.account, r.moved FROM rows($1) AS r WHERE true
ON CONFLICT (name, asset, account) DO UPDATE SET moved = excluded.moved`
	deleteSums = `DELETE FROM book_sums WHERE name = $1`
)

type sum struct {
	ledger.Key
	moved int64
}

var sumColumns = []db.Column[sum]{
	{Name: "asset", Text: func(s sum) string { return string(s.Asset) }},
	{Name: "account", Text: func(s sum) string { return string(s.ID) }},
	{Name: "moved", Int: func(s sum) int64 { return s.moved }},
}

// save stores a check with the changed sums. The transaction fails with db.ErrGuard if another node has stored the
// check since it was read.
func (c *check) save(tx *db.Tx) error {
	found, err := c.found.text()
	if err != nil {
		return err
	}
	result, err := c.result.text()
	if err != nil {
		return err
	}
	sql := updateCheck
	if c.version == 0 {
		sql = insertCheck
	}
	tx.Defer(sql, 1, c.name, c.version, c.stage, c.position, c.proof.Next, c.payments, c.proof.Transfers, found, result, c.requestedAt, c.begunAt, c.endedAt)
	if c.forget {
		tx.Defer(deleteSums, -1, c.name)
	}
	var changed []sum
	for k, moved := range c.proof.Sums {
		if was, is := c.stored[k]; c.forget || !is || was != moved {
			changed = append(changed, sum{k, moved})
		}
	}
	if len(changed) > 0 {
		tx.Defer(upsertSums, int64(len(changed)), db.RowsOf(sumColumns, changed), c.name)
	}
	return nil
}

// proven reports whether the check has sums from which the next check can continue.
func (c *check) proven() bool { return c.proof.Next != math.MinInt64 }

// proofEnds is the time between the end of a proof and its check. The clock of another node that makes the next check or posts
// transfers may be clock.Skew behind.
const proofEnds = ledger.Overlap + clock.Skew

// setBack reports whether the clock was set back so far since the check ended that transfers posted since then may lie
// before the end of its proof. The proof ends proofEnds before the check, and the next check comes within ledger.Overlap.
// So a step of at most proofEnds may stay unseen and does no harm, and a longer one leaves more than clock.Skew.
func (c *check) setBack(now time.Time) bool {
	return c.proof.Next > db.Micros(now) || c.endedAt.Sub(now) > clock.Skew
}

// State is the state of both checks.
type State struct {
	RecentAt time.Time // end of the last recent check; zero: there was none
	FullAt   time.Time // end of the last full check
	Faults   int       // that it found
	// The running full check: when it began, the stage that it reads, and how many payments and transfers it has
	// read.
	BegunAt             time.Time
	Stage               string // empty: none runs
	Payments, Transfers int64
}

// State reads the state of both checks.
func (b *Books) State(ctx context.Context) (s State, err error) {
	err = b.db.Read(ctx, func(tx *db.Tx) error {
		recent, err := load(tx, recentCheck, false)
		if err != nil {
			return err
		}
		full, err := load(tx, fullCheck, false)
		if err != nil {
			return err
		}
		s = State{RecentAt: recent.endedAt, FullAt: full.endedAt, Faults: full.result.Count(), BegunAt: full.begunAt, Stage: string(full.stage),
			Payments: full.payments, Transfers: full.proof.Transfers}
		return nil
	})
	return s, err
}
