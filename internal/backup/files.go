package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"filippo.io/age"

	"github.com/makola/makola/internal/db"
)

// workshopPattern is the name pattern of folders for incomplete files. They are hidden and cannot be mistaken for
// dumps.
const workshopPattern = ".makola-unfinished-*"

// workshop creates a folder in parent for incomplete files. remove deletes the folder. The folder is locked while its
// process runs. workshop also deletes the folders of killed processes.
func workshop(parent string) (folder string, remove func() error, err error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", nil, err
	}
	left, _ := filepath.Glob(filepath.Join(parent, workshopPattern)) // the pattern is valid
	for _, old := range left {
		if unlock, err := db.LockFolder(old); err == nil {
			_ = os.RemoveAll(old)
			_ = unlock()
			_ = os.RemoveAll(old) // if this fails, the next call deletes it
		}
	}
	if folder, err = os.MkdirTemp(parent, workshopPattern); err != nil {
		return "", nil, err
	}
	unlock, err := db.LockFolder(folder)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(folder))
	}
	return folder, func() error {
		_ = os.RemoveAll(folder) // Windows cannot delete an open file, so the lock file is deleted below
		return errors.Join(unlock(), os.RemoveAll(folder))
	}, nil
}

// syncFile flushes a file to disk.
func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// syncFolder flushes the names in a folder to disk. It does nothing on Windows.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// place renames a complete file to its final name, which must not exist.
func place(from, to string) error {
	if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is there already: %w", to, errors.Join(os.ErrExist, err))
	}
	if err := syncFile(from); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

// meter counts the bytes that are read through it. It returns an error when its context ends.
type meter struct {
	ctx   context.Context
	from  io.Reader
	done  int64
	tells func(done int64)
}

func (m *meter) Read(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := m.from.Read(p)
	m.done += int64(n)
	m.tells(m.done)
	return n, err
}

// metered returns a reader of a file of known size that reports its progress.
func (p Progress) metered(ctx context.Context, step string, from io.Reader, total int64) io.Reader {
	return &meter{ctx: ctx, from: from, tells: func(done int64) { p.report(step, done, total) }}
}

// watchPause is the interval at which the size of a file that another program writes is read.
const watchPause = 200 * time.Millisecond

// watch reports the size of a growing file until stop is called.
func (p Progress) watch(step, path string, total int64) (stop func()) {
	p.report(step, 0, total)
	quit, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(watchPause)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				if info, err := os.Stat(path); err == nil {
					p.report(step, info.Size(), total)
				}
			}
		}
	}()
	return func() { close(quit); <-over }
}

// digest returns the SHA-256 of a file in hexadecimal, and its length.
func digest(ctx context.Context, path string, p Progress) (sum string, bytes int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return "", 0, err
	}
	hash := sha256.New()
	bytes, err = io.Copy(hash, p.metered(ctx, "checking", file, info.Size()))
	return hex.EncodeToString(hash.Sum(nil)), bytes, err
}

// into creates a file and writes it with fill. If there are recipients, the file is encrypted.
func into(path string, recipients []age.Recipient, fill func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if len(recipients) == 0 {
		return errors.Join(fill(file), file.Close())
	}
	sealed, err := age.Encrypt(file, recipients...)
	if err == nil {
		err = errors.Join(fill(sealed), sealed.Close())
	}
	return errors.Join(err, file.Close())
}
