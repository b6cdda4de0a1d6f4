// Package rules holds the rules of the source tree as tests, so that ARCHITECTURE.md describes the layout that the
// compiler sees. The tests read the whole module with go/ast. They fail on an import in the wrong direction, a table
// with a second writer, a function or file over its budget, an interface that is too wide, or a package without
// opening prose.
package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/makola/makola"

// root is the module's root, relative to this package.
const root = "../../.."

// tree is the module. Every path in these tests is relative to its root and has slashes.
var tree = os.DirFS(root)

// The budgets of the codebase.
const (
	maxStatements = 70
	maxFileLines  = 700
	maxMethods    = 6
)

// leaves may be imported by every package. cache, config and groupcommit may import the other leaves.
var leaves = []string{"cache", "clock", "config", "groupcommit", "money", "msisdn", "outbound", "problem", "smstext", "trace", "usertext"}

// mayImport lists the packages that each package under internal may import in addition to the leaves. A package that
// is not listed may import nothing. "*" is every package.
var mayImport = map[string][]string{
	"cli":               {"*"},
	"books":             {"batch", "db", "history", "ledger", "messaging/delivery", "payments/book", "treasury"},
	"batch":             {"access", "db", "idempotency", "jobs", "jobs/lease", "ledger", "lookup", "payments", "payments/book", "provider", "recovery", "route", "sheet", "tenant", "treasury", "webhook"},
	"cli/accounts":      {"inbox", "access", "audit", "changes", "cli/frame", "contacts", "db", "identity", "installation", "messaging", "messaging/otp", "payments", "payments/book", "privacy", "roles", "senderid", "sheet", "tenant", "webhook"},
	"cli/frame":         {"inbox", "closing", "access", "app", "audit", "batch", "changes", "contacts", "db", "idempotency", "identity", "installation", "jobs", "ledger", "lookup", "messaging", "notice", "payments", "payments/book", "reconcile", "recovery", "roles", "route", "senderid", "sheet", "tenant", "timekeeping", "treasury", "webhook"},
	"cli/funds":         {"closing", "audit", "batch", "books", "changes", "cli/frame", "db", "identity", "ledger", "messaging", "payments", "payments/book", "provider", "reconcile", "roles", "route", "sheet", "statement", "tenant", "treasury", "webhook", "app", "checkup"},
	"cli/operations":    {"app", "audit", "backup", "batch", "changes", "compose", "cli/frame", "db", "figures", "installation", "jobs", "jobs/lease", "recovery", "relocation", "sample", "statement", "timekeeping"},
	"sample":            {"access", "app", "audit", "db", "idempotency", "jobs", "ledger", "messaging", "payments", "reconcile", "route", "senderid", "sheet", "tenant", "treasury", "webhook"},
	"app":               {"*"},
	"api":               {"access", "api/wire", "batch", "changes", "contacts", "lookup", "guides", "idempotency", "jobs", "ledger", "messaging", "messaging/otp", "payments", "payments/book", "provider", "ratelimit", "recovery", "requestlog", "route", "senderid", "statement", "tenant", "webhook"},
	"api/wire":          {},
	"console":           {"access", "api", "audit", "identity", "notice", "page", "roles", "sheet", "tenant"},
	"console/approvals": {"changes", "console", "console/words", "identity", "ledger", "page", "roles", "tenant"},
	"console/handsets":  {"console", "console/words", "idempotency", "identity", "ledger", "page", "payments", "payments/book", "roles", "tenant", "webhook"},
	"console/compose":   {"changes", "compose", "console", "console/approvals", "console/records", "contacts", "ledger", "messaging", "page", "roles", "senderid", "sheet"},
	"console/batches":   {"audit", "batch", "changes", "console", "console/approvals", "page", "payments", "payments/book", "roles", "sheet"},
	"figures":           {"db", "payments/book", "provider"},
	"console/ops":       {"access", "audit", "changes", "console", "console/approvals", "console/records", "console/settings", "console/words", "figures", "identity", "jobs", "ledger", "messaging", "notice", "page", "payments", "payments/book", "provider", "reconcile", "roles", "route", "senderid", "sheet", "statement", "tenant", "treasury", "checkup"},
	"console/records":   {"contacts", "inbox", "api", "audit", "changes", "console", "console/approvals", "console/words", "figures", "guides", "identity", "ledger", "messaging", "notice", "page", "payments", "payments/book", "provider", "requestlog", "roles", "route", "sheet", "statement", "tenant", "webhook"},
	"compose":           {"contacts", "db", "messaging", "senderid", "sheet", "tenant"},
	"checkup":           {"db", "messaging", "payments/book", "provider", "route", "textroute"},
	"console/settings":  {"access", "changes", "console", "console/approvals", "console/words", "identity", "page", "requestlog", "roles", "tenant", "webhook"},
	"console/tenant":    {"changes", "console", "console/approvals", "console/records", "console/settings", "console/words", "figures", "identity", "ledger", "page", "payments", "payments/book", "ratelimit", "roles", "route", "senderid", "tenant", "webhook"},
	"console/words":     {"ledger", "messaging", "page", "payments/book", "provider", "tenant", "webhook"},
	"page":              {},
	"identity":          {"audit", "db", "roles", "sealed"},
	"payments":          {"db", "lookup", "idempotency", "jobs", "ledger", "payments/book", "provider", "recovery", "route", "tenant", "treasury", "webhook"},
	"payments/book":     {"db", "history", "idempotency", "jobs", "jobs/lease", "ledger", "provider", "recovery", "tenant", "webhook"},
	"statement":         {"db", "ledger", "payments/book", "sheet", "tenant"},
	"treasury":          {"db", "ledger", "tenant"},
	"closing":           {"db", "ledger", "reconcile", "sheet", "tenant", "treasury"},
	"messaging":         {"contacts", "db", "idempotency", "jobs", "ledger", "messaging/delivery", "messaging/otp", "provider", "recovery", "senderid", "tenant"},
	"messaging/otp":     {"db", "idempotency", "ledger", "tenant"},
	"lookup":            {"db", "provider", "route", "tenant"},
	"tenant":            {"db", "ledger"},
	"notice":            {"audit", "db", "identity", "jobs", "roles", "sealed", "tenant", "webhook"},
	"timekeeping":       {"db"},
	"access":            {"db", "ratelimit"},
	"changes":           {"inbox", "compose", "access", "audit", "batch", "closing", "db", "identity", "idempotency", "jobs", "ledger", "lookup", "messaging", "messaging/otp", "payments", "payments/book", "reconcile", "roles", "route", "sealed", "senderid", "tenant", "treasury", "webhook"},
	"ratelimit":         {"db"},
	"installation":      {"db"},
	"audit":             {"db"},
	"roles":             {},
	"route":             {"db", "provider"},
	"webhook":           {"db", "jobs", "sealed"},
	"ledger":            {"db"},
	"backup":            {"db", "db/postgres", "jobs/lease", "ledger"},
	"reconcile":         {"db", "jobs", "ledger", "payments", "payments/book", "provider", "sheet", "tenant"},
	"recovery":          {"db", "sheet"},
	"relocation":        {"audit", "db", "installation", "jobs/lease"},
	"privacy":           {"inbox", "compose", "batch", "changes", "contacts", "db", "messaging", "payments/book", "reconcile", "route", "webhook"},
	"requestlog":        {"db"},
	"sealed":            {"db"},
	"contacts":          {"db", "idempotency", "sheet", "tenant"},
	"inbox":             {"contacts", "db", "jobs", "messaging", "provider", "tenant", "webhook"},
	"senderid":          {"db", "idempotency", "tenant"},
	"history":           {"db"},
	"idempotency":       {"db"},
	"jobs":              {"db", "jobs/lease", "jobs/scheduler"},
	"jobs/lease":        {"db"},
	"jobs/scheduler":    {},
	"guides":            {"page"},
	"provider":          {},
	"provider/moolre":   {"provider"},
	"provider/mtnmomo":  {"provider"},
	"provider/hubtel":   {"provider"},
	"provider/pawapay":  {"provider"},
	"provider/paystack": {"provider"},
	"provider/smpp":     {"provider"},
	"sheet":             {},
	"sim":               {},
	"sim/hubtel":        {"sim"},
	"sim/moolre":        {"sim"},
	"sim/mtn":           {"sim"},
	"sim/pawapay":       {"sim"},
	"sim/paystack":      {"sim"},
	"sim/smsc":          {"sim"},
	"db":                {"db/engine", "db/postgres", "db/sqlite"},
	"db/engine":         {},
	"db/postgres":       {"db/engine"},
	"db/sqlite":         {"db/engine"},
	"test/dbtest":       {"db"},
	"test/identitytest": {"db", "identity", "roles"},
	"test/apitest":      {},
	"test/booktest":     {"db", "jobs", "ledger", "payments/book", "provider", "tenant", "webhook"},
	"test/browsertest":  {},
	"test/mailtest":     {},
	"test/providertest": {"provider", "sim"},
	"test/sheettest":    {},
	"test/simtest":      {"sim"},
	"test/smstest":      {"db", "jobs", "ledger", "provider", "recovery", "tenant"},

	"console/statements": {"audit", "changes", "console", "console/approvals", "page", "payments", "payments/book", "provider", "reconcile", "roles", "sheet"},
	"console/treasury":   {"closing", "changes", "console", "console/approvals", "console/words", "ledger", "page", "provider", "reconcile", "roles", "route", "tenant", "treasury"},
	"messaging/delivery": {"db", "idempotency", "jobs", "ledger", "messaging/otp", "provider", "recovery", "tenant"},

	"textroute":          {"provider"},
	"provider/arkesel":   {"provider"},
	"provider/hubtelsms": {"provider"},
	"sim/arkesel":        {"sim"},
	"sim/hubtelsms":      {"sim"},
}

