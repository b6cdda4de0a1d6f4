package app

import (
	"context"
	"net"
	"time"
)

// tell sends a state. A supervisor that does not listen changes nothing for the server but a line in its log.
func (a *App) tell(state string) {
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

// supervise says that the server is ready, and from then on that it lives: twice in the time that the supervisor waits. A
// database that is down is no reason to be ended, because a new process would find it down, too.
func (a *App) supervise(context.Context) error {
	a.tell("READY=1")
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
				a.tell("WATCHDOG=1")
			}
		}
	}()
	// The first thing that was started is the last to stop: until then the process is watched.
	a.undo = append([]func(context.Context) error{func(context.Context) error { close(done); return nil }}, a.undo...)
	return nil
}
