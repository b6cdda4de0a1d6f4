package app

import (
	"context"
	"net"
	"time"
)

// notify sends a state. A supervisor that does not listen costs the server only a line in its log.
func (a *App) notify(state string) {
	if a.opts.Supervisor.Socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: a.opts.Supervisor.Socket, Net: "unixgram"})
	if err == nil {
		defer conn.Close()
		_, err = conn.Write([]byte(state))
	}
	if err != nil {
		a.log.Warn("failed to notify supervisor", "state", state, "error", err)
	}
}

// supervise reports that the server is ready, and then that it is alive, twice in the supervisor's watchdog time. It
// does so without a database, too, because a new process would not find the database either.
func (a *App) supervise(context.Context) error {
	a.notify("READY=1")
	if a.opts.Supervisor.Watchdog <= 0 || a.opts.Supervisor.Socket == "" {
		return nil
	}
	done := make(chan struct{})
	go func() {
		each := time.NewTicker(a.opts.Supervisor.Watchdog / 2)
		defer each.Stop()
		for {
			select {
			case <-done:
				return
			case <-each.C:
				a.notify("WATCHDOG=1")
			}
		}
	}()
	// The first thing that was started is the last to stop: until then the process is watched.
	a.undo = append([]func(context.Context) error{func(context.Context) error { close(done); return nil }}, a.undo...)
	return nil
}
