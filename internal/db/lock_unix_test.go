//go:build unix

package db

import (
	"os/exec"
	"sync/atomic"
	"testing"
)

// A child process shares our open files between fork and exec. It must not keep a folder locked after we released the
// lock.
func TestLock_childProcessKeepsNone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var enough atomic.Bool
	started := make(chan error, 1)
	go func() {
		var err error
		for err == nil && !enough.Load() {
			err = exec.Command("true").Run()
		}
		started <- err
	}()
	for range 2_000 {
		unlock, err := LockFolder(folder)
		if err == nil {
			err = unlock()
		}
		if err != nil {
			t.Error(err)
			break
		}
	}
	enough.Store(true)
	if err := <-started; err != nil {
		t.Error(err)
	}
}
