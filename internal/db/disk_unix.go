//go:build linux || darwin

package db

import "syscall"

// free is how many bytes a folder's disk has left for us.
func free(folder string) uint64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return unlimited
	}
	return s.Bavail * uint64(s.Bsize)
}
