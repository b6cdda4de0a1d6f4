package backup

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

// Made is the record of a backup in the database that was backed up.
type Made struct {
	Backup string    // id of the backup
	MadeAt time.Time // not later than the snapshot
	Took   time.Duration
	Bytes  int64
	File   string // path on the machine that made the backup
}

const (
	sqlRecord = `INSERT INTO last_backup (id, backup, made_at, took, bytes, file) VALUES (1, $1, $2, $3, $4, $5)
	ON CONFLICT (id) DO UPDATE SET backup = excluded.backup, made_at = excluded.made_at, took = excluded.took, bytes = excluded.bytes, file = excluded.file
	WHERE last_backup.made_at <= excluded.made_at`
	sqlLast = `SELECT backup, made_at, took, bytes, file FROM last_backup WHERE id = 1`
)

// Record stores that a backup is complete. It does nothing if a newer backup is recorded.
func Record(tx *db.Tx, b Backup) {
	took := time.Duration(b.Took * float64(time.Second))
	tx.Defer(sqlRecord, -1, b.ID, b.MadeAt, took.Microseconds(), b.Bytes, b.Path)
}

// maxNote is the maximum length, in characters, of the name of a tool and of its backup. maxAhead is the time by
// which the clock of the tool's machine may be ahead of ours.
const (
	maxNote  = 200
	maxAhead = time.Minute
)

// MadeBy returns the record of a backup that another tool made, such as pgBackRest or WAL-G. madeAt must not be later
// than the backup's snapshot.
func MadeBy(tool, name string, madeAt time.Time, bytes int64, c *clock.Clock) (Backup, error) {
	var f problem.Fields
	for field, text := range map[string]string{"tool": tool, "name": name} {
		if text == "" || utf8.RuneCountInString(text) > maxNote || !usertext.Storable(text) {
			f.Add(field, fmt.Sprintf("must have 1 to %d characters on one line", maxNote))
		}
	}
	if madeAt.After(c.Now().Add(maxAhead)) {
		f.Add("made_at", "must not be in the future")
	}
	if madeAt.Before(time.Unix(1, 0)) {
		f.Add("made_at", "must be the time at which the backup began")
	}
	if bytes < 0 {
		f.Add("bytes", "must not be negative")
	}
	b := Backup{Path: tool + ": " + name}
	b.ID, b.MadeAt, b.Bytes = newID(), madeAt.UTC().Truncate(time.Microsecond), bytes
	return b, f.Err()
}

// Last returns the record of the last backup of this database. found is false if there is none. In a restored
// database it is the last backup before the one that was restored.
func Last(ctx context.Context, d *db.DB) (m Made, found bool, err error) {
	err = d.Read(ctx, func(tx *db.Tx) error {
		var took int64
		found, err = tx.One(sqlLast, nil, &m.Backup, &m.MadeAt, &took, &m.Bytes, &m.File)
		m.Took = time.Duration(took) * time.Microsecond
		return err
	})
	return m, found, err
}

// Restored is the record of a restore.
type Restored struct {
	ID     string // id of this restore; each restore has its own
	Backup string
	MadeAt time.Time // not later than the backup's snapshot: later commits may be lost
	At     time.Time // time of the restore by the clock of its machine
}

const (
	sqlMark = `INSERT INTO restores (id, backup, made_at, restored_at) VALUES ($1, $2, $3, $4)`
	// The values cannot break the statement: the ids are UUIDs, and the others are numbers.
	psqlMark    = `INSERT INTO restores (id, backup, made_at, restored_at) VALUES ('%s', '%s', %d, %d);`
	sqlRestored = `SELECT id, backup, made_at, restored_at FROM restores ORDER BY restored_at DESC, id DESC LIMIT 1`
)

// LastRestore returns the last restore of this database, and its backup. found is false if the database was never
// restored. The row is stored before any server can open the restored database. It is never changed or deleted. The
// work after a restore is recorded under its id.
func LastRestore(ctx context.Context, d *db.DB) (r Restored, found bool, err error) {
	found, err = d.ReadOne(ctx, sqlRestored, nil, &r.ID, &r.Backup, &r.MadeAt, &r.At)
	return r, found, err
}

// mark returns the record of a restore of b.
func (b Backup) mark(c *clock.Clock) Restored {
	return Restored{ID: newID(), Backup: uuid.MustParse(b.ID).String(), MadeAt: b.MadeAt, At: c.Now()}
}

func (r Restored) insert(tx *db.Tx) { tx.Defer(sqlMark, 1, r.ID, r.Backup, r.MadeAt, r.At) }

func (r Restored) psql() string {
	return fmt.Sprintf(psqlMark, r.ID, r.Backup, db.Micros(r.MadeAt), db.Micros(r.At))
}
