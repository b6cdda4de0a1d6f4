package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/sim/mtn"
	"github.com/makola/makola/internal/sim/smsc"
)

// simFolder is the folder of the simulator's book in the data folder.
const simFolder = "simulator"

// simListen is the address of the simulated providers in a development server.
const simListen = "127.0.0.1:8090"

// simAddressFile has the address of a development server's simulator, for commands.
const simAddressFile = "address"

// SimulatorOf returns where the adapters find the simulator of the development server with a data folder.
func SimulatorOf(s config.Storage) string {
	address, err := os.ReadFile(filepath.Join(s.Data, simFolder, simAddressFile))
	if err != nil {
		return "http://" + simListen
	}
	return string(address)
}

// smscListen is the address of its message centre.
const smscListen = "127.0.0.1:2775"

// simDrainFor is the time for requests to end when a separate simulator stops.
const simDrainFor = 10 * time.Second

// never is longer than any step of a clock in tests.
const never = 100 * 365 * 24 * time.Hour

// startSimulator starts a simulator in development, or uses the one that the configuration names. Production has a
// simulator only if one is named, and only for test tenants.
func (a *App) startSimulator(context.Context) error {
	switch {
	case a.cfg.Sim != "":
		base := simBase(a.cfg.Sim)
		target, err := url.Parse(base)
		if err != nil { // settle has refused such a URL
			return fmt.Errorf("--sim: %w", err)
		}
		a.sim = &simulator{url: base, control: meant(remoteControl(target, a.clock))}
		return nil
	case a.production:
		return nil
	}
	folder := filepath.Join(a.cfg.Data, simFolder)
	unlock, err := db.LockFolder(folder) // nodes on one PostgreSQL may be started in one folder
	if err != nil {
		return err
	}
	a.later(func(context.Context) error { return unlock() })
	habits := smsc.Options{}
	if a.opts.Clock != nil { // a manual clock would make every connection look silent
		habits.EnquireEvery = never
	}
	local, err := simulate(sim.Options{Dir: folder, Clock: a.clock, Log: a.log}, mtn.Options{}, habits)
	if err != nil {
		return err
	}
	a.later(func(context.Context) error { return local.Close() })
	address, smscAddress := simListen, smscListen
	if strings.HasSuffix(a.cfg.Listen, ":0") {
		address, smscAddress = "127.0.0.1:0", "127.0.0.1:0"
	}
	l, err := listen("the simulator", address, true, meant(local.Handler()))
	if err != nil {
		return err
	}
	a.serve(l, l.shutdown)
	centre, err := listen("the simulator's message centre", smscAddress, true, nil)
	if err != nil {
		return err
	}
	local.Centre.Announce(centre.net)
	go func() {
		if err := local.Centre.Serve(centre.net); err != nil { // ends when the simulator is closed
			a.failed <- err
		}
	}()
	if err := os.WriteFile(filepath.Join(folder, simAddressFile), []byte(l.url()), 0o600); err != nil {
		return fmt.Errorf("write the address of the simulator: %w", err)
	}
	a.sim = &simulator{url: l.url(), smpp: centre.net.Addr().String(), control: meant(local.Handler()), local: local}
	return nil
}

// simBase returns the address of a simulator without the path of its own interface.
func simBase(address string) string {
	return strings.TrimSuffix(strings.TrimSuffix(address, "/"), simControl)
}

// remoteControl passes control requests on to a simulator in another process. It also moves this process's clock, so
// that a simulated hour passes in both.
func remoteControl(target *url.URL, c *clock.Clock) http.Handler {
	proxy := httputil.NewSingleHostReverseProxy(target)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == simControl+"/clock" {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<10))
			var order struct {
				AdvanceS float64 `json:"advance_s"`
			}
			if err == nil && json.Unmarshal(body, &order) == nil && order.AdvanceS > 0 {
				c.Advance(time.Duration(order.AdvanceS * float64(time.Second)))
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		proxy.ServeHTTP(w, r)
	})
}

// SimulatorOptions are the parameters of `makola sim`.
type SimulatorOptions struct {
	Listen, SMPPListen, Data, ReadyFile string
	MTNSandboxCurrency                  string // empty: EUR
	MTNReasonObject                     bool
	Out                                 io.Writer
	Log                                 *slog.Logger
}

// RunSimulator serves a separate simulator until ctx ends. Several Makolas can share it, and it outlives them.
func RunSimulator(ctx context.Context, o SimulatorOptions) (err error) {
	if o.ReadyFile != "" {
		if err := checkPlace(o.ReadyFile); err != nil {
			return err
		}
	}
	folder := filepath.Join(o.Data, simFolder)
	unlock, err := db.LockFolder(folder) // two simulators would write into one book
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }() // the end of the process also does this
	s, err := simulate(sim.Options{Dir: folder, Clock: clock.Real(), Log: o.Log},
		mtn.Options{SandboxCurrency: o.MTNSandboxCurrency, ReasonObject: o.MTNReasonObject}, smsc.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := listen("the simulator", o.Listen, false, meant(s.Handler()))
	if err != nil {
		return err
	}
	if strings.HasSuffix(o.Listen, ":0") {
		o.SMPPListen = "127.0.0.1:0" // a request for a free port applies to all listeners
	}
	centre, err := listen("the simulator's message centre", o.SMPPListen, true, nil)
	if err != nil {
		return errors.Join(err, l.net.Close())
	}
	s.Centre.Announce(centre.net)
	served := make(chan error, 2)
	go func() { served <- l.serve() }()
	go func() { served <- s.Centre.Serve(centre.net) }()
	smscAddress := centre.net.Addr().String()
	if o.ReadyFile != "" {
		ready := Ready{SimURL: l.url() + simControl, SMPPAddress: smscAddress}
		if err := ready.write(o.ReadyFile); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, ready.remove(o.ReadyFile)) }()
	}
	if _, err := fmt.Fprintf(o.Out, "Makola's simulator listens at %s, its message centre at %s\nUse it: makola serve --sim %s\n", l.url(), smscAddress, l.url()); err != nil {
		return err
	}
	for _, each := range sandboxes(l.url(), s.Centre.Account()) {
		if _, err := fmt.Fprintf(o.Out, "%s: %s\n", each.name, strings.Join(each.lines, "\n  ")); err != nil {
			return err
		}
	}
	select {
	case err = <-served:
		return err
	case <-ctx.Done():
	}
	o.Log.Info(draining, "drain_for", simDrainFor)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), simDrainFor)
	defer cancel()
	return l.shutdown(limit)
}
