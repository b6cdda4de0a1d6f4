package rules

import (
	"go/ast"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The gate runs its tests in two steps: with the race detector but for those that its pattern "slow" names, and those without it in
// the packages that it lists. A test that the second step does not know is in neither.
func TestTheGateRunsEveryTest(t *testing.T) {
	script, err := fs.ReadFile(tree, "scripts/test.sh")
	if err != nil {
		t.Fatal(err)
	}
	find := func(pattern string) string {
		t.Helper()
		found := regexp.MustCompile(pattern).FindSubmatch(script)
		if found == nil {
			t.Fatalf("scripts/test.sh has nothing like %s", pattern)
		}
		return string(found[1])
	}
	slow, timed := find(`(?m)^slow='(.*)'$`), find(`(?m)^timed='(.*)'$`)
	unraced := regexp.MustCompile(slow + "|" + timed + "|" + find(`-run "\$slow\|(\S*?)\\?\$"`))
	packages := strings.Fields(find(`-run "\$slow.*" (.*)`))
	whole := strings.Fields(find(`go test -count=1 -timeout 40m (\S.*) >`))

	named := map[string]bool{}
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		for _, name := range testsOf(s.file) {
			in := func(list []string) bool {
				return slices.ContainsFunc(list, func(p string) bool {
					below, all := strings.CutSuffix(p, "/...")
					return p == "./"+s.dir || all && strings.HasPrefix("./"+s.dir+"/", below+"/")
				})
			}
			switch runs := unraced.MatchString(name); {
			case notRaced(s.file) && !runs:
				t.Errorf("%s/%s: %s is built without the race detector alone, and the second step does not run it", s.dir, s.name, name)
			case runs && !in(packages) && !in(whole):
				t.Errorf("%s/%s: %s is left out of the first step, and the second does not run its package", s.dir, s.name, name)
			case runs:
				named[name] = true
			}
		}
	}
	for one := range strings.SplitSeq(strings.Trim(slow, "^()$"), "|") {
		pattern := regexp.MustCompile("^" + one + "$")
		if !slices.ContainsFunc(slices.Collect(maps.Keys(named)), pattern.MatchString) {
			t.Errorf("scripts/test.sh names %s, which is no test", one)
		}
	}
}

// testsOf gives the names of a file's tests.
func testsOf(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

// notRaced says whether a file is left out of builds with the race detector.
func notRaced(file *ast.File) bool {
	return slices.ContainsFunc(file.Comments, func(c *ast.CommentGroup) bool {
		return slices.ContainsFunc(c.List, func(line *ast.Comment) bool { return line.Text == "//go:build !race" })
	})
}
