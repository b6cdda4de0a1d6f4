// Package sample makes a data folder with a plausible past. Newcomers see full pages, and developers have lists,
// failures and open cases to work with. It runs a complete development server (package app) in that folder. The
// server's clock starts months ago and moves only from event to event. It makes requests as customers do: over the
// JSON interface, on handsets of the simulator, with a receiver for the webhooks. The changes of operators
// (accounts, funding, sender IDs) use the functions of the commands.
//
// Events and their times are drawn from a seed before the first request (plan.go). So the same seed and last day make
// the same history; ids and measured times differ. The package uses no table directly.
//
// Files, each above those that it uses:
//
//	sample.go    the folder, made whole or not at all
//	opening.go   the shops on the first morning
//	plan.go      what happens when
//	statements.go  imported statements of providers, with faults
//	orders.go    requests of the shops, and their endings
//	maker.go     time that passes, and requests to the server
//	operator.go  the changes of operators
//	receiver.go  webhooks received
//	shop.go      the shops and their customers
package sample

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/problem"
)

// Days is the default length of a sample's history in days, with its bounds.
const (
	Days      = 90
	LeastDays = 3
	MostDays  = 366
)

// Options configure the sample. Zero values select the defaults given here.
type Options struct {
	Folder  string        // folder of the data, which must be missing or empty
	Days    int           // whole UTC days; 0: Days
	Until   time.Time     // end of the last day; zero: now, including the past hours of today
	Seed    uint64        // the same seed makes the same history
	Secret  config.Secret // the master key; none: the folder gets a development key of its own
	Version string        // of the program
	// Progress receives the progress of the history; it may be nil.
	Progress func(done, total time.Duration)
}

// making is the name of the folder until it is complete.
const making = ".making"

// Make makes the sample. The folder appears when it is complete. Incomplete files are removed when ctx ends or
// anything fails. A folder that is not empty is refused.
func Make(ctx context.Context, o Options) (Made, error) {
	if o.Days = cmp.Or(o.Days, Days); o.Days < LeastDays || o.Days > MostDays {
		return Made{}, problem.Field("days", fmt.Sprintf("must be %d to %d", LeastDays, MostDays))
	}
	end := o.Until.UTC().Truncate(24 * time.Hour)
	if o.Until.IsZero() {
		end = clock.Real().Now().UTC().Truncate(time.Hour)
	}
	o.Until = end
	if o.Progress == nil {
		o.Progress = func(time.Duration, time.Duration) {}
	}
	if err := Free(o.Folder); err != nil {
		return Made{}, err
	}
	place := filepath.Clean(o.Folder) + making
	if err := os.Mkdir(place, 0o700); err != nil {
		return Made{}, notMade(err)
	}
	made, err := fill(ctx, o, place)
	if err == nil {
		err = moveTo(place, o.Folder)
	}
	if err == nil {
		return made, nil
	}
	if ctx.Err() != nil {
		err = problem.Wrap(err, problem.Unavailable, "interrupted", "The sample was interrupted, and its files were removed")
	}
	return Made{}, errors.Join(err, os.RemoveAll(place))
}

// Free refuses a folder in which a sample cannot be made: it has something in it, or another one is being made there.
func Free(folder string) error {
	inside, err := os.ReadDir(folder)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return notMade(err)
	case len(inside) > 0:
		return problem.New(problem.Duplicate, "folder_not_empty", "The folder of a sample must be empty, but "+folder+" has files in it: name another folder")
	}
	if _, err := os.Stat(filepath.Clean(folder) + making); err == nil {
		return problem.New(problem.Duplicate, "sample_being_made",
			"Another command makes a sample in this folder, or was interrupted: wait for it, or remove "+filepath.Clean(folder)+making)
	}
	return nil
}

func notMade(err error) error {
	return problem.Wrap(err, problem.Unavailable, "folder_unusable", fmt.Sprintf("The folder of the sample cannot be made: %v", err))
}

// moveTo renames the folder to its final name, and replaces an empty folder.
func moveTo(place, folder string) error {
	if err := os.Remove(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return notMade(err)
	}
	if err := os.Rename(place, folder); err != nil {
		return notMade(err)
	}
	return nil
}

// opens is the time of day at which the server of a sample starts on the first day, before any person works.
const opens = 5 * time.Hour

// fill makes the history in a place.
func fill(ctx context.Context, o Options, place string) (made Made, err error) {
	from := o.Until.Truncate(24*time.Hour).AddDate(0, 0, -o.Days)
	m := &maker{clock: clock.NewManual(from.Add(opens)), seed: o.Seed, faults: map[string]bool{},
		made: Made{Folder: o.Folder, From: from, To: o.Until}}
	storage := config.Storage{Data: place}
	cfg := config.Server{Storage: storage, Environment: "development", Listen: "127.0.0.1:0", MetricsListen: "off", Node: "sample",
		DrainFor: 30 * time.Second, Secret: o.Secret, Quotas: config.Quotas{Contacts: 1_000_000, Groups: 10_000, Senders: 1_000, Campaigns: 1_000}}
	if m.app, err = app.Start(ctx, cfg, app.Options{Version: o.Version, Clock: m.clock, BooksEvery: 24 * time.Hour}); err != nil {
		return Made{}, err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.DrainFor)
		defer cancel()
		err = errors.Join(err, m.app.Stop(stop))
	}()
	if m.operator, err = openOperator(ctx, storage, o.Secret, m.clock); err != nil {
		return Made{}, err
	}
	defer func() { err = errors.Join(err, m.operator.close()) }()
	if m.receiver, err = openReceiver(o.Seed); err != nil {
		return Made{}, err
	}
	defer m.receiver.close()
	if err := m.open(ctx); err != nil {
		return Made{}, err
	}
	total := o.Until.Sub(from)
	for _, s := range m.plan(o.Days) {
		if err := m.until(ctx, s.at); err != nil {
			return Made{}, err
		}
		if err := s.do(ctx); err != nil {
			return Made{}, fmt.Errorf("sample: event at %s: %w", s.at.Format(time.DateTime), err)
		}
		if err := m.rest(ctx); err != nil {
			return Made{}, err
		}
		o.Progress(s.at.Sub(from), total)
	}
	if err := m.until(ctx, o.Until); err != nil {
		return Made{}, err
	}
	o.Progress(total, total)
	m.made.Webhooks = m.receiver.count()
	return m.made, nil
}
