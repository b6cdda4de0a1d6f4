//go:build !linux && !darwin

package db

// free returns unlimited: this system has no call for free space, and only errors of the database reveal a full disk.
func free(string) uint64 { return unlimited }
