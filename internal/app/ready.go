package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/problem"
)

// Ready is the ready file, written in one piece after every listener has started. It contains the addresses and
// credentials for a program that started Makola. Members of missing parts are absent. The API key and the webhook
// secret are those of development's demo tenant.
type Ready struct {
	Version       string `json:"version"`
	PID           int    `json:"pid"`
	APIURL        string `json:"api_url"`
	SimURL        string `json:"sim_url,omitempty"`
	SMPPAddress   string `json:"smpp_address,omitempty"` // address of the simulator's message centre
	ConsoleURL    string `json:"console_url,omitempty"`
	SignInURL     string `json:"sign_in_url,omitempty"` // works once, for half an hour
	DocsURL       string `json:"docs_url,omitempty"`
	MetricsURL    string `json:"metrics_url,omitempty"`
	TenantID      string `json:"tenant_id,omitempty"`
	APIKey        string `json:"api_key,omitempty"`
	SenderID      string `json:"sender_id,omitempty"`
	GroupID       string `json:"group_id,omitempty"`
	BankID        string `json:"bank_id,omitempty"`
	WebhookSecret string `json:"webhook_secret,omitempty"`
}

// checkPlace refuses a path at which no file can be written, before anything is created. The file must hold a key
// that is shown only once.
func checkPlace(path string) error {
	if err := replaceable(path); err != nil {
		return err
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".ready-*")
	if err != nil {
		return problem.Wrap(err, problem.Invalid, "ready_file", fmt.Sprintf("The ready file cannot be written: %v", err))
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// replaceable refuses a path that has anything but a regular file, such as a device, because the ready file would
// replace it.
func replaceable(path string) error {
	if err := config.CheckOwnFile(path); err != nil {
		return problem.Wrap(err, problem.Invalid, "ready_file", fmt.Sprintf("The ready file cannot be written: %v", err))
	}
	return nil
}

// remove deletes the ready file at a stop, unless another server has replaced it.
func (r Ready) remove(path string) error {
	ours, err := r.text()
	if err != nil {
		return err
	}
	if replaceable(path) != nil {
		return nil
	}
	if there, err := config.ReadSecretFile(path); err != nil || !bytes.Equal(there, ours) {
		return nil
	}
	return os.Remove(path)
}

// text returns the bytes of the ready file.
func (r Ready) text() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the ready file: %w", err)
	}
	return append(text, '\n'), nil
}

// write replaces the file in one step. Only this user can read it, because it may hold a key.
func (r Ready) write(path string) error {
	if err := replaceable(path); err != nil {
		return err
	}
	text, err := r.text()
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".ready-*")
	if err != nil {
		return fmt.Errorf("create the ready file: %w", err)
	}
	defer os.Remove(temporary.Name()) // already renamed if all went well
	if _, err = temporary.Write(text); err == nil {
		err = temporary.Close()
	}
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the ready file: %w", err)
	}
	return nil
}
