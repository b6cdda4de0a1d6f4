package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// dpkg and rpm order the versions of commits and tags in the order in which they were made.
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
		var said strings.Builder
		c.Stderr = &said
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said.String())
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
		{"2026-12-06", "v1.3.0-rc.1", `1\.2\.10~git20261206\.[0-9a-f]{7}`}, // not a tag of the policy
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

// A clone without tags takes its version from the changelog, above the last release, and prints a notice.
func TestVersion_cloneWithoutTags(t *testing.T) {
	script, err := filepath.Abs(filepath.Join(root, "scripts", "version.sh"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	run := func(in, name string, args ...string) (out, said string) {
		t.Helper()
		var stdout, stderr strings.Builder
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir, c.Stdout, c.Stderr = filepath.Join(folder, in), &stdout, &stderr
		c.Env = append(c.Environ(), "GIT_COMMITTER_DATE=2026-12-07T23:30:00Z", "GIT_CEILING_DIRECTORIES="+folder, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=user.name", "GIT_CONFIG_VALUE_0=A", "GIT_CONFIG_KEY_1=user.email", "GIT_CONFIG_VALUE_1=a@makola.example")
		if err := c.Run(); err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
		}
		return strings.TrimSpace(stdout.String()), stderr.String()
	}
	run("", "git", "init", "-q", "whole")
	changelog := "# Changelog\n\n## Unreleased\n\n## 1.2.9, 7 December 2026\n\n## 1.2.8\n"
	if err := os.WriteFile(filepath.Join(folder, "whole", "CHANGELOG.md"), []byte(changelog), 0o600); err != nil {
		t.Fatal(err)
	}
	run("whole", "git", "add", ".")
	run("whole", "git", "commit", "-q", "-m", "a release")
	run("whole", "git", "tag", "v1.2.9")
	run("whole", "git", "commit", "-q", "--allow-empty", "-m", "a change")
	run("", "git", "clone", "-q", "--depth", "1", "--no-tags", "file://"+filepath.Join(folder, "whole"), "shallow")
	run("", "git", "clone", "-q", "--no-tags", "whole", "untagged")
	if err := os.CopyFS(filepath.Join(folder, "archive"), os.DirFS(filepath.Join(folder, "whole"))); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(folder, "archive", ".git")); err != nil {
		t.Fatal(err)
	}
	commit := `1\.2\.10~git20261207\.[0-9a-f]{7}`
	for in, want := range map[string]struct{ version, said string }{
		"whole": {commit, ""}, "shallow": {commit, "shallow"}, "untagged": {commit, "v1.2.9"}, "archive": {`1\.2\.10~dev`, "no commit"},
	} {
		version, said := run(in, script)
		if !regexp.MustCompile("^"+want.version+"$").MatchString(version) || !strings.Contains(said, want.said) || (said == "") != (want.said == "") {
			t.Errorf("in %s the version is %s and it says %q, want %s and %q", in, version, said, want.version, want.said)
		}
	}
}
