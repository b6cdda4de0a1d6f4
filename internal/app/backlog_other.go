//go:build !linux

package app

import "syscall"

// refuseSYN does nothing on this system. A connection that waits to be accepted when the server stops is reset.
func refuseSYN(syscall.Conn) error { return nil }

// backlog is unknown on this system.
func backlog(syscall.Conn) (int, error) { return 0, nil }
