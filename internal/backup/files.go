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

// workshopPattern names the folders of incomplete files. They are hidden, and no dump.
const workshopPattern = ".makola-unfinished-*"

// workshop makes a folder in parent for incomplete files, and returns the function that removes it. It is locked
// while its maker is alive. Folders of killed makers are removed.
func workshop(parent string) (folder string, remove func() error, err error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", nil, err
	}
	left, _ := filepath.Glob(filepath.Join(parent, workshopPattern)) // the pattern is right
	for _, old := range left {
		if unlock, err := db.LockFolder(old); err == nil {
			_ = os.RemoveAll(old)
			_ = unlock()
			_ = os.RemoveAll(old) // or the next one does it
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
		_ = os.RemoveAll(folder) // Windows keeps a file that is open: the lock goes below
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

// syncFolder makes a folder's names last. Windows does so by itself.
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

// place gives a whole file its name, which must be free.
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

// meter counts the bytes that pass through it and breaks off when its context is over.
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

// metered reads from a file of a known size and reports its progress.
func (p Progress) metered(ctx context.Context, step string, from io.Reader, total int64) io.Reader {
	return &meter{ctx: ctx, from: from, tells: func(done int64) { p.report(step, done, total) }}
}

// watchPause is how often a file that another program writes is looked at.
const watchPause = 200 * time.Millisecond

// watch reports the length of a growing file until stop.
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

// digest is the SHA-256 of a file, in hexadecimal, and its length.
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

// into writes a new file with fill, encrypted where there are recipients.
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
