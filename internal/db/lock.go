package db

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrLocked is returned for a data folder that another server uses.
var ErrLocked = errors.New("db: another makola is serving from this folder")

// lockName is the file that a server locks in its data folder. The file stays when the server ends; only the lock on
// it counts.
const lockName = "makola.lock"

// LockFolder locks a data folder for one server. It creates a missing folder. The lock ends with unlock or when the
// process ends. A command that opens the database while a server runs needs no lock.
func LockFolder(folder string) (unlock func() error, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("db: make the data folder: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(folder, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("db: open the lock file: %w", err)
	}
	if err := lockFile(file); err != nil {
		holder := make([]byte, 32)
		n, _ := file.Read(holder)
		_ = file.Close()
		if errors.Is(err, errHeld) {
			return nil, fmt.Errorf("%w: %s (process %s)", ErrLocked, folder, holder[:n])
		}
		return nil, fmt.Errorf("db: lock %s: %w", folder, err)
	}
	// The process id is for a person who reads the file. The lock itself does not need it.
	if err := file.Truncate(0); err == nil {
		_, _ = file.WriteAt([]byte(fmt.Sprint(os.Getpid())), 0)
	}
	return func() error { return errors.Join(unlockFile(file), file.Close()) }, nil
}

var errHeld = errors.New("held")
