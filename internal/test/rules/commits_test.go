package rules

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// subject is the form of a commit's first line: the changed packages, and the change as an imperative.
var subject = regexp.MustCompile(`^[a-z0-9_/., -]+: [a-z]\S* \S`)

// The subjects of commits after the one in testdata/commits-since have the form that CONTRIBUTING requires.
func TestCommits_subjects(t *testing.T) {
	base, err := os.ReadFile(filepath.Join("testdata", "commits-since"))
	if err != nil {
		t.Fatal(err)
	}
	since := strings.TrimSpace(string(base))
	git := func(arguments ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "git", arguments...).Output()
		return strings.TrimSpace(string(out)), err
	}
	if _, err := git("merge-base", "--is-ancestor", since, "HEAD"); err != nil {
		t.Skipf("NOTICE: subjects of commits were not checked, because this checkout has no history back to %.12s", since)
	}
	log, err := git("log", "--no-merges", "--format=%h %s", since+"..HEAD")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(log) {
		hash, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !subject.MatchString(text) || utf8.RuneCountInString(text) > 60 || strings.HasSuffix(text, ".") {
			t.Errorf("commit %s: %q is not of the form \"package: imperative\" with at most 60 characters and no full stop", hash, text)
		}
	}
}
