//go:build unix

package app

import (
	"math"
	"syscall"
)

// Descriptors returns the number of files and connections that this process may have open at once.
func Descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}
