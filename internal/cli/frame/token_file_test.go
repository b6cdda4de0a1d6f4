//go:build unix

package frame

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/makola/makola/internal/backup"
	"github.com/makola/makola/internal/config"
)

// A named pipe in place of a secret file is refused at once, because its writer may never open it.
func TestTokenFile_isARegularFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	pipe, token, link := filepath.Join(folder, "pipe"), filepath.Join(folder, "token"), filepath.Join(folder, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(token, []byte("mk_person_x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(token, link); err != nil {
		t.Fatal(err)
	}
	if got, err := (&authority{tokenFile: token}).token(); err != nil || got != "mk_person_x" {
		t.Fatal(got, err)
	}
	for _, bad := range []string{pipe, link, folder, os.DevNull} {
		if _, err := (&authority{tokenFile: bad}).token(); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := config.SecretFile(pipe, true); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("master key: %v", err)
	}
	if _, err := (config.SMPP{File: pipe}).Binds(); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("SMPP binds: %v", err)
	}
	if _, err := backup.Identities(pipe); err == nil {
		t.Error("a pipe holds keys of backups")
	}
}
