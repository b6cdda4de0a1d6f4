//go:build unix

package outbound

import (
	"net"
	"syscall"
)

// quiet reports whether an idle connection is still open and has no unread bytes. Unread bytes make it unusable,
// because they cannot be the response to the next request.
func quiet(socket net.Conn) bool {
	s, ok := socket.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	var none bool
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		none = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	})
	return err == nil && none
}
