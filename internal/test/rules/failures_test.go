package rules

import (
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The gate prints the failures of a long output in its last lines. The sample has one failure of each kind that go test prints.
func TestFailures_nameFileAndLine(t *testing.T) {
	folder := filepath.Join(root, "scripts")
	report := func(input string) []string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "awk", "-v", "root=/src/makola", "-f", filepath.Join(folder, "failures.awk"))
		c.Stdin = strings.NewReader(input)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	sample := read(t, "internal/test/rules/testdata/failures.txt")
	want := []string{
		"internal/builds/a_test.go:6:2: undefined: undefinedName",
		"internal/fails TestPlain a_test.go:13: one is 1, want 2",
		"internal/fails TestPlain a_test.go:15: third",
		"internal/fails TestNested/SQLite a_test.go:22: helper said no",
		"internal/fails TestNested/PostgreSQL a_test.go:22: helper said no",
		"internal/panics/a_test.go:7: panic: assignment to entry in nil map [recovered, repanicked]",
		"data race: internal/races/a_test.go:15 and internal/races/a_test.go:15",
		"internal/races TestRace testing.go:1712: race detected during execution of test",
		"internal/waits/a_test.go:6: panic: test timed out after 3s TestWaits TestWaits/inner",
	}
	if got := report(sample); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the failures of the sample are\n%s", strings.Join(got, "\n"))
	}
	var many strings.Builder
	for name := 'A'; name < 'A'+30; name++ {
		many.WriteString("--- FAIL: Test" + string(name) + " (0.00s)\n    a_test.go:13: wrong\n")
	}
	many.WriteString("FAIL\nFAIL\tgithub.com/makola/makola/internal/fails\t0.045s\n")
	if got := report(many.String()); len(got) != 19 || got[18] != "and 12 more, above" {
		t.Errorf("of 30 failures it prints %d lines:\n%s", len(got), strings.Join(got, "\n"))
	}
}

// read returns the text of a file of the module.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