// ownerLine names the package that writes the tables of a migration.
var ownerLine = regexp.MustCompile(`(?m)^-- owner: ([a-z/]+)`)

// moved maps tables to the package that writes them now, if their migration names an earlier package. A released migration does not
// change.
var moved = map[string]string{
	"installation":           "installation",
	"rate_counters":          "ratelimit",
	"act_checks":             "changes",
	"act_policy":             "changes",
	"act_policy_own":         "changes",
	"act_secrets":            "changes",
	"acts":                   "changes",
	"audit_log":              "audit",
	"answers":                "idempotency",
	"campaigns":              "messaging/delivery",
	"chunks":                 "messaging/delivery",
	"early_receipts":         "messaging/delivery",
	"messages":               "messaging/delivery",
	"parts":                  "messaging/delivery",
	"unsure":                 "messaging/delivery",
	"otp_counters":           "messaging/otp",
	"otp_taps":               "messaging/otp",
	"otps":                   "messaging/otp",
	"contact_groups":         "contacts",
	"contacts":               "contacts",
	"offers":                 "lookup",
	"job_holds":              "jobs/lease",
	"job_leases":             "jobs/lease",
	"attempts":               "payments/book",
	"key_spending":           "payments/book",
	"payment_contradictions": "payments/book",
	"payment_looks":          "payments/book",
	"payment_sweeps":         "payments/book",
	"payments":               "payments/book",
	"opt_outs":               "contacts",
	"payment_counters":       "history",
	"payment_days":           "history",
	"payment_ends":           "history",
	"sender_ids":             "senderid",
}

