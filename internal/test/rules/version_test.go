package rules

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The versions of commits and tags, in the order in which they were made, are in the order of dpkg and of rpm.
func TestVersion_sortsForDpkgAndRpm(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs dpkg and rpm")
	}
	script, err := filepath.Abs(filepath.Join(root, "scripts", "version.sh"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	run := func(day, name string, args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir = folder
		c.Env = append(c.Environ(), "GIT_COMMITTER_DATE="+day+"T23:30:00Z", "GIT_AUTHOR_DATE=2020-01-01T00:00:00Z", "TZ=Africa/Johannesburg",
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_COUNT=2",
			"GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=A", "GIT_CONFIG_KEY_1=user.email", "GIT_CONFIG_VALUE_1=a@makola.example")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("", "git", "init", "-q")
	var before string
	for _, step := range []struct{ day, tag, want string }{
		{"", "", `0\.1\.0~dev`},
		{"2026-11-26", "", `0\.1\.0~git20261126\.[0-9a-f]{7}`},
		{"2026-12-01", "", `0\.1\.0~git20261201\.[0-9a-f]{7}`},
		{"2026-12-02", "v0.1.0", `0\.1\.0`},
		{"2026-12-03", "", `0\.1\.1~git20261203\.[0-9a-f]{7}`},
		{"2026-12-04", "v1.2.9", `1\.2\.9`},
		{"2026-12-05", "", `1\.2\.10~git20261205\.[0-9a-f]{7}`},
		{"2026-12-06", "v1.3.0-rc.1", `1\.2\.10~git20261206\.[0-9a-f]{7}`}, // no tag of the policy
		{"2026-12-07", "v1.3.0", `1\.3\.0`},
	} {
		if step.day != "" {
			run(step.day, "git", "commit", "-q", "--allow-empty", "-m", "a change")
		}
		if step.tag != "" {
			run(step.day, "git", "tag", step.tag)
		}
		version := run(step.day, script)
		if !regexp.MustCompile("^" + step.want + "$").MatchString(version) {
			t.Errorf("the version is %s, want %s", version, step.want)
		}
		if before != "" {
			run("", "dpkg", "--compare-versions", before, "lt", version)
			if got := run("", "rpm", "--eval", `%{lua:print(rpm.vercmp("`+before+`", "`+version+`"))}`); got != "-1" {
				t.Errorf("rpm compares %s with %s as %s", before, version, got)
			}
		}
		before = version
	}
}
