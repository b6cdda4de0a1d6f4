package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Rules for names and comments that a program can check. The test of each rule shows that it fails on a sample.

// misplaced returns the doc comments of a package that begin with the name of another declaration, or with their own
// in another case. The declaration was moved, renamed or split, and its comment stayed.
func misplaced(files []source) (wrong []string) {
	declared := map[string]bool{}
	for _, s := range files {
		for _, d := range s.file.Decls {
			for _, name := range declaredBy(d) {
				declared[name] = true
			}
		}
	}
	for _, s := range files {
		if s.test {
			continue
		}
		for _, d := range s.file.Decls {
			for _, doc := range docsOf(d) {
				first, _, _ := strings.Cut(doc.text, " ")
				first = strings.TrimRight(strings.TrimSuffix(first, "'s"), ",.:")
				same := func(name string) bool { return strings.EqualFold(name, first) }
				if mixedCase(first) && slices.ContainsFunc(doc.names, same) && !slices.Contains(doc.names, first) {
					wrong = append(wrong, s.dir+"/"+s.name+": the comment over "+doc.names[0]+" spells it "+first)
				}
				if mixedCase(first) && declared[first] && !slices.Contains(doc.names, first) {
					wrong = append(wrong, s.dir+"/"+s.name+": the comment over "+doc.names[0]+" opens with "+first)
				}
			}
		}
	}
	return wrong
}

// mixedCase distinguishes an identifier such as atOnce or MaxRows from an ordinary word.
func mixedCase(word string) bool {
	return len(word) > 1 && strings.ContainsFunc(word[1:], func(r rune) bool { return r >= 'A' && r <= 'Z' }) && strings.ToUpper(word) != word
}

func declaredBy(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		names = append(names, d.Name.Name)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			names = append(names, specNames(spec)...)
		}
	}
	return names
}

func specNames(spec ast.Spec) (names []string) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		names = append(names, s.Name.Name)
		if t, ok := s.Type.(*ast.StructType); ok { // a comment over a struct may open with one of its members
			for _, f := range t.Fields.List {
				for _, n := range f.Names {
					names = append(names, n.Name)
				}
			}
		}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			names = append(names, n.Name)
		}
	}
	return names
}

// doc is a comment over declarations with these names.
type doc struct {
	text  string
	names []string
}

func docsOf(d ast.Decl) (docs []doc) {
	add := func(c *ast.CommentGroup, names []string) {
		if c != nil && len(names) > 0 {
			docs = append(docs, doc{c.Text(), names})
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		names := []string{d.Name.Name}
		for _, list := range []*ast.FieldList{d.Recv, d.Type.Params, d.Type.Results} {
			if list != nil {
				for _, f := range list.List {
					for _, n := range f.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
		add(d.Doc, names)
	case *ast.GenDecl:
		add(d.Doc, declaredBy(d))
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				add(s.Doc, specNames(s))
			case *ast.ValueSpec:
				add(s.Doc, specNames(s))
			}
		}
	}
	return docs
}

// A doc comment is above the declaration that it names.
func TestComment_isAboveItsDeclaration(t *testing.T) {
	sample := parsed(t, "// readRows reads.\nfunc writeRows() {}\n\n// writeRows writes.\nfunc readRows() {}\n\n// rows are many.\nvar someRows int\n\n// lateRows are late.\nvar LateRows int")
	if got := misplaced(sample); len(got) != 3 {
		t.Fatalf("of a sample with three misplaced comments the rule finds %q", got)
	}
	for _, files := range byPackage(sources(t)) {
		for _, wrong := range misplaced(files) {
			t.Error(wrong)
		}
	}
}

// noSubject opens a sentence with a relative clause where its subject should be.
var noSubject = regexp.MustCompile(`(?:^|[.:]\s+)((?:What|Who|Whoever|Whatever) [^.:]*)`)

// withoutSubject returns the sentences of comments that begin without a subject.
func withoutSubject(files []source) (wrong []string) {
	for _, s := range files {
		for _, group := range s.file.Comments {
			text := strings.Join(strings.Fields(group.Text()), " ")
			for _, found := range noSubject.FindAllStringSubmatch(text, -1) {
				wrong = append(wrong, fmt.Sprintf("%s: a sentence opens without its subject: %q", s.set.Position(group.Pos()), found[1]))
			}
		}
	}
	return wrong
}

// The sentences of comments begin with their subject.
func TestComment_sentencesHaveASubject(t *testing.T) {
	sample := parsed(t, "// one is first. What comes\n// later follows: Who asks?\nvar one int // Whatever it holds\n\n// two says what it is.\nvar two int")
	if got := withoutSubject(sample); len(got) != 3 {
		t.Fatalf("of a sample with three such sentences the rule finds %q", got)
	}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, wrong := range withoutSubject([]source{s}) {
			t.Error(wrong)
		}
	}
}

// saysLocked is a comment that has its method's caller hold a lock.
var saysLocked = regexp.MustCompile(`(?i)\b(under the lock|the lock is held|with the lock held|while \w+ is locked|mu is held)\b`)

// badlyLocked returns the violations of the rule of locks. A method whose caller must hold the lock ends in Locked
// and does not lock its own receiver. Only methods that have locked, or that end in Locked, call it.
func badlyLocked(files []source) (wrong []string) {
	for _, s := range files {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			if s.test {
				continue
			}
			locked := needsLock(f.Name.Name)
			at := s.dir + "/" + s.name + ": " + f.Name.Name
			if f.Recv != nil && !locked && saysLocked.MatchString(f.Doc.Text()) && !strings.Contains(f.Doc.Text(), "lock of ") {
				wrong = append(wrong, at+" is called under a lock and does not end in Locked")
			}
			locks, calls := lockCalls(s, f)
			if locked && locks {
				wrong = append(wrong, at+" locks, and its name says that its caller has")
			}
			if calls != "" && !locked && !locks {
				wrong = append(wrong, at+" calls "+calls+" and locks nothing")
			}
		}
	}
	return wrong
}