var (
	createTable = regexp.MustCompile(`(?i)create table (?:if not exists )?([a-z_]+)`)
	writeTable  = regexp.MustCompile(`(?i)\b(?:insert\s+into|update|delete\s+from)\s+([a-z_]+)`)
)

// exceptions are functions over the budget of statements, each with its reason.
var exceptions = map[string]string{}

type source struct {
	dir, name string // dir is relative to the root, with slashes
	test      bool
	generated bool // generated by templ from a .templ file in the same folder
	lines     int
	file      *ast.File
	set       *token.FileSet
}

// readSources reads the tree once for all rules, because reading takes most of their time.
var readSources = sync.OnceValues(func() (found []source, err error) {
	set := token.NewFileSet()
	err = fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && p != "." || d.Name() == "testdata" || d.Name() == "makola-data" || p == "build") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		text, err := fs.ReadFile(tree, p)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(set, p, text, parser.ParseComments)
		if err != nil {
			return err
		}
		found = append(found, source{dir: path.Dir(p), name: path.Base(p), test: strings.HasSuffix(p, "_test.go"),
			generated: ast.IsGenerated(file), lines: strings.Count(string(text), "\n"), file: file, set: set})
		return nil
	})
	return found, err
})

func sources(t *testing.T) []source {
	t.Helper()
	found, err := readSources()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// The root of the repository holds only documents, the module's files and the Makefile.
func TestRoot_holdsNoCode(t *testing.T) {
	for _, s := range sources(t) {
		if s.dir == "." {
			t.Errorf("%s: code belongs into cmd or internal", s.name)
		}
	}
}

// Packages import each other in one direction.
func TestImports_goOneWay(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		from := strings.TrimPrefix(s.dir, "internal/")
		for _, i := range s.file.Imports {
			imported := strings.Trim(i.Path.Value, `"`)
			if !strings.HasPrefix(imported, module+"/") {
				continue
			}
			to := strings.TrimPrefix(strings.TrimPrefix(imported, module+"/"), "internal/")
			if !allowed(s.dir, from, to) {
				t.Errorf("%s/%s imports %s: not in the table of allowed directions (internal/test/rules/tidy_test.go, ARCHITECTURE.md)", s.dir, s.name, to)
			}
		}
	}
}

