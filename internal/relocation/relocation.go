// Package relocation moves an installation from SQLite to PostgreSQL, for a business that outgrows one machine. No
// server runs during the move. A mark in both databases, in place of the master key's fingerprint, keeps servers of
// every release away (installation.Mark). First the source gets a mark that it is about to move. Then the empty
// target gets a mark as a copy, and the source a mark as moving. Then the rows are copied table by table in the order
// of their keys, counted, and compared by a digest. The books of the copy are checked. One transaction removes the
// target's mark and writes the move into its audit log. This transaction is the switch. Before it the move can be
// abandoned. After it the source keeps its mark for ever.
//
// A move that was interrupted at any moment continues when it is run again: the contents of the databases are its
// progress. Every transaction of the copy requires the mark. So one of two concurrent moves stops, and so does an
// abandoned move.
package relocation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/jobs/lease"
	"github.com/makola/makola/internal/problem"
)

// leftOut are the tables whose rows are not copied, with the reason.
var leftOut = map[string]string{
	"schema_migrations": "each engine has its own",
	"installation":      "its row holds the mark; the switch completes it",
	"job_leases":        "a job whose owner has no lease is adopted: a sent payment is queried, not sent again",
	"job_holds":         "no node runs, so no lease is in use",
	"job_wakes":         "hints that are used within seconds",
	"provider_breakers": "each node observes its providers again",
	"sms_binds":         "each node binds again",
}

// Move describes the move of an installation.
type Move struct {
	From     *db.DB // the source, a SQLite database whose folder the caller has locked
	To       *db.DB // the target, a PostgreSQL database
	Clock    *clock.Clock
	Actor    string // person or command in the audit log
	Origin   string // origin in the audit log
	Check    func(ctx context.Context, d *db.DB) (problems []string, err error)
	Progress func(step string, done, total int64) // done and total are numbers of rows
}

// Moved is the result of a move.
type Moved struct {
	Token   string // id of the move, which is also in its audit entry
	Tables  int
	Rows    int64
	Already bool // an earlier run completed the move, so nothing was done
}

// action is the action of a move's audit entry.
const action = "database.move"

// Run moves the installation, or continues an interrupted move.
func (m Move) Run(ctx context.Context) (Moved, error) {
	if m.From.Engine() != db.SQLite || m.To.Engine() != db.Postgres {
		return Moved{}, problem.New(problem.Invalid, "engines", "An installation can only be moved from SQLite to PostgreSQL")
	}
	source, err := markOf(ctx, m.From)
	if err != nil {
		return Moved{}, err
	}
	if source.State == installation.Moving {
		if done, err := m.switched(ctx, source.Token); done || err != nil {
			return Moved{Token: source.Token, Already: true}, err
		}
	} else if source, err = m.begin(ctx, source); err != nil {
		return Moved{}, stopped(err)
	}
	moved := Moved{Token: source.Token}
	tables, err := m.tables(ctx)
	if err != nil {
		return moved, err
	}
	copying := source
	copying.State = installation.Copying
	if err := m.carry(ctx, tables, copying); err != nil {
		return moved, stopped(err)
	}
	moved.Tables = len(tables)
	if moved.Rows, err = m.compare(ctx, tables); err != nil {
		return moved, err
	}
	if err := m.check(ctx); err != nil {
		return moved, err
	}
	return moved, stopped(m.switchOver(ctx, copying, moved))
}

func markOf(ctx context.Context, d *db.DB) (installation.Mark, error) {
	return db.Get(ctx, d, func(tx *db.Tx) (installation.Mark, error) { return installation.ReadMark(tx) })
}

// stopped returns an error that explains a failed guard: another process has replaced the mark.
func stopped(err error) error {
	if errors.Is(err, db.ErrGuard) {
		return problem.Wrap(err, problem.InProgress, "move_stopped", "The target is no longer marked for this move: another run has completed or abandoned the move, or uses the target")
	}
	return err
}

