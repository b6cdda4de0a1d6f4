package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/config"
)

// actsFile is what operators did from this machine, beside the audit log, which may go back in time with its database.
type actsFile struct {
	folder string // empty: none is kept
	stderr io.Writer
}

// The file of acts, and the one before it. Together they are bounded.
const (
	actsName    = "acts.jsonl"
	actsBefore  = "acts.1.jsonl"
	maxActs     = 4 << 20 // bytes of one file
	maxActsRead = 5_000   // newest acts that are compared
)

// writtenAct is a line of the file.
type writtenAct struct {
	ID      string          `json:"id"`
	At      time.Time       `json:"at"`
	Actor   string          `json:"actor"`
	Action  string          `json:"action"`
	Tenant  string          `json:"tenant,omitempty"`
	Subject string          `json:"subject,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
}

// fullNumber is what may be a phone or account number.
var fullNumber = regexp.MustCompile(`\b(\d{5})\d{2,8}(\d{2})\b`)

// unnumbered hides the middle of numbers.
func unnumbered(text string) string { return fullNumber.ReplaceAllString(text, "$1***$2") }

// add appends an act that is committed. That it could not is said, and nothing else: the act is done.
func (f actsFile) add(e audit.Entry) {
	if f.folder == "" {
		return
	}
	// A command for PostgreSQL makes no folder in the current one unasked.
	if _, err := os.Stat(f.folder); f.folder == config.DefaultData && errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := f.append(e); err != nil && f.stderr != nil {
		fmt.Fprintf(f.stderr, "makola: This is done, and could not be noted in %s: %v\n", filepath.Join(f.folder, actsName), err)
	}
}

func (f actsFile) append(e audit.Entry) (err error) {
	details, err := json.Marshal(e.Details)
	if err != nil {
		return err
	}
	line, err := json.Marshal(writtenAct{ID: e.ID, At: e.At.UTC(), Actor: e.Actor, Action: e.Action, Tenant: e.Tenant,
		Subject: unnumbered(e.Subject), Reason: unnumbered(e.Reason), Details: json.RawMessage(unnumbered(string(details)))})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.folder, 0o700); err != nil {
		return err
	}
	path := filepath.Join(f.folder, actsName)
	if info, err := os.Stat(path); err == nil && info.Size() > maxActs {
		if err := os.Rename(path, filepath.Join(f.folder, actsBefore)); err != nil {
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

// read gives the newest acts, oldest first. Lines that a crash left torn are passed over.
func (f actsFile) read() (acts []writtenAct, err error) {
	for _, name := range []string{actsBefore, actsName} {
		text, err := os.ReadFile(filepath.Join(f.folder, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var a writtenAct
			if json.Unmarshal(lines.Bytes(), &a) == nil && a.ID != "" {
				acts = append(acts, a)
			}
		}
	}
	return acts[max(0, len(acts)-maxActsRead):], nil
}
