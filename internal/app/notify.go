package app

import (
	"context"
	"net"
	"time"
)

// notify sends a state. If the supervisor does not read it, the server only logs a line.
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

// supervise reports that the server is ready. It then reports twice in each watchdog time of the supervisor that the
// server is alive. It also does so while the database is down, because a restarted process would not reach it
// either.
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
	// Parts stop in the opposite order, so the supervisor watches the process until the end.
	a.undo = append([]func(context.Context) error{func(context.Context) error { close(done); return nil }}, a.undo...)
	return nil
}
