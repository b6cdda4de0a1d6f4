package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
)

// The files of a data folder.
const (
	placeFile = "makola.place" // the token of the SQLite database in the same folder; two tokens while a server starts
	seenFile  = "makola.seen"  // the last rows whose COMMIT this node has seen
)

// keepEvery is the interval at which the last rows are written to their file.
const keepEvery = time.Second

// remindEvery is the time between log lines about a recovery in progress.
const remindEvery = time.Minute

// kept is the file of the last rows.
type kept struct {
	Installation string `json:"installation"`
	Rows         []row  `json:"rows"`
}

// Start makes the first check, which compares the database with the node's files. It then checks repeatedly until
// Stop.
func (w *Watch) Start(ctx context.Context) error {
	if err := os.MkdirAll(w.o.Folder, 0o700); err != nil && w.r.db.Engine() == db.SQLite {
		return err
	}
	rows, err := w.rows(ctx)
	if err != nil {
		return err
	}
	epoch := w.r.db.Epoch()
	if w.r.db.Engine() == db.SQLite {
		err = w.arrive(ctx, rows)
	} else {
		err = w.look(ctx, nil, rows, "")
	}
	if err != nil {
		return err
	}
	if err := w.r.Use(ctx, w.o.Accounts); err != nil {
		return err
	}
	if _, err := w.r.State(ctx); err != nil { // starts the measurement of a recovery's age
		return err
	}
	w.looked.Store(epoch)
	ctx, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	w.stopped = make(chan struct{})
	go w.keep(ctx)
	return nil
}

// Stop writes the last rows to their file and ends the watch.
func (w *Watch) Stop(ctx context.Context) error {
	w.stop()
	select {
	case <-w.stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// arrive stores a new token in a SQLite database and in the file makola.place in its folder. Until the database has
// the new token, the file has both. The token distinguishes the database from a copy that was made before this start.
func (w *Watch) arrive(ctx context.Context, rows []row) error {
	path := filepath.Join(w.o.Folder, placeFile)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("recovery: read the file of the database's place: %w", err)
	}
	tokens := strings.Fields(string(text))
	if tokens == nil {
		tokens = []string{}
	}
	next := newID()
	if err := replace(path, []byte(strings.Join(append(tokens, next), "\n")+"\n"), true); err != nil {
		return fmt.Errorf("recovery: write the file of the database's place: %w", err)
	}
	if err := w.look(ctx, tokens, rows, next); err != nil {
		return err
	}
	return replace(path, []byte(next+"\n"), true)
}

// rows returns the rows in the file of the last rows. It returns none if the file cannot be read or belongs to
// another installation.
func (w *Watch) rows(ctx context.Context) ([]row, error) {
	text, err := os.ReadFile(filepath.Join(w.o.Folder, seenFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var k kept
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	if err != nil {
		w.r.log.WarnContext(ctx, "failed to read last seen rows, continuity not checked", "file", seenFile, "error", err)
		return nil, nil
	}
	var s standing
	err = w.r.db.Read(db.System(ctx), func(tx *db.Tx) error {
		s, err = stands(tx, sqlStands)
		return err
	})
	if err != nil || s.installation != k.Installation {
		return nil, err
	}
	return k.Rows, nil
}

// keep writes the last rows to their file, repeats the check from time to time, and logs a recovery in progress.
func (w *Watch) keep(ctx context.Context) {
	defer close(w.stopped)
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	var last []row
	var looked, reminded time.Time
	failed := false
	for {
		rows := w.seen()
		if len(rows) > 0 && !slices.Equal(rows, last) {
			err := w.write(rows)
			if err != nil && !failed {
				w.r.log.Warn("failed to store last seen rows", "folder", w.o.Folder, "error", err)
			}
			if failed = err != nil; !failed {
				last = rows
			}
		}
		select {
		case <-ctx.Done():
			if rows := w.seen(); len(rows) > 0 && !slices.Equal(rows, last) {
				_ = w.write(rows)
			}
			return
		case now := <-tick.C:
			if now.Sub(looked) < lookEvery {
				continue
			}
			looked = now
			if w.r.db.Engine() == db.Postgres {
				_ = w.again(ctx) // an error is ignored, because Sure checks again before a submission
			}
			if now.Sub(reminded) >= remindEvery && w.remind(ctx) {
				reminded = now
			}
		}
	}
}

func (w *Watch) write(rows []row) error {
	text, err := json.Marshal(kept{Installation: *w.installation.Load(), Rows: rows})
	if err != nil {
		return err
	}
	return replace(filepath.Join(w.o.Folder, seenFile), text, false) // an old file is harmless: it only has fewer rows
}

// remind logs a recovery in progress and stores that this node has its accounts.
func (w *Watch) remind(ctx context.Context) bool {
	s, err := w.r.State(ctx)
	if err != nil || !s.Lasts() {
		return false
	}
	w.r.log.ErrorContext(ctx, "recovery in progress", "phase", string(s.Phase), "cause", s.Cause, "begun_at", s.BegunAt)
	if err := w.r.Use(ctx, w.o.Accounts); err != nil {
		w.r.log.WarnContext(ctx, "failed to store provider accounts of this node", "error", err)
	}
	return true
}

// replace replaces a file atomically.
func replace(path string, text []byte, durable bool) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(text)
	if err == nil && durable {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
