package operations

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/relocation"
)

// migrateCopy moves an installation from SQLite to PostgreSQL.
type migrateCopy struct {
	Data         string `name:"data" env:"MAKOLA_DATA" default:"./makola-data" placeholder:"FOLDER" help:"Folder of the SQLite database to move. Its server must be stopped."`
	To           string `name:"to" env:"MAKOLA_DATABASE" placeholder:"URL" help:"URL of the empty PostgreSQL database to move to."`
	Abandon      bool   `name:"abandon" help:"Abandon an unfinished move. The folder can then be served again. The target cannot be used any more."`
	TargetIsGone bool   `name:"target-is-gone" help:"With --abandon: do not contact the target. Use it only if the target is lost for good, and no server was ever started on it."`
	Output       string `name:"output" short:"o" enum:"table,json,csv" default:"table" help:"Format of the output: table, json or csv."`
}

// Validate refuses flags that cannot be combined.
func (c migrateCopy) Validate() error {
	switch {
	case c.Data == "":
		return errors.New("--data must not be empty")
	case c.TargetIsGone && !c.Abandon:
		return errors.New("--target-is-gone needs --abandon")
	case c.To == "" && !c.TargetIsGone:
		return errors.New("--to must be the URL of the PostgreSQL database, as in MAKOLA_DATABASE of the servers")
	}
	return nil
}

var movedColumns = []frame.Column[relocation.Moved]{
	{Name: "move", Value: func(m relocation.Moved) any { return m.Token }},
	{Name: "tables", Value: func(m relocation.Moved) any { return int64(m.Tables) }},
	{Name: "rows", Value: func(m relocation.Moved) any { return m.Rows }},
	{Name: "already", Value: func(m relocation.Moved) any { return m.Already }},
}

// Run moves the installation, or abandons a move. It holds the lock of the folder, as a server does.
func (c *migrateCopy) Run(e *frame.Env) (err error) {
	source := frame.Common{Storage: config.Storage{Data: c.Data}}
	if err := source.There(); err != nil {
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
	return unmigrated(&source, e, func(from *db.DB) error {
		if err := frame.Current(e.Ctx, from, "source"); err != nil {
			return err
		}
		move := relocation.Move{From: from, Clock: clock.Real(), Actor: "cli:" + frame.LoggedIn(), Origin: frame.Origin(), Check: checkRestored, Progress: frame.ProgressOn(e.Stderr, plainly)}
		if c.TargetIsGone {
			return c.released(e, move.Release(e.Ctx))
		}
		target := frame.Common{Storage: config.Storage{Database: c.To}}
		return unmigrated(&target, e, func(to *db.DB) error {
			move.To = to
			if c.Abandon {
				return c.released(e, move.Abandon(e.Ctx))
			}
			return c.move(e, move)
		})
	})
}

func (c *migrateCopy) move(e *frame.Env, move relocation.Move) error {
	if err := prepare(e.Ctx, move.To); err != nil {
		return err
	}
	moved, err := move.Run(e.Ctx)
	move.Progress("", 0, 0)
	if err != nil {
		return err
	}
	if moved.Already {
		fmt.Fprintln(e.Stderr, "The installation has moved already; nothing was copied. Start the servers with the new database")
	} else {
		journal := audit.Journal{Folder: c.Data, Failed: frame.NotNoted(e)}
		journal.Add(move.Entry(moved))
		fmt.Fprintf(e.Stderr, "The installation has moved. Start the servers with this URL as MAKOLA_DATABASE, and with the same master key%s and data folder\n", c.developmentKey())
	}
	return frame.PrintOne(e.Stdout, c.Output, movedColumns, moved)
}

// developmentKey names the file with the development key, if the installation uses it.
func (c *migrateCopy) developmentKey() string {
	path := app.DevelopmentKey(c.Data)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return " (" + config.EnvMasterKeyFile + "=" + path + ")"
}

// released prints the next steps after an abandoned move.
func (c *migrateCopy) released(e *frame.Env, err error) error {
	if err == nil {
		fmt.Fprintf(e.Stderr, "The move is abandoned. Start the server on %s again, and remove the other database\n", c.Data)
	}
	return err
}

// prepare creates the tables in a database that no server has used. If an earlier run was interrupted, it creates
// the missing tables.
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
			return frame.Current(ctx, to, "target")
		}
	}
	return to.Migrate(ctx)
}

// plainly formats the progress of rows and tables in one line.
func plainly(n int64) string { return fmt.Sprint(n) }
