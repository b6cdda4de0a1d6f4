package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/ledger"
)

// The README contains the two commands of a first start.
func TestReadme_namesTheTwoCommands(t *testing.T) {
	text := read(t, "README.md")
	for _, command := range []string{"go run ./cmd/makola serve", "make test"} {
		if !strings.Contains(text, "\n"+command+"\n") {
			t.Errorf("README.md does not show %q on a line of its own", command)
		}
	}
	if n := strings.Count(text, "\n"); n > 60 {
		t.Errorf("README.md has %d lines: it is one screen", n)
	}
}

var (
	fence     = regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```")
	span      = regexp.MustCompile("`([^`\n]+)`")
	link      = regexp.MustCompile(`\[([^\]\n]*)\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	pathLike  = regexp.MustCompile(`^(internal|cmd|docs|openapi|scripts)/[A-Za-z0-9_./*-]+$|^[A-Z]+\.md$|^(go\.mod|Makefile)$`)
	testName  = regexp.MustCompile(`\b(Test|Benchmark|Fuzz)[A-Z][A-Za-z]+\b`)
	metric    = regexp.MustCompile(`\bmakola_[a-z_]+\b`)
	setting   = regexp.MustCompile(`\bMAKOLA_[A-Z_]+\b`)
	target    = regexp.MustCompile("`make ([a-z-]+)|(?m:^make ([a-z-]+))")
	withLabel = regexp.MustCompile("^`([A-Za-z.]+)`$")
)

// slug returns the name of a heading in a link.
func slug(heading string) string {
	kept := strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-':
			return '-'
		case r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
			return r
		}
		return -1
	}, strings.ToLower(heading))
	return kept
}

func exists(name string) bool {
	found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(name)))
	return err == nil && len(found) > 0
}

// Every relative link has a target, and its heading exists. A link with code as its text and a Go file as its target
// names a declaration there.
func TestLinks_haveTargets(t *testing.T) {
	for _, name := range documents(t) {
		if strings.HasPrefix(name, "internal/guides/") {
			continue // a link of a guide is a path of the server, which the test of the guides follows
		}
		for _, m := range link.FindAllStringSubmatch(read(t, name), -1) {
			to, anchor, _ := strings.Cut(m[2], "#")
			if strings.Contains(to, "://") {
				t.Errorf("%s: %s: the documents link to nothing outside", name, m[0])
				continue
			}
			file := name
			if to != "" {
				file = path.Join(path.Dir(name), to)
			}
			if !exists(file) {
				t.Errorf("%s: %s leads to nothing", name, m[0])
				continue
			}
			if anchor != "" && !slices.ContainsFunc(heading.FindAllStringSubmatch(read(t, file), -1), func(h []string) bool { return slug(h[1]) == anchor }) {
				t.Errorf("%s: %s: %s has no such heading", name, m[0], file)
			}
			if label := withLabel.FindStringSubmatch(m[1]); label != nil && strings.HasSuffix(file, ".go") && !declares(t, file, label[1]) {
				t.Errorf("%s: %s does not declare %s", name, file, label[1])
			}
		}
	}
}

// declares reports whether a file declares a name; Type.Method names a method.
func declares(t *testing.T, name, what string) bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	receiver, method, isMethod := strings.Cut(what, ".")
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil && isMethod && d.Name.Name == method && receiverOf(d) == receiver || !isMethod && d.Name.Name == what {
				return true
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.Name == what {
						return true
					}
				case *ast.ValueSpec:
					if slices.ContainsFunc(s.Names, func(i *ast.Ident) bool { return i.Name == what }) {
						return true
					}
				}
			}
		}
	}
	return false
}

func receiverOf(d *ast.FuncDecl) string {
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// Every file that a document names exists.
func TestNames_filesExist(t *testing.T) {
	for _, name := range documents(t) {
		text := fence.ReplaceAllString(read(t, name), "")
		for _, m := range span.FindAllStringSubmatch(text, -1) {
			if pathLike.MatchString(m[1]) && !exists(m[1]) && !exists(path.Join(path.Dir(name), m[1])) {
				t.Errorf("%s names %s, which is not there", name, m[1])
			}
		}
	}
}

// sources reads all files of the tree that are not documents.
func sources(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && p != root || d.Name() == "makola-data" || d.Name() == "bin") {
			return fs.SkipDir
		}
		if ext := filepath.Ext(p); d.IsDir() || ext != ".go" && ext != ".sh" && d.Name() != "Makefile" {
			return nil
		}
		text, err := os.ReadFile(p)
		texts[p] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// Every test that a document names exists.
func TestNames_testsExist(t *testing.T) {
	all := sources(t)
	for _, name := range documents(t) {
		for _, test := range testName.FindAllString(read(t, name), -1) {
			there := false
			for file, text := range all {
				there = there || strings.HasSuffix(file, "_test.go") && strings.Contains(text, "\nfunc "+test+"(")
			}
			if !there {
				t.Errorf("%s names %s, which is no test", name, test)
			}
		}
	}
}

// Every command line in a document is valid, and so is every code that begins with the program's name.
func TestNames_commandsExist(t *testing.T) {
	m := model(t)
	for _, name := range documents(t) {
		text := read(t, name)
		var lines []string
		for _, block := range fence.FindAllStringSubmatch(text, -1) {
			lines = append(lines, strings.Split(block[1], "\n")...)
		}
		for _, s := range span.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			lines = append(lines, s[1])
		}
		for _, line := range lines {
			line, _, _ = strings.Cut(line, " #")
			line = strings.TrimPrefix(line, "go run ./cmd/")
			if !strings.HasPrefix(line, "makola ") {
				continue
			}
			node := m.Node
			words := strings.Fields(line)[1:]
			for len(words) > 0 && len(node.Children) > 0 && !strings.HasPrefix(words[0], "-") {
				var child = node
				for _, c := range node.Children {
					if c.Name == words[0] || slices.Contains(c.Aliases, words[0]) {
						child = c
					}
				}
				if child == node {
					t.Errorf("%s: %q: there is no command %s", name, line, words[0])
					break
				}
				node, words = child, words[1:]
			}
			for _, word := range words {
				flag, long := strings.CutPrefix(word, "--")
				flag, _, _ = strings.Cut(strings.TrimSuffix(flag, ","), "=")
				if !long || flag == "help" {
					continue
				}
				known := false
				for n := node; n != nil; n = n.Parent {
					for _, f := range n.Flags {
						known = known || f.Name == flag
					}
				}
				if !known {
					t.Errorf("%s: %q: %s has no flag --%s", name, line, node.FullPath(), flag)
				}
			}
		}
	}
}

// namedLine matches a log line that a document quotes.
var namedLine = regexp.MustCompile(`log (?:for|says|line)\s+"([^"]+)"`)

func TestNamedLogLines_exist(t *testing.T) {
	all, found := sources(t), 0
	for _, name := range documents(t) {
		for _, m := range namedLine.FindAllStringSubmatch(read(t, name), -1) {
			line := strings.Join(strings.Fields(m[1]), " ")
			there := false
			for file, text := range all {
				there = there || !strings.HasSuffix(file, "_test.go") && strings.Contains(text, `"`+line)
			}
			if found++; !there {
				t.Errorf("%s names the log line %q, which no code writes", name, line)
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d log lines were found", found)
	}
}

// Every metric that a document names exists.
func TestNames_metricsExist(t *testing.T) {
	known := measured(t)
	for _, name := range documents(t) {
		for _, m := range metric.FindAllString(read(t, name), -1) {
			if _, ok := known[m]; !ok {
				t.Errorf("%s names the metric %s, which is not measured", name, m)
			}
		}
	}
}

// Every setting that a document names exists.
func TestNames_settingsExist(t *testing.T) {
	known := map[string]bool{config.EnvMasterKey: true, config.EnvMasterKeyFile: true, config.EnvReferenceKey: true, config.EnvReferenceKeyFile: true, config.EnvToken: true}
	for _, leaf := range model(t).Leaves(false) {
		for _, f := range leaf.Flags {
			for _, e := range f.Envs {
				known[e] = true
			}
		}
	}
	for _, text := range sources(t) {
		for _, s := range setting.FindAllString(text, -1) {
			known[s] = known[s] || strings.HasPrefix(s, "MAKOLA_TEST_")
		}
	}
	for _, name := range documents(t) {
		for _, s := range setting.FindAllString(read(t, name), -1) {
			if !known[s] {
				t.Errorf("%s names the setting %s, which is not read", name, s)
			}
		}
	}
}

// Every make target that a document names exists.
func TestNames_makeTargetsExist(t *testing.T) {
	makefile := read(t, "Makefile")
	for _, name := range documents(t) {
		for _, m := range target.FindAllStringSubmatch(read(t, name), -1) {
			if wanted := m[1] + m[2]; !strings.Contains(makefile, "\n"+wanted+": ") {
				t.Errorf("%s names make %s, which the Makefile does not have", name, wanted)
			}
		}
	}
}

var requirement = regexp.MustCompile(`(?m)^\t(\S+) (v\S+)$`)

// The table in decisions.md has exactly the direct dependencies of go.mod, with their versions.
func TestDependencies_areExplained(t *testing.T) {
	text := read(t, "docs/decisions.md")
	mod := read(t, "go.mod")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (v\\S+) \\| \\S.* \\|$").FindAllStringSubmatch(text, -1)
	explained := map[string]string{}
	for _, r := range rows {
		explained[r[1]] = r[2]
	}
	direct := requirement.FindAllStringSubmatch(mod, -1)
	if len(direct) == 0 {
		t.Fatal("go.mod requires nothing")
	}
	all := sources(t)
	for _, d := range direct {
		used := false
		for _, source := range all {
			used = used || strings.Contains(source, "\""+d[1])
		}
		if !used { // go mod tidy reports an unused dependency
			continue
		}
		if explained[d[1]] != d[2] {
			t.Errorf("docs/decisions.md explains %s %q, go.mod has %s", d[1], explained[d[1]], d[2])
		}
		delete(explained, d[1])
	}
	for module, version := range explained {
		t.Errorf("docs/decisions.md explains %s %s, which go.mod does not require", module, version)
	}
}

// The chart of accounts has the names of the ledger's accounts.
func TestChart_hasEveryAccount(t *testing.T) {
	text := read(t, "docs/ledger.md")
	for _, id := range []ledger.AccountID{
		ledger.Wallet("<tenant>"), ledger.Credits("<tenant>"), ledger.Receivable("<tenant>"),
		ledger.FloatAt("<provider>", "<account>"), ledger.Float("<provider>"), ledger.ProviderFees("<provider>"), ledger.Commission("<provider>"),
		ledger.Clearing, ledger.Fees, ledger.Suspense, ledger.Funding, ledger.Used,
	} {
		if !strings.Contains(text, "| `"+string(id)+"` |") {
			t.Errorf("the chart of docs/ledger.md lacks %s", id)
		}
	}
	for _, a := range []ledger.Asset{ledger.GHS, ledger.TestGHS, ledger.SMS, ledger.TestSMS} {
		if !strings.Contains(text, "`"+string(a)+"`") {
			t.Errorf("docs/ledger.md does not name the asset %s", a)
		}
	}
}
