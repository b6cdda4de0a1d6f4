//go:build linux || darwin

package db

import "syscall"

// free returns the bytes that this process may still write to the disk of a folder.
func free(folder string) uint64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return unlimited
	}
	return s.Bavail * uint64(s.Bsize)
}
