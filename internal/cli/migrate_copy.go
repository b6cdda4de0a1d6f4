package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/relocation"
)

// migrateCopy moves an installation from SQLite to PostgreSQL.
type migrateCopy struct {
	Data         string `name:"data" env:"MAKOLA_DATA" default:"./makola-data" placeholder:"FOLDER" help:"Folder of the SQLite database that the installation leaves. Its server must be stopped."`
	To           string `name:"to" env:"MAKOLA_DATABASE" placeholder:"URL" help:"URL of the empty PostgreSQL database that it moves to."`
	Abandon      bool   `name:"abandon" help:"Give up a move that is not done: the folder can be served again, the target never."`
	TargetIsGone bool   `name:"target-is-gone" help:"With --abandon: do not ask the target, which is gone for ever and on which no server was ever started."`
	Output       string `name:"output" short:"o" enum:"table,json,csv" default:"table" help:"table, json or csv."`
}

// Validate refuses flags that make no sense together.
func (c migrateCopy) Validate() error {
	switch {
	case c.Data == "":
		return errors.New("--data must name a folder")
	case c.TargetIsGone && !c.Abandon:
		return errors.New("--target-is-gone needs --abandon")
	case c.To == "" && !c.TargetIsGone:
		return errors.New("--to must name the PostgreSQL database, as MAKOLA_DATABASE does for servers")
	}
	return nil
}

var movedColumns = []column[relocation.Moved]{
	{"move", func(m relocation.Moved) any { return m.Token }},
	{"tables", func(m relocation.Moved) any { return int64(m.Tables) }},
	{"rows", func(m relocation.Moved) any { return m.Rows }},
	{"already", func(m relocation.Moved) any { return m.Already }},
}

// Run moves the installation, or abandons its move. The folder is locked meanwhile, as a server locks it.
func (c *migrateCopy) Run(e *env) (err error) {
	source := common{Storage: config.Storage{Data: c.Data}}
	if err := source.there(); err != nil {
		return err
	}
	unlock, err := db.LockFolder(c.Data)
	if errors.Is(err, db.ErrLocked) {
		return problem.Wrap(err, problem.InProgress, "folder_in_use", strings.TrimPrefix(err.Error(), "db: ")+": stop it first")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return source.unmigrated(e, func(from *db.DB) error {
		if err := current(e.ctx, from, "source"); err != nil {
			return err
		}
		move := relocation.Move{From: from, Clock: clock.Real(), Actor: "cli:" + loggedIn(), Origin: origin(), Check: checkRestored, Progress: progressOn(e.stderr, plainly)}
		if c.TargetIsGone {
			return c.released(e, move.Release(e.ctx))
		}
		target := common{Storage: config.Storage{Database: c.To}}
		return target.unmigrated(e, func(to *db.DB) error {
			move.To = to
			if c.Abandon {
				return c.released(e, move.Abandon(e.ctx))
			}
			return c.move(e, move)
		})
	})
}

func (c *migrateCopy) move(e *env, move relocation.Move) error {
	if err := prepare(e.ctx, move.To); err != nil {
		return err
	}
	moved, err := move.Run(e.ctx)
	move.Progress("", 0, 0)
	if err != nil {
		return err
	}
	if moved.Already {
		fmt.Fprintln(e.stderr, "This move is done already: nothing was copied. Start servers on the new database")
	} else {
		journal := audit.Journal{Folder: c.Data, Failed: notNoted(e)}
		journal.Add(move.Entry(moved))
		fmt.Fprintf(e.stderr, "The installation has moved: start servers with this URL as MAKOLA_DATABASE, and the same master key%s and data folder\n", c.developmentKey())
	}
	return printOne(e.stdout, c.Output, movedColumns, moved)
}

// developmentKey says how a server finds the key that development made for itself in the folder.
func (c *migrateCopy) developmentKey() string {
	path := app.DevelopmentKey(c.Data)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return " (" + config.EnvMasterKeyFile + "=" + path + ")"
}

// released says what an abandoned move leaves.
func (c *migrateCopy) released(e *env, err error) error {
	if err == nil {
		fmt.Fprintf(e.stderr, "The move is abandoned: start the server on %s again, and remove the other database\n", c.Data)
	}
	return err
}

// prepare makes the tables of a database that no server was started on, or those that an earlier run did not come to.
func prepare(ctx context.Context, to *db.DB) error {
	pending, err := to.PendingMigrations(ctx)
	if err != nil || len(pending) == 0 {
		return err
	}
	if !slices.ContainsFunc(pending, installation.MakesMark) {
		tied, err := installation.New(to, clock.Real()).Tied(ctx)
		if err != nil {
			return err
		}
		if tied {
			return current(ctx, to, "target")
		}
	}
	return to.Migrate(ctx)
}

// plainly prints rows and tables in a line of progress.
func plainly(n int64) string { return fmt.Sprint(n) }
