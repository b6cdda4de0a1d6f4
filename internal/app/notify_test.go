package app_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/config"
)

// A server notifies systemd when it is ready, that it is alive, and before it drains.
func TestSystemd_notified(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("", "notify") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(folder, "s"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	hear := func() string {
		t.Helper()
		if err := socket.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 100)
		n, err := socket.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
	a, err := app.Start(t.Context(), settings(t, "--data", t.TempDir(), "--listen", "127.0.0.1:0"),
		app.Options{Supervisor: app.Supervisor{Socket: filepath.Join(folder, "s"), Watchdog: 100 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		if got := hear(); got != want {
			t.Errorf("it was told %q, want %q", got, want)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := a.Run(ctx); err != nil {
		t.Error(err)
	}
	for got := ""; got != "STOPPING=1"; {
		if got = hear(); got != "STOPPING=1" && got != "WATCHDOG=1" {
			t.Fatalf("it was told %q", got)
		}
	}
}

// settings returns the settings of a command line.
func settings(t *testing.T, flags ...string) (s config.Server) {
	t.Helper()
	parser, err := kong.New(&s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(flags); err != nil {
		t.Fatal(err)
	}
	return s
}

// The test reads the unit, and runs systemd-analyze on it if the program exists.
func TestSystemd_unitMatchesTheServer(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/makola.service")
	if err != nil {
		t.Fatal(err)
	}
	unit := map[string]string{}
	for n, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' || line[0] == '[' {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		if !found {
			t.Errorf("line %d is no setting: %q", n+1, line)
		}
		unit[name] += value
	}
	for name, want := range map[string]string{"Type": "notify", "ExecStart": "/usr/bin/makola serve", "NoNewPrivileges": "yes", "ProtectSystem": "strict",
		"StateDirectory": "makola", "LoadCredential": "master.key:/etc/makola/master.key",
		"Environment": "MAKOLA_ENV=production MAKOLA_DATA=/var/lib/makola MAKOLA_MASTER_KEY_FILE=%d/master.key"} {
		if unit[name] != want {
			t.Errorf("%s is %q, want %q", name, unit[name], want)
		}
	}
	number := func(name string) int {
		n, err := strconv.Atoi(unit[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return n
	}
	s := settings(t, "--env", "production")
	if least := s.Notice() + s.DrainFor + 10*time.Second; time.Duration(number("TimeoutStopSec"))*time.Second < least {
		t.Errorf("TimeoutStopSec is %s: a stop takes up to %s", unit["TimeoutStopSec"], least)
	}
	if number("LimitNOFILE")/4*3 < s.MaxClients {
		t.Errorf("LimitNOFILE is %s: %d clients need more", unit["LimitNOFILE"], s.MaxClients)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("there is no systemd-analyze: the unit was read by this test alone")
		return
	}
	file := filepath.Join(t.TempDir(), "makola.service")
	program, err := os.Executable() // stands for /usr/bin/makola, which must exist
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "/usr/bin/makola", program)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", "--man=no", file}, {"security", "--offline=yes", "--threshold=25", file}} {
		if said, err := exec.Command(analyze, args...).CombinedOutput(); err != nil || args[0] == "verify" && strings.Contains(string(said), file) {
			t.Errorf("systemd-analyze %v: %v\n%s", args, err, said)
		}
	}
}
