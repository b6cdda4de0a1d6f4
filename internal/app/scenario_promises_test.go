package app

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promiseRow matches a row of a table in docs/interface.md: the name and the text of a promise.
var promiseRow = regexp.MustCompile("^\\| `([a-z-]+)/([a-z0-9-]+)` \\| (.+) \\|$")

// promises returns the promises of the interface by name. A name begins with the name of its section.
func promises(t *testing.T) map[string]string {
	t.Helper()
	file, err := os.ReadFile("../../docs/interface.md")
	if err != nil {
		t.Fatal(err)
	}
	all, section := map[string]string{}, ""
	for line := range strings.Lines(string(file)) {
		line = strings.TrimRight(line, "\n")
		if heading, ok := strings.CutPrefix(line, "### "); ok {
			section = heading
		} else if heading, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.ToLower(heading)
		}
		m := promiseRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := m[1] + "/" + m[2]
		if m[1] != section || all[name] != "" {
			t.Errorf("the promise %s stands twice, or in the section %s", name, section)
		}
		all[name] = m[3]
	}
	return all
}

func TestScenarios_coverEveryPromise(t *testing.T) {
	promised := promises(t)
	covered := map[string]bool{}
	titles := map[string]bool{}
	for _, name := range scenarioFiles(t) {
		for _, s := range readScenarios(t, name) {
			if len(s.covers) == 0 || len(s.steps) == 0 {
				t.Errorf("%s, line %d: %q covers nothing", name, s.line, s.title)
			}
			if titles[name+s.title] {
				t.Errorf("%s, line %d: %q is there twice", name, s.line, s.title)
			}
			titles[name+s.title] = true
			for _, row := range s.covers {
				if promised[row] == "" {
					t.Errorf("%s, line %d: docs/interface.md promises no %q", name, s.line, row)
				}
				covered[row] = true
			}
		}
	}
	var missing []string
	for row, promise := range promised {
		if !covered[row] {
			missing = append(missing, row+": "+promise)
		}
	}
	slices.Sort(missing)
	for _, row := range missing {
		t.Errorf("no scenario covers %s", row)
	}
}
