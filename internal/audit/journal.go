package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/makola/makola/internal/config"
)

// Journal is a file with the operators' changes that were made on this machine. A restore of the database also
// restores the audit log to an earlier state, but not the journal.
type Journal struct {
	Folder string // the data folder; empty: no journal is written
	// Failed receives the error if an entry could not be written after its change was committed. It may be nil.
	Failed func(path string, err error)
}

// JournalName is the name of the file in its folder.
const JournalName = "acts.jsonl"

// The name of the previous file, and the limits of both files.
const (
	actsBefore  = "acts.1.jsonl"
	maxActs     = 4 << 20 // maximum bytes of one file
	maxActsRead = 5_000   // number of newest changes that are compared
)

// Noted is a line of the file.
type Noted struct {
	ID      string          `json:"id"`
	At      time.Time       `json:"at"`
	Actor   string          `json:"actor"`
	Action  string          `json:"action"`
	Tenant  string          `json:"tenant,omitempty"`
	Subject string          `json:"subject,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
}

// OfAccess reports whether the change concerns access: keys and their scopes, people and their factors.
func (n Noted) OfAccess() bool {
	area, _, _ := strings.Cut(n.Action, ".")
	return area == "key" || area == "people" || area == "person" || area == "webhook" || n.Action == "tenant.addresses" || n.Action == "tenant.block"
}

// fullNumber matches possible phone or account numbers, and ids, whose last part can be all digits.
var fullNumber = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b\d{9,15}\b`)

// unnumbered hides the middle of numbers. It keeps ids, by which a change can be found again.
func unnumbered(text string) string {
	return fullNumber.ReplaceAllStringFunc(text, func(found string) string {
		if strings.Contains(found, "-") {
			return found
		}
		return found[:5] + "***" + found[len(found)-2:]
	})
}

// ErrNoFolder is returned if no folder was configured and the default folder does not exist. A program with
// PostgreSQL never creates a folder in the current directory.
var ErrNoFolder = errors.New("there is no data folder here")

// Add appends a committed change. It only reports a failure to Failed, because the change is committed.
func (j Journal) Add(e Entry) {
	if j.Folder == "" || errors.Is(j.folder(), ErrNoFolder) {
		return
	}
	if err := j.append(e); err != nil && j.Failed != nil {
		j.Failed(j.Path(), err)
	}
}

// Path returns the path of the journal, for people.
func (j Journal) Path() string { return filepath.Join(j.Folder, JournalName) }

// Ready returns an error if the journal cannot be written. A command calls it before a change. After a restore, a
// change that is in no journal would be unknown.
func (j Journal) Ready() error {
	if j.Folder == "" {
		return nil // no journal is configured
	}
	if err := j.folder(); err != nil {
		return err
	}
	file, err := os.OpenFile(j.Path(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// folder creates the folder of the journal.
func (j Journal) folder() error {
	if _, err := os.Stat(j.Folder); j.Folder == config.DefaultData && errors.Is(err, fs.ErrNotExist) {
		return ErrNoFolder
	}
	return os.MkdirAll(j.Folder, 0o700)
}

func (j Journal) append(e Entry) (err error) {
	details, err := json.Marshal(e.Details)
	if err != nil {
		return err
	}
	line, err := json.Marshal(Noted{ID: e.ID, At: e.At.UTC(), Actor: e.Actor, Action: e.Action, Tenant: e.Tenant,
		Subject: unnumbered(e.Subject), Reason: unnumbered(e.Reason), Details: json.RawMessage(unnumbered(string(details)))})
	if err != nil {
		return err
	}
	if err := j.folder(); err != nil {
		return err
	}
	path := j.Path()
	if info, err := os.Stat(path); err == nil && info.Size() > maxActs {
		if err := os.Rename(path, filepath.Join(j.Folder, actsBefore)); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(append(line, '\n')); err != nil {
		return err
	}
	return file.Sync()
}

// Read returns the newest changes, oldest first. It skips lines that a crash left incomplete.
func (j Journal) Read() (acts []Noted, err error) {
	for _, name := range []string{actsBefore, JournalName} {
		text, err := os.ReadFile(filepath.Join(j.Folder, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var a Noted
			if json.Unmarshal(lines.Bytes(), &a) == nil && a.ID != "" {
				acts = append(acts, a)
			}
		}
	}
	return acts[max(0, len(acts)-maxActsRead):], nil
}
