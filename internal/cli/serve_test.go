package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/installation"
	"github.com/makola/makola/internal/test/dbtest"
)

// The server ignores variables that are meant for another process of the same service.
func TestSupervisor_fromTheEnvironment(t *testing.T) {
	t.Parallel()
	environment := map[string]string{"NOTIFY_SOCKET": "@s", "WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "7"}
	getenv := func(name string) string { return environment[name] }
	if got, want := supervisor(7, getenv), (app.Supervisor{Socket: "@s", Watchdog: time.Minute}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := supervisor(8, getenv); got.Watchdog != 0 {
		t.Errorf("another process's watchdog: %+v", got)
	}
	if got := supervisor(7, func(string) string { return "" }); got != (app.Supervisor{}) {
		t.Errorf("without systemd: %+v", got)
	}
}

// If an operator can fix the start of a server, the message names the fix and is not reported as an internal error.
func TestServe_cannotStart(t *testing.T) {
	t.Setenv("GOGC", "100") // later tests keep their collector settings
	t.Setenv("GOMEMLIMIT", "off")
	key := strings.Repeat("ab", config.SecretBytes)
	t.Setenv(config.EnvMasterKey, key)
	start := func(folder string, code int, want string, args ...string) {
		t.Helper()
		w := where{t: t, flags: append([]string{"--listen", "127.0.0.1:0"}, args...)} // the last value of a flag counts
		if _, errs := w.run(code, "serve", "--data", folder); !strings.Contains(errs, want) || strings.Contains(errs, "went wrong") {
			t.Errorf("%v: the message is %q, want %q in it", args, errs, want)
		}
	}
	folder := t.TempDir()
	start(folder, exitUsage, "a provider: set MAKOLA_MTN_URL", "--env", "production")
	start(folder, exitUsage, `https://pay.example in MAKOLA_PUBLIC_URL, not "pay.here"`, "--public-url", "pay.here")
	start(folder, exitUsage, "no such file", "--tls-cert", filepath.Join(folder, "none"), "--tls-key", filepath.Join(folder, "none"))

	t.Setenv(config.EnvMasterKey, "")
	t.Setenv(config.EnvMasterKeyFile, writeKey(t, folder))
	start(folder, exitUsage, "can be read or changed by others", "--env", "production")
	for _, url := range []string{"postgres://makola:secret@127.0.0.1:1/none", "postgres://127.0.0.1:1/none?user=makola&password=secret", "host=127.0.0.1 password=secret"} {
		start(folder, exitUsage, "in the list of processes", "--env", "production", "--database", url)
		start(folder, exitUsage, "in the list of processes", "--env", "production", "--database="+url)
	}
	start(folder, exitUsage, "The password in --proxy can be read", "--env", "production", "--proxy=http://ama:secret@127.0.0.1:1")
	t.Setenv(config.EnvMasterKeyFile, "")
	t.Setenv(config.EnvMasterKey, key)
	start(folder, exitUsage, "because it has credentials of MTN", "--mtn-url", "https://momo.example")

	empty := t.TempDir()
	noPlace := filepath.Join(empty, "none", "ready.json")
	start(empty, exitUsage, "The ready file cannot be written", "--ready-file", noPlace)
	where{t: t, flags: []string{"--data", empty}}.run(exitUsage, "sim", "--listen", "127.0.0.1:0", "--mtn-sandbox-currency", "euro")
	where{t: t, flags: []string{"--data", empty}}.run(exitUsage, "sim", "--listen", "127.0.0.1:0", "--ready-file", noPlace)
	for want, args := range map[string][]string{
		`in MAKOLA_LISTEN, not "127.0.0.1:99999"`:                 {"--listen", "127.0.0.1:99999"},
		`in MAKOLA_METRICS_LISTEN, not "127.0.0.1:x"`:             {"--metrics-listen", "127.0.0.1:x"},
		"MAKOLA_DRAIN_NOTICE, not -1s":                            {"--drain-notice=-1s"},
		"3129 in MAKOLA_PROXY":                                    {"--proxy", "proxy.example:3128"},
		`in MAKOLA_PROXY_EXCEPT, not "10.0.0.0/33"`:               {"--proxy-except", "bank.example,10.0.0.0/33"},
		"MAKOLA_DRAIN_FOR, not -1s":                               {"--drain-for=-1s"},
		`BOOTSTRAP_PASSWORD_FILE, because MAKOLA_BOOTSTRAP_EMAIL`: {"--bootstrap-email", "ama@example.com"},
		"MAKOLA_BOOTSTRAP_PASSWORD_FILE: stat ":                   {"--bootstrap-email", "ama@example.com", "--bootstrap-password-file", noPlace},
	} {
		start(empty, exitUsage, want, args...)
	}
	if made, err := os.ReadDir(empty); err != nil || len(made) > 0 {
		t.Errorf("a start that could not be told of has made %v, %v", made, err)
	}

	strong := sha256.Sum256([]byte("makola"))
	t.Setenv(config.EnvMasterKey, hex.EncodeToString(strong[:]))
	start(folder, exitUsage, "--listen (MAKOLA_LISTEN)", "--listen", "192.0.2.1:8080", // is not an address of this machine
		"--sim", "http://127.0.0.1:1", "--public-url", "https://pay.example", "--trusted-proxy", "10.0.0.1")
	t.Setenv(config.EnvMasterKey, key)
	for _, url := range []string{"mysql://x", "mysql://x?a=b", "postgres://127.0.0.1:port/none", "none"} {
		start(folder, exitUsage, "The URL of the database (MAKOLA_DATABASE) cannot be used: it must have the form postgres://", "--database", url)
		for _, command := range []string{"tenant list", "migrate up"} {
			if _, errs := (where{t: t}).run(exitUsage, append(strings.Fields(command), "--database", url)...); !strings.Contains(errs, "(MAKOLA_DATABASE)") {
				t.Errorf("%s with %s: %q", command, url, errs)
			}
		}
	}

	unlock, err := db.LockFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	start(folder, exitConflict, "another makola is serving from this folder")
	if err := unlock(); err != nil {
		t.Fatal(err)
	}

	// Only one process may write a simulator's book, wherever the database is.
	if unlock, err = db.LockFolder(filepath.Join(folder, "simulator")); err != nil {
		t.Fatal(err)
	}
	start(folder, exitConflict, "another makola is serving from this folder")
	where{t: t, flags: []string{"--data", folder}}.run(exitConflict, "sim", "--listen", "127.0.0.1:0")
	if err := unlock(); err != nil {
		t.Fatal(err)
	}

	other := config.Storage{Data: t.TempDir()}
	dbtest.File(t, other.SQLite())
	secret, err := config.NewSecret([]byte(strings.Repeat("x", config.SecretBytes)))
	if err != nil {
		t.Fatal(err)
	}
	if err := installation.New(dbtest.OpenWith(t, db.Options{Path: other.SQLite()}), clock.Real()).Check(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	start(other.Data, exitUsage, "not the one this database was made with")
	// No new key is made for a database that was restored without its key.
	t.Setenv(config.EnvMasterKey, "")
	start(other.Data, exitUsage, "put the file back, or set "+config.EnvMasterKey)
	own := filepath.Join(other.Data, "development.key")
	if _, err := os.Stat(own); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key was left behind: %v", err)
	}
	if err := os.WriteFile(own, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	start(other.Data, exitUsage, "neither hexadecimal nor base64")
	t.Setenv(config.EnvMasterKey, "abc")
	start(folder, exitUsage, "the master key has 2 bytes")
}

// writeKey writes a master key that anybody may read.
func writeKey(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(folder, "master.key")
	if err := os.WriteFile(path, []byte(strings.Repeat("ab", config.SecretBytes)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A duration has its unit in every format of the log.
func TestLog_hasUnits(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		newLog(&out, format, "info").Info("draining", "drain_for", 1500*time.Millisecond)
		if !strings.Contains(out.String(), "1.5s") {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}

// A command prints the error of the database once, and our own advice at most once.
func TestHealth_databaseAway(t *testing.T) {
	t.Parallel()
	_, errs := where{t: t}.run(exitUnavailable, "tenant", "list", "--database", "postgres://makola@127.0.0.1:1/none")
	if !strings.Contains(errs, "connection refused") || strings.Count(errs, "try again shortly") > 1 {
		t.Errorf("%s", errs)
	}
}
