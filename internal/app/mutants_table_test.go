package app

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mutant breaks one money rule: the text from, which occurs once in file, becomes to. Then the judge must fail. Scenarios judge
// what customers see, and tests of a domain what only the domain sees. If a rule is enforced in two places, the mutant breaks one
// of them, and the judge tests that one.
type mutant struct {
	name string
	rule string
	file string // under the root of the repository
	from string
	to   string
	judge
}

// A judge is a test that must fail.
type judge struct {
	pkg string // under the root of the repository
	run string // as for go test -run; each part between slashes is one level of subtests
}

// byScenario returns the judge that runs the scenario of a file whose title begins with a text.
func byScenario(file, title string) judge {
	return judge{"internal/app", "^TestScenarios$/^SQLite$/^" + file + "$/^" + title}
}

// byTest returns the judge that runs a test of a package.
func byTest(pkg, run string) judge {
	name, rest, _ := strings.Cut(run, "/")
	if rest != "" {
		rest = "/" + rest
	}
	return judge{"internal/" + pkg, "^" + name + "$" + rest}
}

// root is the root of the repository, relative to this package.
const root = "../.."

// broken returns the text of a mutant's file as it is when the rule is broken.
func (m mutant) broken(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.from); n != 1 {
		t.Fatalf("%s: the text to break is in %s %d times, not once:\n%s", m.name, m.file, n, m.from)
	}
	return strings.Replace(string(text), m.from, m.to, 1)
}

// TestMutants_fitTheTree checks the table between two runs of `make mutate`: each text to replace exists, the replaced file is
// valid Go, and each test that must fail exists.
func TestMutants_fitTheTree(t *testing.T) {
	all := mutants()
	if len(all) < 25 {
		t.Errorf("only %d rules are broken", len(all))
	}
	seen := map[string]bool{}
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			if seen[m.name] || !regexp.MustCompile(`^[a-z0-9-]+$`).MatchString(m.name) || m.rule == "" || m.from == m.to {
				t.Errorf("a name that is taken or no name, no rule, or nothing broken: %+v", m)
			}
			seen[m.name] = true
			broken := m.broken(t)
			if strings.HasSuffix(m.file, ".go") {
				if _, err := parser.ParseFile(token.NewFileSet(), m.file, broken, parser.SkipObjectResolution); err != nil {
					t.Errorf("what is broken is no Go: %v", err)
				}
			}
			m.judge.exists(t)
		})
	}
}

// exists fails unless the test and the scenario of a judge exist.
func (j judge) exists(t *testing.T) {
	t.Helper()
	parts := strings.Split(j.run, "/")
	name := strings.Trim(parts[0], "^$")
	files, err := filepath.Glob(filepath.Join(root, j.pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found = found || strings.Contains(string(text), "\nfunc "+name+"(t *testing.T) {")
	}
	if !found {
		t.Errorf("%s has no test %s", j.pkg, name)
	}
	if name == "TestScenarios" {
		text, err := os.ReadFile("testdata/scenarios/" + strings.Trim(parts[2], "^$") + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if title := strings.TrimPrefix(parts[3], "^"); strings.Count(string(text), "\n== "+title) != 1 {
			t.Errorf("%s has no scenario, or several, whose title begins with %q", parts[2], title)
		}
	}
}

// mutants returns the table.
func mutants() []mutant {
	var all []mutant
	for _, part := range [][]mutant{holdRules(), outcomeRules(), recoveryRules(), settleRules(), productRules(), gateRules(), webhookRules(), creditRules(), closingRules(), peopleRules(), reconcileRules(), batchRules(), refundRules()} {
		all = append(all, part...)
	}
	return all
}