// begin stores three marks: the source is about to move, then the target is being copied into, then the source is
// moving. So a moving source always has a target with the same token, and each token belongs to one target. An
// interrupted begin starts again with another token.
func (m Move) begin(ctx context.Context, source installation.Mark) (moving installation.Mark, err error) {
	switch {
	case source.State == installation.Copying, source.State == installation.Abandoned:
		return moving, problem.New(problem.Forbidden, "source_marked", "The source is itself the target of a move")
	case source.Fingerprint == "":
		return moving, problem.New(problem.Invalid, "source_empty", "No server was ever started on the source: there is nothing to move")
	}
	claiming := installation.Mark{State: installation.Claiming, Token: uuid.Must(uuid.NewV7()).String(), Fingerprint: source.Fingerprint}
	moving, copying := claiming, claiming
	moving.State, copying.State = installation.Moving, installation.Copying
	earlier := source // mark of the target if this source has marked it before
	earlier.State = installation.Copying
	if err := m.To.Read(ctx, func(tx *db.Tx) error { _, err := free(tx, earlier); return err }); err != nil {
		return moving, err
	}
	if err := replaceMark(ctx, m.From, source, claiming); err != nil {
		return moving, err
	}
	if err := m.claim(ctx, earlier, copying); err != nil {
		if problem.Is(err, problem.Forbidden) { // another move has marked the target since
			err = errors.Join(err, replaceMark(ctx, m.From, claiming, installation.Mark{Fingerprint: source.Fingerprint}))
		}
		return moving, err
	}
	return moving, replaceMark(ctx, m.From, claiming, moving)
}

// claim marks a free target.
func (m Move) claim(ctx context.Context, earlier, copying installation.Mark) error {
	var about installation.Row
	if err := m.From.Read(ctx, func(tx *db.Tx) (err error) { about, err = installation.ReadRow(tx); return err }); err != nil {
		return err
	}
	err := m.To.WriteRecognising(ctx, hasMark(copying), func(tx *db.Tx) error {
		marked, err := free(tx, earlier)
		switch {
		case err != nil:
			return err
		case marked:
			installation.ReplaceMark(tx, earlier, copying)
		default:
			installation.InsertMarked(tx, copying, about)
		}
		return nil
	})
	if errors.Is(err, db.ErrUnique) { // another move marked the target at the same time
		return taken("The target was made for another move")
	}
	return err
}

// hasMark returns a function that recognises a commit whose response was lost.
func hasMark(want installation.Mark) func(*db.Tx) (bool, error) {
	return func(tx *db.Tx) (bool, error) {
		is, err := installation.ReadMark(tx)
		return is == want, err
	}
}

func replaceMark(ctx context.Context, d *db.DB, from, to installation.Mark) error {
	return d.WriteRecognising(ctx, hasMark(to), func(tx *db.Tx) error {
		installation.ReplaceMark(tx, from, to)
		return nil
	})
}

func taken(why string) error {
	return problem.New(problem.Forbidden, "target_taken", why+": name an empty database")
}

// free returns an error for a target that has rows, or a mark that is not an earlier mark of this source.
func free(tx *db.Tx, earlier installation.Mark) (marked bool, err error) {
	nodes, err := lease.AliveNodes(tx)
	if err != nil {
		return false, err
	}
	if len(nodes) > 0 {
		return false, taken("A server runs on the target (" + strings.Join(nodes, ", ") + ")")
	}
	switch mark, err := installation.ReadMark(tx); {
	case err != nil:
		return false, err
	case mark == (installation.Mark{}):
	case mark == earlier && earlier.Token != "":
		marked = true
	case mark.State == "":
		return false, taken("A server was started on the target already")
	default:
		return false, taken("The target was made for another move")
	}
	tables, err := tx.Tables()
	if err != nil {
		return false, err
	}
	for _, table := range tables {
		if table == "schema_migrations" || table == "installation" {
			continue
		}
		some, err := tx.Any(table)
		if err != nil {
			return false, err
		}
		if some {
			return false, taken("The target's table " + table + " has rows")
		}
	}
	return marked, nil
}

// tables returns the names of the tables to copy. It returns an error if the databases have different tables.
func (m Move) tables(ctx context.Context) (tables []string, err error) {
	var there []string
	read := func(d *db.DB, into *[]string) error {
		return d.Read(ctx, func(tx *db.Tx) (err error) { *into, err = tx.Tables(); return err })
	}
	if err := errors.Join(read(m.From, &tables), read(m.To, &there)); err != nil {
		return nil, err
	}
	if !slices.Equal(tables, there) {
		return nil, problem.New(problem.Invalid, "other_schema", "The databases do not have the same tables")
	}
	return slices.DeleteFunc(tables, func(name string) bool { return leftOut[name] != "" }), nil
}