func allowed(dir, from, to string) bool {
	if strings.HasPrefix(dir, "cmd/") {
		return to == "cli"
	}
	if strings.HasPrefix(to, "test/") && !strings.HasPrefix(from, "test/") {
		return false // packages for tests are in no program
	}
	if to == "openapi" {
		return from == "api" || from == "app" || from == "test/apitest"
	}
	if slices.Contains(leaves, from) {
		return (from == "config" || from == "groupcommit" || from == "cache") && slices.Contains(leaves, to)
	}
	if slices.Contains(leaves, to) {
		return from != "openapi"
	}
	rules := mayImport[from]
	return slices.Contains(rules, to) || slices.Contains(rules, "*")
}

// A transport calls verbs that open their own transaction. Two calls in one transaction of the transport could commit only half of
// a change that a domain keeps together. So a transport uses neither a database nor a verb that takes a transaction, not even with
// nil.
func TestTransports_openNoTransaction(t *testing.T) {
	all := sources(t)
	takesTx := takingTransactions(all)
	if !takesTx["OptIn"] || takesTx["Send"] {
		t.Fatal("the verbs that take a transaction are not recognised")
	}
	for _, s := range all {
		if s.test || s.dir != "internal/api" && !strings.HasPrefix(s.dir, "internal/console") && s.dir != "internal/guides" && s.dir != "internal/page" {
			continue
		}
		for _, i := range s.file.Imports {
			for _, database := range []string{"database/sql", module + "/internal/db", "github.com/jackc/pgx", "modernc.org/sqlite"} {
				if strings.HasPrefix(strings.Trim(i.Path.Value, `"`), database) {
					t.Errorf("%s/%s imports %s", s.dir, s.name, i.Path.Value)
				}
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && takesTx[selector.Sel.Name] && !ofPackage(s, selector) {
				t.Errorf("%s/%s names %s, which takes a transaction", s.dir, s.name, selector.Sel.Name)
			}
			return true
		})
	}
}

