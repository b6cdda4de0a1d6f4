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

// Journal is a file of what operators did through this machine. It stands beside the audit log, which may go back in time
// with its database.
type Journal struct {
	Folder string // of the data; empty: none is kept
	// Failed is told why an act that is done could not be written; nil: it is not told.
	Failed func(path string, err error)
}

// JournalName is the name of the file in its folder.
const JournalName = "acts.jsonl"

// The file before it, and the bounds of both.
const (
	actsBefore  = "acts.1.jsonl"
	maxActs     = 4 << 20 // bytes of one file
	maxActsRead = 5_000   // newest acts that are compared
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

// fullNumber is what may be a phone or account number, or an id, whose last part can be digits alone.
var fullNumber = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b\d{9,15}\b`)

// unnumbered hides the middle of numbers. By its ids an act must be found again.
func unnumbered(text string) string {
	return fullNumber.ReplaceAllStringFunc(text, func(found string) string {
		if strings.Contains(found, "-") {
			return found
		}
		return found[:5] + "***" + found[len(found)-2:]
	})
}

// Add appends an act that is committed. A failure is told, and nothing else: the act is done.
func (j Journal) Add(e Entry) {
	if j.Folder == "" {
		return
	}
	// A program with PostgreSQL makes no folder in the current one unasked.
	if _, err := os.Stat(j.Folder); j.Folder == config.DefaultData && errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := j.append(e); err != nil && j.Failed != nil {
		j.Failed(filepath.Join(j.Folder, JournalName), err)
	}
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
	if err := os.MkdirAll(j.Folder, 0o700); err != nil {
		return err
	}
	path := filepath.Join(j.Folder, JournalName)
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

// Read gives the newest acts, oldest first. Lines that a crash left torn are passed over.
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
