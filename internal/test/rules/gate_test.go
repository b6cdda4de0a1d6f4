package rules

import (
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The gate runs its tests in two steps. The first step uses the race detector and leaves out the tests that its pattern "slow"
// names. The second step runs those tests without the race detector, in the listed packages. Every test must be in one of the
// steps.
func TestGate_runsEveryTest(t *testing.T) {
	find := finder(t, "scripts/test.sh")
	slow, timed := find(`(?m)^slow='(.*)'$`), find(`(?m)^timed='(.*)'$`)
	unraced := regexp.MustCompile(slow + "|" + timed + "|" + find(`-run "\$slow\|(\S*?)\\?\$"`))
	packages := strings.Fields(find(`-run "\$slow.*" (.*)`))
	whole := strings.Fields(find(`(?m)^alone='(.*)'$`))

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

// Packages that the race detector covers only on PostgreSQL also run on SQLite without it; no package is left out of
// both.
func TestGate_coversBothEngines(t *testing.T) {
	find := finder(t, "scripts/test.sh")
	elsewhere := slices.Concat(strings.Fields(find(`(?m)^both='(.*)'$`)), strings.Fields(find(`(?m)^alone='(.*)'$`)), []string{"./internal/app"}) // $engines
	for _, step := range []struct{ name, left string }{
		{"others", find(`(?m)others=\$\(go list \./\.\.\. \| grep -v (.*)\)$`)},
		{"onSQLite", find(`(?s)onSQLite=.*?grep -v -x (.*?)\)\n`)},
	} {
		for _, left := range regexp.MustCompile(`'\.?/(\S+?)\$?'`).FindAllStringSubmatch(step.left, -1) {
			if name := "./" + left[1]; name != "./internal/test/dbtest" && !slices.Contains(elsewhere, name) {
				t.Errorf("scripts/test.sh leaves %s out of $%s, and no other step runs it", name, step.name)
			}
		}
	}
	find(`(?s)(MAKOLA_TEST_ENGINES=PostgreSQL\n\ttests .*"\$@" -skip "\$slow\|\$timed" \$longest \$others\n.*"\$@" -skip "\$slow\|\$timed" \$both\n` +
		`.*MAKOLA_TEST_ENGINES=SQLite\n\ttests .* \$onSQLite\n\ttests .*-run "\$engines" \./internal/app\n\tunset MAKOLA_TEST_ENGINES\n\ttests .* \$alone\n)`)
}

// skips are the tests that may be skipped for another reason than go test -short.
var skips = map[string]string{
	"internal/app/regular_files_test.go":    "an old kernel has no such files",
	"internal/cli/frame/token_file_test.go": "a system may have no named pipes",
	"internal/config/config_test.go":        "a system may have no named pipes",
	"internal/sheet/limits_test.go":         "fuzzing leaves out what is no input",
	"internal/test/rules/commits_test.go":   "a shallow checkout has no history; the gate says so",
	"internal/sheet/write_test.go":          "LibreOffice is large; the gate says when it is not installed",
}

// Every test is in the gate, or make deep runs it: by its build tag, or with a complete matrix where the gate runs only a part.
func TestEveryTest_inTheGateOrDeep(t *testing.T) {
	makefile := finder(t, "Makefile")
	deep := makefile(`(?s)\ndeep: (.*?)\n\n`)
	makefile(`MAKOLA_TEST_DEEP=1 .* (\$\(LONG\)) .* -run '\$\(WHOLE\)'`)
	long, packages := regexp.MustCompile(strings.ReplaceAll(makefile(`(?m)^WHOLE := (.*)$`), "$$", "$")), strings.Fields(makefile(`(?m)^LONG +:= (.*)$`))
	cut := reaching(t, "matrix")
	if len(cut) == 0 {
		t.Error("no matrix is cut")
	}
	for test := range cut {
		if dir, name := path.Split(test); dir != "internal/test/matrix/" && !long.MatchString(name) || !slices.Contains(packages, "./"+path.Clean(dir)) {
			t.Errorf("%s is cut in the gate, and make deep does not run it whole", test)
		}
	}
	used := map[string]bool{}
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		name := s.dir + "/" + s.name
		switch tag := buildTag(s.file); tag {
		case "", "unix", "race", "!race": // TestGate_runsEveryTest
		case "mutate":
			if !strings.Contains(deep, tag) {
				t.Errorf("%s: make deep does not run what needs the tag %s", name, tag)
			}
		default:
			t.Errorf("%s: neither the gate nor make deep sets the tag %s", name, tag)
		}
		if mentions(s.file, "MAKOLA_TEST_DEEP") && s.name != "gate_test.go" {
			t.Errorf("%s: what the gate cuts is cut by the package matrix", name)
		}
		if !skipsFreely(s) {
			continue
		}
		used[name] = true
		if skips[name] == "" {
			t.Errorf("%s: a test leaves itself out, so no step may run it; name the reason in skips", name)
		}
	}
	for name := range skips {
		if !used[name] {
			t.Errorf("%s leaves nothing out: take it out of skips", name)
		}
	}
}

// For internal/app, the gate runs on SQLite only the tests that run on the named engine.
func TestGate_enginesOfApp(t *testing.T) {
	find := finder(t, "scripts/test.sh")
	elsewhere, engines := regexp.MustCompile(find(`(?m)^slow='(.*)'$`)+"|"+find(`(?m)^timed='(.*)'$`)+"|"+find(`-run "\$slow\|(\S*?)\\?\$"`)), find(`(?m)^engines='(.*)'$`)
	named := regexp.MustCompile(engines)
	reach := reaching(t, "dbtest.Engines")
	for test := range reach {
		if dir, name := path.Split(test); dir == "internal/app/" && !named.MatchString(name) && !elsewhere.MatchString(name) {
			t.Errorf("%s runs on the engine that is named, and scripts/test.sh does not name it", test)
		}
	}
	for name := range strings.SplitSeq(strings.Trim(engines, "^()$"), "|") {
		if !reach["internal/app/"+name] {
			t.Errorf("scripts/test.sh names %s, which is no test that runs on the engine that is named", name)
		}
	}
}

// reaching returns the tests, with their folders, that call a function of a package directly or indirectly. It recognises calls
// by name: of a function of the same package, or of a method.
func reaching(t *testing.T, called string) map[string]bool {
	t.Helper()
	callers, reached, tests, queue := map[string][]string{}, map[string]bool{}, map[string]bool{}, []string{}
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		in := s.file.Name.Name + " " + s.dir + "/"
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := in + f.Name.Name
			if f.Recv != nil {
				name = in + "." + f.Name.Name
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch fun := call.Fun.(type) {
				case *ast.Ident:
					callers[in+fun.Name] = append(callers[in+fun.Name], name)
				case *ast.SelectorExpr:
					if from, ok := fun.X.(*ast.Ident); ok && (from.Name == called || from.Name+"."+fun.Sel.Name == called) {
						queue = append(queue, name)
					}
					callers[in+"."+fun.Sel.Name] = append(callers[in+"."+fun.Sel.Name], name)
				}
				return true
			})
		}
	}
	for len(queue) > 0 {
		name := queue[0]
		if queue = queue[1:]; reached[name] {
			continue
		}
		reached[name] = true
		if strings.HasPrefix(path.Base(name), "Test") {
			_, test, _ := strings.Cut(name, " ")
			tests[test] = true
		}
		queue = append(queue, callers[name]...)
	}
	return tests
}

