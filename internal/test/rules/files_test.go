package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The packages whose files have no cycles. Their opening prose lists the files from the top down.
var oneWay = []string{"internal/api", "internal/batch", "internal/changes", "internal/cli/accounts", "internal/cli/frame", "internal/cli/funds",
	"internal/cli/operations", "internal/identity", "internal/jobs", "internal/messaging", "internal/messaging/delivery", "internal/messaging/otp",
	"internal/notice", "internal/payments", "internal/payments/book", "internal/reconcile", "internal/route", "internal/sample", "internal/sim", "internal/sim/hubtel",
	"internal/sim/mtn", "internal/sim/paystack", "internal/sim/smsc"}

// In every other package no cycle of files has more than mostInCycle.
const mostInCycle = 5

// fileGraph returns, for each file of a package, the other files whose declarations it uses.
func fileGraph(set *token.FileSet, files []*ast.File) map[string]map[string]bool {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	check := types.Config{Importer: empty{}, Error: func(error) {}} // declarations of other packages are unknown here and not needed
	pkg, _ := check.Check("sample", set, files, info)
	name := func(at token.Pos) string { return filepath.Base(set.Position(at).Filename) }
	graph := map[string]map[string]bool{}
	for _, f := range files {
		graph[name(f.Package)] = map[string]bool{}
	}
	for id, used := range info.Uses {
		if used.Pkg() != pkg || !used.Pos().IsValid() {
			continue
		}
		_, method := used.(*types.Func)
		if from, to := name(id.Pos()), name(used.Pos()); from != to && (method || used.Parent() == pkg.Scope()) {
			graph[from][to] = true
		}
	}
	return graph
}

// empty imports every package as one that declares nothing.
type empty struct{}

func (empty) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}

// knot returns the files that need each other. It repeatedly removes files that need none of the rest, and files that none of the
// rest needs.
func knot(graph map[string]map[string]bool) []string {
	left := maps.Clone(graph)
	for gone := true; gone; {
		gone = false
		for file := range left {
			needs := slices.ContainsFunc(slices.Collect(maps.Keys(graph[file])), func(other string) bool { return left[other] != nil })
			needed := false
			for other := range left {
				needed = needed || graph[other][file]
			}
			if !needs || !needed {
				delete(left, file)
				gone = true
			}
		}
	}
	return slices.Sorted(maps.Keys(left))
}

// cycle returns the largest set of files in which each file needs all others, directly or through the rest.
func cycle(graph map[string]map[string]bool) (largest []string) {
	reach := map[string]map[string]bool{}
	for file := range graph {
		reach[file] = map[string]bool{}
		for todo := []string{file}; len(todo) > 0; todo = todo[1:] {
			for other := range graph[todo[0]] {
				if !reach[file][other] {
					reach[file][other] = true
					todo = append(todo, other)
				}
			}
		}
	}
	for file := range graph {
		var all []string
		for other := range graph {
			if reach[file][other] && reach[other][file] {
				all = append(all, other)
			}
		}
		if len(all) > len(largest) {
			largest = all
		}
	}
	slices.Sort(largest)
	return largest
}

var fileName = regexp.MustCompile(`[a-z0-9_*]+\.go`)

// upward returns the uses that go from a lower file to a higher one in the prose. The prose lists files from the top down; files on
// one line are equal.
func upward(graph map[string]map[string]bool, prose string) (wrong []string) {
	line := map[string]int{}
	for i, text := range strings.Split(prose, "\n") {
		for _, pattern := range fileName.FindAllString(text, -1) {
			for file := range graph {
				if match, _ := filepath.Match(pattern, file); match && strings.HasPrefix(text, "\t") {
					line[file] = i
				}
			}
		}
	}
	for file, uses := range graph {
		for other := range uses {
			if line[other] < line[file] {
				wrong = append(wrong, file+" stands below "+other+", which it needs")
			}
		}
	}
	slices.Sort(wrong)
	return wrong
}

// The files of a large package use each other in one direction.
func TestFiles_needEachOtherOneWay(t *testing.T) {
	set := token.NewFileSet()
	var sample []*ast.File
	for name, code := range map[string]string{
		"a.go": "func (s *S) A() { s.B() }", "b.go": "func (s *S) B() { c() }", "c.go": "type S struct{}\n\nfunc c() { new(S).A() }", "d.go": "func d() { c() }",
	} {
		f, err := parser.ParseFile(set, name, "package sample\n\n"+code, 0)
		if err != nil {
			t.Fatal(err)
		}
		sample = append(sample, f)
	}
	if got := fmt.Sprint(knot(fileGraph(set, sample))); got != "[a.go b.go c.go]" {
		t.Fatalf("of a sample in which three files need each other the rule finds %s", got)
	}
	if wrong := upward(fileGraph(set, sample), "Files:\n\n\tc.go  the ground\n\td.go, a.go, b.go  on it\n"); len(wrong) != 3 {
		t.Fatalf("of a list in which three files stand below one that they need the rule finds %q", wrong)
	}
	packages := byPackage(sources(t))
	for _, dir := range oneWay {
		graph, prose := production(packages[dir])
		if files := knot(graph); len(files) > 0 {
			t.Errorf("%s: these files need each other: %s", dir, strings.Join(files, " "))
		}
		for _, wrong := range upward(graph, prose) {
			t.Errorf("%s: by the opening prose %s", dir, wrong)
		}
	}
}

// production returns the graph and the opening prose of a package without its tests.
func production(sources []source) (graph map[string]map[string]bool, prose string) {
	var files []*ast.File
	var set *token.FileSet
	for _, s := range sources {
		if !s.test {
			files, set, prose = append(files, s.file), s.set, prose+s.file.Doc.Text()
		}
	}
	return fileGraph(set, files), prose
}

// TestCycles_areSmall checks the largest cycle of files in every package.
func TestCycles_areSmall(t *testing.T) {
	sample := map[string]map[string]bool{"a": {"b": true}, "b": {"c": true}, "c": {"a": true, "d": true}, "d": {"e": true}, "e": {"d": true}, "f": {"a": true}}
	if got := fmt.Sprint(cycle(sample)); got != "[a b c]" {
		t.Fatalf("the largest cycle of the sample is %s", got)
	}
	for dir, files := range byPackage(sources(t)) {
		graph, _ := production(files)
		if now := cycle(graph); len(now) > mostInCycle {
			t.Errorf("%s: a cycle has %d files, at most %d may: %s", dir, len(now), mostInCycle, strings.Join(now, " "))
		}
	}
}
