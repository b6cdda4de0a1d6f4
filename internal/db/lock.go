package db

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrLocked is a data folder that another server is using.
var ErrLocked = errors.New("db: another makola is serving from this folder")

// lockName is the file that a server holds locked in its data folder. It stays
// when the server ends; only the lock on it means anything.
const lockName = "makola.lock"

// LockFolder locks a data folder for one server and makes a missing folder. The lock ends with unlock or with the
// process. Commands that open the database while a server runs need no lock.
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
	// The number is for a reader of the message above; the lock does not need it.
	if err := file.Truncate(0); err == nil {
		_, _ = file.WriteAt([]byte(fmt.Sprint(os.Getpid())), 0)
	}
	return func() error { return errors.Join(unlockFile(file), file.Close()) }, nil
}

var errHeld = errors.New("held")