// ofPackage reports whether a selector names a declaration of a package, such as a type, and not a method.
func ofPackage(s source, selector *ast.SelectorExpr) bool {
	name, is := selector.X.(*ast.Ident)
	return is && slices.ContainsFunc(s.file.Imports, func(i *ast.ImportSpec) bool {
		return path.Base(strings.Trim(i.Path.Value, `"`)) == name.Name
	})
}

// takingTransactions returns the names of methods of the domains that take a *db.Tx wherever they are declared.
func takingTransactions(all []source) map[string]bool {
	found := map[string]bool{}
	for _, s := range all {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !f.Name.IsExported() || s.test || s.dir == "internal/db" {
				continue
			}
			takes := slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool { return text(s, p.Type) == "*db.Tx" })
			was, known := found[f.Name.Name]
			found[f.Name.Name] = takes && (was || !known)
		}
	}
	return found
}

// text returns the source text of an expression.
func text(s source, e ast.Expr) string {
	var out strings.Builder
	_ = printer.Fprint(&out, s.set, e) // a parsed expression prints
	return out.String()
}

// Domain packages do not import net/http.
func TestDomains_importNoHTTP(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || !strings.HasPrefix(s.dir, "internal/payments") && !strings.HasPrefix(s.dir, "internal/messaging") {
			continue
		}
		for _, i := range s.file.Imports {
			if i.Path.Value == `"net/http"` {
				t.Errorf("%s/%s imports net/http", s.dir, s.name)
			}
		}
	}
}

// Only one package writes each table.
func TestTables_haveOneWriter(t *testing.T) {
	owner := map[string]string{}
	files, err := fs.Glob(tree, "internal/db/migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no migrations: %v", err)
	}
	for _, name := range files {
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			t.Fatal(err)
		}
		line := ownerLine.FindSubmatch(text)
		if line == nil {
			t.Errorf("%s does not name its owner", name)
			continue
		}
		for _, m := range createTable.FindAllSubmatch(text, -1) {
			owner[string(m[1])] = string(line[1])
		}
	}
	for table, by := range moved {
		if owner[table] == "" || owner[table] == by {
			t.Errorf("%s is said to have moved to %s, and its migration says %q", table, by, owner[table])
		}
		owner[table] = by
	}
	for _, s := range sources(t) {
		if s.test || !strings.HasPrefix(s.dir, "internal/") {
			continue
		}
		from := strings.TrimPrefix(s.dir, "internal/")
		if !slices.Contains(mayImport[from], "db") && !slices.Contains(mayImport[from], "*") && from != "db" {
			continue // a package without a database has English texts here
		}
		for table := range tablesWritten(s.file) {
			if by, ours := owner[table]; ours && by != from {
				t.Errorf("%s/%s writes %s, which belongs to %s", s.dir, s.name, table, by)
			}
		}
	}
}

// tablesWritten reads the string literals of a file for SQL that writes, and the calls of db.Insert.
func tablesWritten(file *ast.File) map[string]bool {
	written := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				for _, m := range writeTable.FindAllStringSubmatch(n.Value, -1) {
					written[strings.ToLower(m[1])] = true
				}
			}
		case *ast.CallExpr:
			called := n.Fun
			if generic, ok := called.(*ast.IndexExpr); ok {
				called = generic.X
			}
			if sel, ok := called.(*ast.SelectorExpr); ok && sel.Sel.Name == "Insert" && len(n.Args) > 1 {
				if table, ok := n.Args[1].(*ast.BasicLit); ok {
					written[strings.Trim(table.Value, "`\"")] = true
				}
			}
		}
		return true
	})
	return written
}

