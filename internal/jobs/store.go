package jobs

import (
	"context"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
)

// The owners that are not nodes.
const (
	ownerNobody = ""
	ownerDead   = "dead" // the owner of a node contains a slash
	// ownerParked is the prefix of the owner of jobs that wait for a node that runs their kind. The kind follows the
	// prefix, so a query reads only jobs of its kinds.
	ownerParked = "?"
)

// parked returns the owner of jobs of a kind that wait for a node that runs it.
func parked(kind string) string { return ownerParked + kind }

// setSize is the number of jobs that one transaction adopts or reads.
const setSize = 500

// row is a job as it is stored.
type row struct {
	Job
	owner   string
	created int64 // microseconds
}

var rowColumns = []db.Column[row]{
	{Name: "id", Text: func(r row) string { return r.ID }},
	{Name: "owner", Text: func(r row) string { return r.owner }},
	{Name: "kind", Text: func(r row) string { return r.Kind }},
	{Name: "subject", Text: func(r row) string { return r.Subject }},
	{Name: "payload", Text: func(r row) string { return string(r.Payload) }},
	{Name: "run_at", Time: func(r row) time.Time { return r.RunAt }},
	{Name: "tries", Int: func(r row) int64 { return int64(r.Tries) }},
	{Name: "adopted", Bool: func(r row) bool { return r.Adopted }},
	{Name: "last_error", Text: func(r row) string { return r.LastError }},
	{Name: "created_at", Int: func(r row) int64 { return r.created }},
	{Name: "dead_at", Int: func(row) int64 { return 0 }},
}

// fresh computes Job.Fresh.
func (r *row) fresh() bool { return !r.Adopted && r.Tries == 0 && db.Micros(r.RunAt) == r.created }

func insertRows(tx *db.Tx, rows []row) { db.Insert(tx, "jobs", rowColumns, rows) }

// jobColumns are the columns that scanRow reads.
const jobColumns = `id, kind, subject, payload, run_at, tries, adopted, last_error, created_at`

func (into *row) scan(r *db.Row) error {
	err := r.Scan(&into.ID, &into.Kind, &into.Subject, &into.Payload, &into.RunAt, &into.Tries,
		&into.Adopted, &into.LastError, &into.created)
	into.Fresh = into.fresh()
	return err
}

// queryRows returns the jobs of a query that selects jobColumns.
func queryRows(tx *db.Tx, sql string, args ...any) ([]row, error) {
	return db.All(tx, sql, args, (*row).scan)
}

const sqlDelete = `DELETE FROM jobs WHERE id IN (SELECT value FROM texts($1))`

// note is the outcome of a handler, to be stored.
type note struct {
	verb  verb
	id    string
	kind  string
	owner string
	at    time.Time
	tries int // failures so far, including this one
	err   string
}

var noteColumns = []db.Column[note]{
	{Name: "id", Text: func(n note) string { return n.id }},
	{Name: "owner", Text: func(n note) string { return n.owner }},
	{Name: "at", Time: func(n note) time.Time { return n.at }},
	{Name: "tries", Int: func(n note) int64 { return int64(n.tries) }},
	{Name: "error", Text: func(n note) string { return n.err }},
}

var passColumns = []db.Column[note]{
	{Name: "id", Text: func(n note) string { return n.id }},
	{Name: "owner", Text: func(n note) string { return n.owner }},
	{Name: "parked", Text: func(n note) string { return parked(n.kind) }},
}

// These statements change only jobs of the given owner, because a node that adopted a job decides about it.
// unindexed(owner) keeps both engines from reading all jobs of the owner.
const (
	sqlPostpone = `UPDATE jobs SET run_at = n.at, tries = n.tries, last_error = n.error
		FROM rows($1) AS n WHERE jobs.id IN (n.id) AND unindexed(jobs.owner) = n.owner`
	sqlFailedOnce = `UPDATE jobs SET run_at = n.at, tries = jobs.tries + 1, last_error = n.error
		FROM rows($1) AS n WHERE jobs.id IN (n.id) AND unindexed(jobs.owner) = n.owner`
	sqlBury = `UPDATE jobs SET owner = 'dead', dead_at = n.at, tries = n.tries, last_error = n.error
		FROM rows($1) AS n WHERE jobs.id IN (n.id) AND unindexed(jobs.owner) = n.owner`
	sqlPass = `UPDATE jobs SET owner = n.parked, adopted = 1 FROM rows($1) AS n WHERE jobs.id IN (n.id) AND unindexed(jobs.owner) = n.owner`
	sqlPark = `UPDATE jobs SET run_at = n.at FROM rows($1) AS n WHERE jobs.id IN (n.id) AND unindexed(jobs.owner) = n.owner`
)

// writeNotes stores the outcomes of concurrent handlers in one transaction.
func writeNotes(ctx context.Context, d *db.DB, notes []note) ([]groupcommit.Verdict[struct{}], error) {
	var finished []string
	var postponed, dead, passed []note
	for _, n := range notes {
		switch n.verb {
		case verbDone:
			finished = append(finished, n.id)
		case verbRetry:
			postponed = append(postponed, n)
		case verbDead:
			dead = append(dead, n)
		case verbPass:
			passed = append(passed, n)
		}
	}
	err := d.Write(ctx, func(tx *db.Tx) error {
		if len(finished) > 0 {
			tx.Defer(sqlDelete, -1, finished)
		}
		if len(postponed) > 0 {
			tx.Defer(sqlPostpone, -1, db.RowsOf(noteColumns, postponed))
		}
		if len(dead) > 0 {
			tx.Defer(sqlBury, -1, db.RowsOf(noteColumns, dead))
		}
		if len(passed) > 0 {
			tx.Defer(sqlPass, -1, db.RowsOf(passColumns, passed))
		}
		return nil
	})
	return make([]groupcommit.Verdict[struct{}], len(notes)), err
}

// errorBytes is the maximum length of last_error in bytes.
const errorBytes = 500

// clip shortens an error's text and replaces the bytes that the table cannot store.
func clip(text string) string {
	if len(text) > errorBytes {
		text = text[:errorBytes]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
}
