package rules

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// testName is the form of a test's name: its subject and the condition.
var testName = regexp.MustCompile(`^Test[A-Z][A-Za-z0-9]*_[a-z0-9][A-Za-z0-9]*$`)

// mostLetters is the length of the longest name of a test.
const mostLetters = 45

// tables are tests that run a table of named cases.
var tables = map[string]bool{"TestMain": true, "TestMutants": true, "TestScenarios": true}

// The name of a test consists of its subject and the condition, in at most 45 characters.
func TestNames_subjectAndCondition(t *testing.T) {
	seen := 0
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		for _, d := range s.file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || tables[f.Name.Name] {
				continue
			}
			if seen++; !testName.MatchString(f.Name.Name) || len(f.Name.Name) > mostLetters {
				t.Errorf("%s/%s: %s is not of the form TestSubject_condition with at most %d characters", s.dir, s.name, f.Name.Name, mostLetters)
			}
		}
	}
	if seen < 1_000 {
		t.Errorf("only %d tests were found", seen)
	}
}
