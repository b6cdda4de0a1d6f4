//go:build !linux

package app

import "syscall"

// refuseSYN cannot be had here: a connection that waits to be accepted when the server stops is reset.
func refuseSYN(syscall.Conn) error { return nil }

// backlog is not known here.
func backlog(syscall.Conn) (int, error) { return 0, nil }