// Files and functions stay within their budgets.
func TestBudgets_ofFilesAndFunctions(t *testing.T) {
	used := map[string]bool{}
	for name, text := range templates(t) {
		if lines := strings.Count(text, "\n"); lines > maxFileLines {
			t.Errorf("%s has %d lines, the budget is %d", name, lines, maxFileLines)
		}
	}
	for _, s := range sources(t) {
		if s.generated {
			continue
		}
		where := s.dir + "/" + s.name
		if s.lines > maxFileLines {
			t.Errorf("%s has %d lines, the budget is %d", where, s.lines, maxFileLines)
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				key := where + " " + n.Name.Name
				if count := statements(n.Body); count > maxStatements && !s.test {
					if reason, ok := exceptions[key]; ok {
						used[key] = true
						t.Logf("%s: %d statements: %s", key, count, reason)
					} else {
						t.Errorf("%s: %d statements, the budget is %d", key, count, maxStatements)
					}
				}
			case *ast.TypeSpec:
				if i, ok := n.Type.(*ast.InterfaceType); ok && i.Methods.NumFields() > maxMethods {
					t.Errorf("%s: interface %s has %d methods, the budget is %d", where, n.Name.Name, i.Methods.NumFields(), maxMethods)
				}
			}
			return true
		})
	}
	for key := range exceptions {
		if !used[key] {
			t.Errorf("the exception for %q is not needed any more", key)
		}
	}
}

func statements(body *ast.BlockStmt) int {
	count := 0
	if body == nil {
		return 0
	}
	ast.Inspect(body, func(n ast.Node) bool {
		if _, ok := n.(ast.Stmt); ok {
			if _, block := n.(*ast.BlockStmt); !block {
				count++
			}
		}
		return true
	})
	return count
}

// Every package has opening prose.
func TestPackages_openWithProse(t *testing.T) {
	prose := map[string]int{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		words := 0
		if s.file.Doc != nil {
			words = len(strings.Fields(s.file.Doc.Text()))
		}
		prose[s.dir] = max(prose[s.dir], words)
	}
	for dir, words := range prose {
		if words < 20 {
			t.Errorf("%s opens with %d words of prose; a reader needs a paragraph", dir, words)
		}
	}
}

// No package has an init function.
func TestPackages_haveNoInit(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "init" && f.Recv == nil {
				t.Errorf("%s/%s has an init function", s.dir, s.name)
			}
		}
	}
}

// No comment is a directive to a linter.
func TestComments_haveNoLinterDirectives(t *testing.T) {
	for _, s := range sources(t) {
		if s.generated {
			continue
		}
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//"+"nolint") || strings.HasPrefix(c.Text, "//"+"lint:") {
					t.Errorf("%s/%s has %q", s.dir, s.name, c.Text)
				}
			}
		}
	}
}

// Every exported name has a doc comment.
func TestPublicNames_haveComments(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, d := range s.file.Decls {
			for _, name := range unexplained(d) {
				t.Errorf("%s/%s: %s has no doc comment", s.dir, s.name, name)
			}
		}
	}
}

func unexplained(d ast.Decl) []string {
	var names []string
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
				names = append(names, fmt.Sprintf("type %s", s.Name.Name))
			}
		}
	}
	return names
}

// exportedReceiver is true for functions and for methods that a reader outside can call. Methods that
// only satisfy a well-known interface explain themselves.
func exportedReceiver(d *ast.FuncDecl) bool {
	if slices.Contains([]string{"String", "Error", "Unwrap", "LogValue", "MarshalJSON", "UnmarshalJSON", "ServeHTTP", "Close", "Len", "Less", "Swap", "Push", "Pop", "Is"}, d.Name.Name) {
		return false
	}
	if d.Recv == nil {
		return true
	}
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	if generic, ok := receiver.(*ast.IndexListExpr); ok {
		receiver = generic.X
	}
	name, ok := receiver.(*ast.Ident)
	return ok && name.IsExported()
}