func (m Move) carry(ctx context.Context, tables []string, copying installation.Mark) error {
	total, err := rowsOf(ctx, m.From, tables)
	if err != nil {
		return err
	}
	done, err := rowsOf(ctx, m.To, tables) // copied by an earlier run
	if err != nil {
		return err
	}
	require := func(tx *db.Tx) { installation.RequireMark(tx, copying) }
	for _, table := range tables {
		err := carry(ctx, m.From, m.To, table, require, func(rows int) {
			done += int64(rows)
			m.Progress("copied", done, total)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rowsOf returns the number of rows of tables.
func rowsOf(ctx context.Context, d *db.DB, tables []string) (rows int64, err error) {
	err = d.ReadWhole(ctx, func(tx *db.Tx) error {
		counts, err := tx.Count(tables)
		rows = 0
		for _, n := range counts {
			rows += n
		}
		return err
	})
	return rows, err
}

// compare compares the copy with the source, table by table, and counts the rows.
func (m Move) compare(ctx context.Context, tables []string) (rows int64, err error) {
	for i, table := range tables {
		m.Progress("compared tables", int64(i), int64(len(tables)))
		source, target, err := contentsOf(ctx, m.From, m.To, table)
		if err != nil {
			return rows, err
		}
		if source != target {
			return rows, problem.New(problem.Internal, "copy_differs", fmt.Sprintf(
				"The table %s differs: %d rows in the source and %d in the target. Another program wrote to one of them. Abandon the move and begin again with an empty database", table, source.rows, target.rows))
		}
		rows += source.rows
	}
	return rows, nil
}

// check runs the checks of the books on the copy.
func (m Move) check(ctx context.Context) error {
	found, err := m.Check(ctx, m.To)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return problem.New(problem.Internal, "copy_wrong", "The checks of the copied books fail, and would also fail on the source: "+found[0])
	}
	return nil
}

// switchOver makes the target the database of the installation.
func (m Move) switchOver(ctx context.Context, copying installation.Mark, moved Moved) error {
	log := audit.New(m.To, m.Clock)
	done := func(tx *db.Tx) (bool, error) { return log.Landed(tx, "", copying.Token) }
	return m.To.WriteRecognising(ctx, done, func(tx *db.Tx) error {
		installation.ReplaceMark(tx, copying, installation.Mark{Fingerprint: copying.Fingerprint})
		return log.Write(tx, m.Entry(moved))
	})
}

// Entry returns the audit entry of the move.
func (m Move) Entry(moved Moved) audit.Entry {
	return audit.Entry{ID: moved.Token, At: m.Clock.Now(), Actor: m.Actor, Origin: m.Origin, Action: action, Subject: moved.Token,
		Details: map[string]any{"tables": moved.Tables, "rows": moved.Rows}}
}

// switched reports whether a move was completed in the target.
func (m Move) switched(ctx context.Context, token string) (done bool, err error) {
	log := audit.New(m.To, m.Clock)
	err = m.To.Read(ctx, func(tx *db.Tx) error {
		mark, err := installation.ReadMark(tx)
		if err != nil {
			return err
		}
		if done, err = log.Landed(tx, "", token); done || err != nil {
			return err
		}
		if mark.State != installation.Copying || mark.Token != token {
			return problem.New(problem.Invalid, "other_target", fmt.Sprintf("The source is being moved (move %s), but this is not the target of the move, or the move was abandoned there", token))
		}
		return nil
	})
	return done, err
}

// Abandon ends a move. The target can then never be served, and the source can be served again. After the switch,
// Abandon returns an error.
func (m Move) Abandon(ctx context.Context) error {
	source, err := markOf(ctx, m.From)
	if err != nil {
		return err
	}
	if source.State != installation.Moving { // nothing was copied, or no move is in progress
		return m.Release(ctx)
	}
	copying, abandoned := source, source
	copying.State, abandoned.State = installation.Copying, installation.Abandoned
	target, err := markOf(ctx, m.To)
	if err != nil {
		return err
	}
	switch target {
	case abandoned:
	case copying:
		if err := replaceMark(ctx, m.To, copying, abandoned); err != nil {
			return stopped(err)
		}
	default:
		if done, err := m.switched(ctx, source.Token); err != nil || !done {
			return err
		}
		return problem.New(problem.Forbidden, "already_switched", "The move is complete and servers may have used the target: it can no longer be abandoned")
	}
	return m.Release(ctx)
}

// Release makes the source the database of the installation again, without checking the target. It is correct only if
// the target no longer exists and no server was ever started on it.
func (m Move) Release(ctx context.Context) error {
	source, err := markOf(ctx, m.From)
	if err != nil {
		return err
	}
	if source.State != installation.Claiming && source.State != installation.Moving {
		return problem.New(problem.Invalid, "not_moving", "The source is not being moved, so there is nothing to abandon")
	}
	return replaceMark(ctx, m.From, source, installation.Mark{Fingerprint: source.Fingerprint})
}
