//go:build !race

// The program that is packed is built as it ships.

package app_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A package is installed beside this machine's own, upgraded, removed and purged: settings and key are made once and outlive it.
func TestADebIsInstalledUpgradedAndRemoved(t *testing.T) {
	t.Setenv("DEB_COMPRESSION", "none")
	root := t.TempDir()
	for _, folder := range []string{"info", "updates"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(root, name) }
	read := func(name string) string {
		text, err := os.ReadFile(at(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	pack := func(version string) string {
		file := filepath.Join(t.TempDir(), "makola.deb")
		run("../../scripts/deb.sh", program(t), version, file)
		return file
	}
	dpkg := func(args ...string) string {
		t.Helper()
		return run("dpkg", append([]string{"--instdir=" + root, "--admindir=" + at("var/lib/dpkg"), "--log=/dev/null", "--force-script-chrootless", "--force-not-root", "--force-bad-path", "--force-confold"}, args...)...)
	}

	if said := dpkg("--install", pack("v1.0")); !strings.Contains(said, "master key was made") || !strings.Contains(said, "systemctl enable --now makola") {
		t.Errorf("it says %s", said)
	}
	key := read("etc/makola/master.key")
	if len(key) != 64 {
		t.Errorf("the master key has %d characters", len(key))
	}
	for name, mode := range map[string]os.FileMode{"etc/makola": 0o700, "etc/makola/master.key": 0o600, "etc/makola/makola.env": 0o600, "usr/bin/makola": 0o755, "lib/systemd/system/makola.service": 0o644, "usr/share/man/man1/makola.1.gz": 0o644} {
		if info, err := os.Stat(at(name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if said := run(at("usr/bin/makola"), "version"); !strings.Contains(said, "makola") {
		t.Errorf("the program says %s", said)
	}
	if err := os.WriteFile(at("etc/makola/makola.env"), []byte("MAKOLA_PUBLIC_URL=https://pay.example.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := dpkg("--install", pack("v1.1")); strings.Contains(said, "master key was made") {
		t.Errorf("an upgrade says %s", said)
	}
	for _, how := range []string{"--remove", "--purge"} {
		dpkg(how, "makola")
		if _, err := os.Stat(at("usr/bin/makola")); !os.IsNotExist(err) {
			t.Errorf("after %s the program is there: %v", how, err)
		}
		if read("etc/makola/master.key") != key {
			t.Errorf("after %s the key is another", how)
		}
		if how == "--remove" && !strings.Contains(read("etc/makola/makola.env"), "pay.example.com") {
			t.Error("a removal has taken the settings")
		}
	}
}