// finder returns a function that finds the first group of a pattern in a file.
func finder(t *testing.T, name string) func(pattern string) string {
	text := read(t, name)
	return func(pattern string) string {
		t.Helper()
		found := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("%s has nothing like %s", name, pattern)
		}
		return found[1]
	}
}

// buildTag returns the build condition of a file. It is empty if the file has none.
func buildTag(file *ast.File) string {
	for _, group := range file.Comments {
		for _, line := range group.List {
			if tag, ok := strings.CutPrefix(line.Text, "//go:build "); ok && line.Pos() < file.Package {
				return tag
			}
		}
	}
	return ""
}

// mentions reports whether a file has a string literal with this text.
func mentions(file *ast.File, text string) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		found = found || ok && strings.Contains(literal.Value, text)
		return !found
	})
	return found
}

// skipsFreely reports whether a file skips a test other than under go test -short.
func skipsFreely(s source) (found bool) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		if i, ok := n.(*ast.IfStmt); ok {
			if condition := text(s, i.Cond); strings.Contains(condition, "testing.Short()") || strings.Contains(condition, "dbtest.Engines()") {
				return false
			}
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if method, ok := call.Fun.(*ast.SelectorExpr); ok {
			receiver, named := method.X.(*ast.Ident)
			found = found || named && (receiver.Name == "t" || receiver.Name == "b" || receiver.Name == "f") && (method.Sel.Name == "Skip" || method.Sel.Name == "Skipf" || method.Sel.Name == "SkipNow")
		}
		return true
	})
	return found
}

// The names of tests that make quick leaves out exist.
func TestQuick_leavesOutTests(t *testing.T) {
	all := map[string]bool{}
	for _, s := range sources(t) {
		for _, name := range testsOf(s.file) {
			all[name] = true
		}
	}
	for name := range strings.SplitSeq(finder(t, "scripts/test.sh")(`(?m)^waiting='\^\((.*)\)\$'$`), "|") {
		if !all[name] {
			t.Errorf("scripts/test.sh names %s, which is no test", name)
		}
	}
}

// testsOf returns the names of a file's tests.
func testsOf(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

// notRaced reports whether builds with the race detector exclude a file.
func notRaced(file *ast.File) bool { return buildTag(file) == "!race" }
