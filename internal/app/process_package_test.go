//go:build !race

// The packed program is built in the same way as a release.

package app_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// candidateVersion is the version of a package that is built from a commit.
const candidateVersion = "0.1.0~git20261126.923d570"

// packed packs the program into a folder, and returns the paths of the package of Debian and of the RPM.
func packed(version, folder string) ([]string, error) {
	program, err := builtProgram()
	if err != nil {
		return nil, err
	}
	out, err := exec.Command("../../scripts/package.sh", program, version, runtime.GOARCH, folder).Output()
	if made := strings.Fields(string(out)); err == nil && len(made) != 2 {
		err = fmt.Errorf("it printed %q", made)
	}
	return strings.Fields(string(out)), err
}

// candidate builds the package of a commit once for each run of the tests.
var candidate = sync.OnceValues(func() ([]string, error) {
	if _, err := builtProgram(); err != nil { // into builtIn
		return nil, err
	}
	folder, err := os.MkdirTemp(builtIn, "makola-packages-")
	if err != nil {
		return nil, err
	}
	return packed(candidateVersion, folder)
})

// A package is installed next to the packages of this machine, upgraded, removed and purged. It creates settings and key once,
// and they stay.
func TestDeb_installUpgradeRemove(t *testing.T) {
	t.Parallel()
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
	dpkg := func(args ...string) string {
		t.Helper()
		return run("dpkg", append([]string{"--instdir=" + root, "--admindir=" + at("var/lib/dpkg"), "--log=/dev/null", "--force-script-chrootless", "--force-not-root", "--force-bad-path", "--force-confold"}, args...)...)
	}

	first, err := candidate()
	if err != nil {
		t.Fatal(err)
	}
	second, err := packed("0.1.0", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if said := dpkg("--install", first[0]); !strings.Contains(said, "master key was made") || !strings.Contains(said, "systemctl enable --now makola") {
		t.Errorf("it says %s", said)
	}
	key := read("etc/makola/master.key")
	if len(key) != 64 {
		t.Errorf("the master key has %d characters", len(key))
	}
	for name, mode := range map[string]os.FileMode{"etc/makola": 0o700, "etc/makola/master.key": 0o600, "etc/makola/makola.env": 0o600, "usr/bin/makola": 0o755, "usr/lib/systemd/system/makola.service": 0o644, "usr/share/man/man1/makola.1.gz": 0o644} {
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
	if said := dpkg("--install", second[0]); strings.Contains(said, "master key was made") {
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

// The RPM has the same files as the Debian package. It keeps changed settings, and its scripts understand rpm's arguments.
func TestAnRPM_installsAsTheDebDoes(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), name, args...)
		c.Env = append(c.Environ(), "DPKG_ROOT="+root)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	made, err := candidate()
	if err != nil {
		t.Fatal(err)
	}
	deb, rpm := made[0], made[1]
	if got := run("rpm", "-qp", "--queryformat", "%{version}-%{release} %{os} %{license}", rpm); got != "0.1.0~git20261126.923d570-1 linux Apache-2.0" {
		t.Errorf("it is %s", got)
	}
	if got := run("rpm", "-qp", "--configfiles", "--queryformat", "[%{filenames} %{fileflags:fflags}\n]", rpm); !strings.Contains(got, "/etc/makola/makola.env cn") {
		t.Errorf("the settings are %s", got)
	}
	var files []string
	for line := range strings.Lines(run("dpkg-deb", "--contents", deb)) {
		if part := strings.Fields(line); part[0][0] != 'd' {
			files = append(files, part[0]+" "+strings.TrimPrefix(part[5], "."))
		}
	}
	list := strings.Split(run("rpm", "-qp", "--queryformat", "[%{filemodes:perms} %{filenames}\n]", rpm), "\n")
	slices.Sort(files)
	slices.Sort(list)
	if !slices.Equal(files, list) {
		t.Errorf("the packages have %q and %q", files, list)
	}

	if err := os.MkdirAll(filepath.Join(root, "etc/makola"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := func(tag string, arg string) string {
		t.Helper()
		return run("sh", "-c", run("rpm", "-qp", "--queryformat", "%{"+tag+"}", rpm), tag, arg)
	}
	if out := script("postin", "1"); !strings.Contains(out, "master key was made") || !strings.Contains(out, "systemctl enable --now makola") {
		t.Errorf("an installation prints %q", out)
	}
	for _, quiet := range []string{script("postin", "2"), script("preun", "1"), script("postun", "1")} {
		if quiet != "" {
			t.Errorf("an upgrade prints %q", quiet)
		}
	}
	if out := script("preun", "0") + script("postun", "0"); !strings.Contains(out, "were kept") {
		t.Errorf("a removal prints %q", out)
	}
}