// needsLock distinguishes takeLocked from Locked, which reads a row and locks it in the database.
func needsLock(name string) bool { return strings.HasSuffix(name, "Locked") && name != "Locked" }

// lockCalls reports whether a function locks a mutex of its receiver or of anything, and returns the Locked method
// that it calls.
func lockCalls(s source, f *ast.FuncDecl) (locks bool, calls string) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		selector, ok := c.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch name := selector.Sel.Name; {
		case name == "Lock" || name == "RLock":
			locks = true
		case needsLock(name):
			calls = text(s, selector)
		}
		return true
	})
	return locks, calls
}

// A method that needs its caller's lock has a name that ends in Locked.
func TestLock_namesEndInLocked(t *testing.T) {
	sample := parsed(t, `// put is called under the lock.
func (q *queue) put() {}

func (q *queue) takeLocked() { q.mu.Lock() }

func (q *queue) add() { q.takeLocked() }

func (q *queue) fine() {
	q.mu.Lock()
	q.takeLocked()
}`)
	if got := badlyLocked(sample); len(got) != 3 {
		t.Fatalf("of a sample with three faults the rule finds %q", got)
	}
	for _, files := range byPackage(sources(t)) {
		for _, wrong := range badlyLocked(files) {
			t.Error(wrong)
		}
	}
}

// mappedFrom is the number of files from which on the opening prose of a package must name each file.
const mappedFrom = 8

// unmapped returns the files of a package that its opening prose does not name. A name with a star matches several.
func unmapped(files []source) (missing []string) {
	var prose string
	var names []string
	for _, s := range files {
		if s.test || s.generated {
			continue
		}
		prose += s.file.Doc.Text()
		if s.name == path.Base(s.dir)+".go" {
			continue // the file that contains the prose
		}
		names = append(names, s.name)
	}
	if len(names) < mappedFrom {
		return nil
	}
	var patterns []*regexp.Regexp
	for _, word := range regexp.MustCompile(`[a-z0-9_*]+\.go`).FindAllString(prose, -1) {
		patterns = append(patterns, regexp.MustCompile("^"+strings.ReplaceAll(regexp.QuoteMeta(word), `\*`, ".*")+"$"))
	}
	for _, name := range names {
		if !slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(name) }) {
			missing = append(missing, name)
		}
	}
	return missing
}

// The opening prose of a large package names its files.
func TestProse_namesTheFiles(t *testing.T) {
	all := byPackage(sources(t))
	if len(unmapped(slices.Concat(all["internal/sim"], []source{{dir: "internal/sim", name: "another.go", file: &ast.File{}}}))) == 0 {
		t.Fatal("a file that is not named is not found")
	}
	for dir, files := range all {
		for _, name := range unmapped(files) {
			t.Errorf("%s: the opening prose does not say what %s is for", dir, name)
		}
	}
}

func byPackage(all []source) map[string][]source {
	packages := map[string][]source{}
	for _, s := range all {
		if !s.generated {
			packages[s.dir] = append(packages[s.dir], s)
		}
	}
	return packages
}

// parsed returns a package with one file from declarations.
func parsed(t *testing.T, declarations string) []source {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "sample.go", "package sample\n\n"+declarations, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return []source{{dir: "sample", name: "sample.go", file: file, set: set}}
}
