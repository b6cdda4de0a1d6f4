// Package backup makes backups of the database, and restores databases from them. A backup is two files in one
// folder. The dump is a SQLite file, or has pg_dump's custom format. It is encrypted with age if a public key is
// given. The manifest, NAME.json, has the schema, the rows of each table, the balances of the ledger, and the dump's
// SHA-256. Both files are written under temporary names and renamed when they are complete, the manifest last. So a
// manifest proves that its backup is complete.
//
// A restore ends in a database with a row in the table restores. The row exists before anybody can open the
// database. On SQLite the file gets its name after the row was written, and on PostgreSQL everything is one
// transaction. LastRestore reads it. A restore never touches a database that a server uses or that has tables.
//
// Files: backup.go (a backup, found and opened), manifest.go (its contents), create.go, verify.go, restore.go (the three
// verbs), marks.go (the rows of the last backup and restore), files.go (names given to complete files), tools.go (pg_dump
// and its like).
package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/google/uuid"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// Backup is a dump with its manifest.
type Backup struct {
	Manifest
	Path    string // path of the dump
	Problem string // in a list: why the backup is unusable; empty if it looks complete
}

// Progress receives the progress of a step, in bytes, repeatedly. A total of 0 is unknown.
type Progress func(step string, done, total int64)

func (p Progress) report(step string, done, total int64) {
	if p != nil {
		p(step, done, total)
	}
}

const manifestSuffix = ".json"

// Find reads the manifest of a backup. file is the path of the dump or of the manifest.
func Find(file string) (Backup, error) {
	path := strings.TrimSuffix(file, manifestSuffix)
	text, err := os.ReadFile(path + manifestSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return Backup{}, problem.New(problem.NotFound, "no_backup",
			fmt.Sprintf("There is no backup %s: a backup is a dump with its manifest, %s, in the same folder", path, filepath.Base(path)+manifestSuffix))
	}
	if err != nil {
		return Backup{}, problem.Wrap(err, problem.Unavailable, "backup_unreadable", "The backup's manifest cannot be read")
	}
	m, err := parseManifest(text)
	if err != nil {
		return Backup{}, damaged("its manifest cannot be read: %v", err)
	}
	if m.File != filepath.Base(path) {
		return Backup{}, damaged("its manifest belongs to %s", m.File)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Backup{}, damaged("the manifest exists, but %s does not", path)
	}
	if err != nil {
		return Backup{}, problem.Wrap(err, problem.Unavailable, "backup_unreadable", "The backup cannot be read")
	}
	if info.Size() != m.Bytes {
		return Backup{}, damaged("%s has %d bytes, but %d according to its manifest", path, info.Size(), m.Bytes)
	}
	return Backup{Manifest: m, Path: path}, nil
}

func damaged(format string, args ...any) error {
	return problem.New(problem.Internal, "backup_damaged", "The backup cannot be restored: "+fmt.Sprintf(format, args...))
}

// List lists the backups of a folder, newest first. Unusable ones have a Problem. It reads only manifests. Verify
// checks that a dump matches its manifest.
func List(folder string) ([]Backup, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, problem.Wrap(err, problem.Unavailable, "backup_unreadable", "The folder of the backups cannot be read")
	}
	var list []Backup
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), manifestSuffix)
		if !strings.HasPrefix(name, namePrefix) || slices.ContainsFunc(list, func(b Backup) bool { return filepath.Base(b.Path) == name }) {
			continue
		}
		b, err := Find(filepath.Join(folder, name))
		if err != nil {
			b = Backup{Path: filepath.Join(folder, name), Problem: problem.From(err).Message}
		}
		list = append(list, b)
	}
	slices.SortStableFunc(list, func(a, b Backup) int { return b.MadeAt.Compare(a.MadeAt) })
	return list, nil
}

// Newest returns the newest backup of a folder that looks complete.
func Newest(folder string) (Backup, error) {
	list, err := List(folder)
	if err != nil {
		return Backup{}, err
	}
	if i := slices.IndexFunc(list, func(b Backup) bool { return b.Problem == "" }); i >= 0 {
		return list[i], nil
	}
	return Backup{}, problem.New(problem.NotFound, "no_backup", fmt.Sprintf("There is no backup in %s", folder))
}

// Recipients parses age's public keys, for which backups are encrypted.
func Recipients(keys []string) ([]age.Recipient, error) {
	var list []age.Recipient
	for _, key := range keys {
		found, err := age.ParseRecipients(strings.NewReader(key))
		if err != nil {
			return nil, problem.Field("recipient", "must be a public key of age, which begins with age1: age-keygen makes one with its private key")
		}
		list = append(list, found...)
	}
	return list, nil
}

// Identities reads a file with age's private keys. It returns none for an empty path.
func Identities(path string) ([]age.Identity, error) {
	if path == "" {
		return nil, nil
	}
	text, err := config.ReadSecretFile(path) // with any permissions, because a key on a USB stick must work in an emergency
	if err != nil {
		return nil, problem.Field("identity", fmt.Sprintf("cannot be read: %v", err))
	}
	list, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil { // the error may contain parts of the file
		return nil, problem.Field("identity", "must be a file of private keys that age-keygen made, each a line that begins with AGE-SECRET-KEY-")
	}
	return list, nil
}

// open returns a reader of the decrypted dump.
func (b Backup) open(from io.Reader, keys []age.Identity) (io.Reader, error) {
	if !b.Encrypted {
		return from, nil
	}
	return decrypt(from, keys)
}

func decrypt(from io.Reader, keys []age.Identity) (io.Reader, error) {
	if len(keys) == 0 {
		return nil, problem.New(problem.Forbidden, "wrong_key", "The backup is encrypted: name the file with its private key with --identity")
	}
	clear, err := age.Decrypt(from, keys...)
	var stranger *age.NoIdentityMatchError
	if errors.As(err, &stranger) {
		return nil, problem.New(problem.Forbidden, "wrong_key", "The backup is encrypted for a key that is not in --identity")
	}
	if err != nil {
		return nil, damaged("it cannot be decrypted: %v", err)
	}
	return clear, nil
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// namePrefix begins the names of all our files in a backup folder.
const namePrefix = "makola-"

// nameOf returns the name of a dump. It contains the time in UTC to the millisecond, and the kind of the dump.
func nameOf(at time.Time, engine db.Engine, encrypted bool) string {
	name := namePrefix + strings.Replace(at.UTC().Format("20060102T150405.000Z"), ".", "", 1)
	if engine == db.Postgres {
		name += ".pgdump"
	} else {
		name += ".db"
	}
	if encrypted {
		name += ".age"
	}
	return name
}
