// Package docs_test compares the documents with the code. The tables between two "printed" marks are printed from the
// code (go test ./docs -update writes them). Names in the prose must exist: files, links, declarations, tests,
// commands with their flags, settings, metrics, make targets, dependencies.
package docs_test

import (
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/cli"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/roles"
)

var update = flag.Bool("update", false, "write the printed tables into the documents")

const root = ".."

// documents returns the paths of all documents for readers, relative to the root.
func documents(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "internal/guides/pages/*.md"} {
		matches, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range matches {
			name, err := filepath.Rel(root, m)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, filepath.ToSlash(name))
		}
	}
	if len(found) < 10 {
		t.Fatalf("only %d documents are here: %v", len(found), found)
	}
	return found
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// printed lists the tables by name, each with its document.
var printed = map[string]struct {
	in    string
	print func(*testing.T) string
}{
	"packages":         {"docs/packages.md", printPackages},
	"states":           {"docs/ledger.md", printStates},
	"collection":       {"docs/ledger.md", transitionsOf(book.KindCollection)},
	"payout":           {"docs/ledger.md", transitionsOf(book.KindPayout)},
	"top-up":           {"docs/ledger.md", transitionsOf(book.KindTopUp)},
	"bundle":           {"docs/ledger.md", transitionsOf(book.KindBundle)},
	"settings":         {"docs/operations/settings.md", printSettings},
	"metrics":          {"docs/operations/monitoring.md", printMetrics},
	"alerts":           {"docs/operations/monitoring.md", printAlerts},
	"exit codes":       {"docs/operations/commands.md", printExitCodes},
	"production needs": {"docs/operations/install.md", printProduction},
	"common sql":       {"docs/decisions.md", printCommonSQL},

	"tenant roles":       {"docs/people.md", rolesOf(roles.TenantSite)},
	"installation roles": {"docs/people.md", rolesOf(roles.InstallationSite)},
}

// mark finds the tables: a name, and the text up to the end mark.
var mark = regexp.MustCompile(`(?s)<!-- printed: ([a-z -]+) -->\n(.*?)<!-- end -->`)

// The printed tables in documents match the code.
func TestTables_matchTheCode(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range documents(t) {
		text := read(t, name)
		now := mark.ReplaceAllStringFunc(text, func(block string) string {
			table := mark.FindStringSubmatch(block)[1]
			p, known := printed[table]
			if !known || p.in != name || seen[table] {
				t.Errorf("%s: nothing is printed as %q here", name, table)
				return block
			}
			seen[table] = true
			return "<!-- printed: " + table + " -->\n" + p.print(t) + "<!-- end -->"
		})
		switch {
		case now == text:
		case *update:
			if err := os.WriteFile(filepath.Join(root, name), []byte(now), 0o644); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s is not what the code says; go test ./docs -update writes it. First difference:\n%s", name, difference(text, now))
		}
	}
	for table, p := range printed {
		if !seen[table] {
			t.Errorf("%s has no place for the table %q", p.in, table)
		}
	}
}

// difference returns the first line that differs.
func difference(was, is string) string {
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "document: " + a[i] + "\ncode:     " + b[i]
		}
	}
	return fmt.Sprintf("%d lines in the document, %d by the code", len(a), len(b))
}

// table writes a Markdown table.
type table struct{ strings.Builder }

func (t *table) head(columns ...string) {
	t.row(columns...)
	t.WriteString("|" + strings.Repeat("---|", len(columns)) + "\n")
}

func (t *table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	t.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

const internal = "github.com/makola/makola/internal/"

// leaves are packages that every package may import, as in internal/test/rules.
var leaves = []string{"cache", "clock", "config", "groupcommit", "money", "msisdn", "problem", "smstext"}

// printPackages lists the packages with the first sentence of their prose and their imports.
func printPackages(t *testing.T) string {
	says, uses := map[string]string{}, map[string]map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(filepath.Join(root, "internal"), filepath.Dir(p))
		folder = filepath.ToSlash(folder)
		if uses[folder] == nil {
			uses[folder] = map[string]bool{}
		}
		if file.Doc != nil && strings.HasPrefix(file.Doc.Text(), "Package ") {
			says[folder] = firstSentence(file.Doc.Text())
		}
		for _, i := range file.Imports {
			if to, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), internal); ours && !slices.Contains(leaves, to) {
				uses[folder][to] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var out table
	out.head("package", "what it does, in the first sentence of its prose", "imports, beside the leaves")
	for _, folder := range slices.Sorted(maps.Keys(uses)) {
		if says[folder] == "" {
			t.Errorf("internal/%s has no prose", folder)
		}
		if !slices.Contains(leaves, folder) {
			out.row("[`"+folder+"`](../internal/"+folder+")", says[folder], strings.Join(slices.Sorted(maps.Keys(uses[folder])), ", "))
		}
	}
	for _, folder := range leaves {
		out.row("[`"+folder+"`](../internal/"+folder+")", says[folder], "a leaf")
	}
	return out.String()
}

var sentenceEnd = regexp.MustCompile(`\.(\s|$)`)

func firstSentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if at := sentenceEnd.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	_, text, _ = strings.Cut(strings.TrimPrefix(text, "Package "), " ")
	return text
}

var kinds = []book.Kind{book.KindCollection, book.KindPayout, book.KindTopUp, book.KindBundle}

// printStates lists the stored states with the statuses that customers see. A cell is empty if the kind does not have the state.
func printStates(*testing.T) string {
	var out table
	out.head("stored", "a collection reads", "a payout reads", "a top-up reads", "a bundle reads")
	for _, s := range []book.Status{book.StatusWaiting, book.StatusPending, book.StatusSuccess,
		book.StatusFailed, book.StatusDeclined, book.StatusInvalid} {
		cells := []string{code(string(s))}
		for _, k := range kinds {
			word := ""
			for _, a := range book.Transitions {
				if slices.Contains(a.Kinds, k) && slices.Contains(a.To, s) {
					word = book.Payment{Kind: k, Status: s}.PublicStatus()
				}
			}
			cells = append(cells, word)
		}
		out.row(cells...)
	}
	return out.String()
}

func transitionsOf(k book.Kind) func(*testing.T) string {
	return func(*testing.T) string {
		var out table
		out.head("from", "event", "to", "transfers (leg: from → to, sum)", "callback", "note")
		for _, a := range book.Transitions {
			if !slices.Contains(a.Kinds, k) {
				continue
			}
			var to, transfers []string
			for _, s := range a.To {
				to = append(to, code(string(s)))
			}
			for _, p := range a.Postings {
				transfers = append(transfers, fmt.Sprintf("%s: `%s` → `%s`, %s", p.Leg, p.From, p.To, p.Sum))
			}
			callback := ""
			if a.Callback {
				callback = "yes"
			}
			out.row(code(string(a.From)), string(a.Event), strings.Join(to, ", "), strings.Join(transfers, "<br>"), callback, a.Note)
		}
		return out.String()
	}
}

func model(t *testing.T) *kong.Application {
	t.Helper()
	m, err := cli.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// printSettings lists the flags of serve with their environment variables. A credential has no flag in
// the document: other users of the machine could read it there.
func printSettings(t *testing.T) string {
	var out table
	out.head("flag", "environment variable", "default", "meaning")
	out.row("", code(config.EnvMasterKey), "", "The master keys, separated by line breaks or spaces. Each has at least 32 bytes in hexadecimal or base64. The active key is first, the oldest last.")
	out.row("", code(config.EnvMasterKeyFile), "", "File with the master keys, instead of MAKOLA_MASTER_KEY.")
	out.row("", code(config.EnvReferenceKey), "", "The first master key of the installation, if it is no longer in the ring. Provider references are always made under it.")
	out.row("", code(config.EnvReferenceKeyFile), "", "File with this key, instead of MAKOLA_REFERENCE_KEY.")
	for _, f := range commandAt(model(t), "serve").Flags {
		if f.Name == "help" {
			continue
		}
		name := code("--" + f.Name)
		if f.Hidden {
			name = ""
		}
		if f.Help == "" || len(f.Envs) != 1 {
			t.Errorf("the setting %s has no help, or not one environment variable", f.Name)
		}
		out.row(name, code(strings.Join(f.Envs, " ")), code(f.Default), f.Help)
	}
	return out.String()
}

// common are the flags that the manual explains once for all commands.
var common = []string{"help", "data", "database", "output", "wide"}

// commandAt finds a command by its path. It returns nil for an unknown command.
func commandAt(m *kong.Application, words ...string) *kong.Node {
	n := m.Node
next:
	for _, word := range words {
		for _, child := range n.Children {
			if child.Name == word {
				n = child
				continue next
			}
		}
		return nil
	}
	return n
}

// usage returns a command line: the command's path and its positional arguments.
func usage(leaf *kong.Node) string {
	var words []string
	for n := leaf; n.Parent != nil; n = n.Parent {
		words = slices.Insert(words, 0, n.Name)
	}
	for _, p := range leaf.Positional {
		word := strings.ToUpper(p.Name)
		if !p.Required {
			word = "[" + word + "]"
		}
		if p.IsCumulative() {
			word += " ..."
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// description matches the help text of a metric.
var description = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "([^"]*)",.* constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}\}$`)

// fixed matches the names of labels with fixed values.
var fixed = regexp.MustCompile(`(\w+)="`)

// serving starts a server for the test.
func serving(t *testing.T, fn func(a *app.App)) {
	t.Helper()
	a, err := app.Start(t.Context(), config.Server{Environment: "development", Listen: "127.0.0.1:0", Ephemeral: true,
		Connections: 4, DrainFor: time.Minute, Storage: config.Storage{Data: t.TempDir()}}, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	fn(a)
}

// measured lists the metrics of a running server by name: help and labels.
func measured(t *testing.T) map[string][2]string {
	t.Helper()
	descriptions := make(chan *prometheus.Desc, 1000)
	serving(t, func(a *app.App) {
		a.Metrics().Describe(descriptions)
		close(descriptions)
	})
	found := map[string][2]string{}
	for d := range descriptions {
		if !strings.HasPrefix(d.String(), `Desc{fqName: "makola_`) {
			continue // metrics of the runtime and of the process
		}
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			t.Errorf("a metric describes itself unlike others: %s", d)
			continue
		}
		var labels []string
		for _, label := range fixed.FindAllStringSubmatch(m[3], -1) {
			labels = append(labels, label[1])
		}
		if m[4] != "" {
			labels = append(labels, strings.Split(m[4], ",")...)
		}
		found[m[1]] = [2]string{m[2], strings.Join(labels, ", ")}
	}
	return found
}

func printMetrics(t *testing.T) string {
	found := measured(t)
	if len(found) < 20 {
		t.Fatalf("the server has only %d metrics", len(found))
	}
	var out table
	out.head("metric", "labels", "meaning")
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if found[name][0] == "" {
			t.Errorf("%s has no help", name)
		}
		out.row(code(name), found[name][1], found[name][0])
	}
	return out.String()
}

// printExitCodes reads the constants, whose comments are their meaning.
func printExitCodes(t *testing.T) string {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "internal/cli/frame/report.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var out table
	out.head("code", "meaning")
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(v.Names[0].Name, "Exit") || len(v.Values) != 1 {
			return true
		}
		number, ok := v.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		if v.Comment == nil {
			t.Errorf("%s is not explained", v.Names[0].Name)
			return true
		}
		out.row(number.Value, strings.TrimSpace(v.Comment.Text()))
		return true
	})
	return out.String()
}

// printProduction lists the settings that an empty configuration lacks for production.
func printProduction(t *testing.T) string {
	var out strings.Builder
	for _, missing := range (config.Server{Ephemeral: true}).Missing() {
		out.WriteString("- " + missing + "\n")
	}
	if out.Len() == 0 {
		t.Error("production needs nothing")
	}
	return out.String()
}

// rolesOf prints the policy of a site, with a line for each permission and a column for each role.
func rolesOf(site roles.Site) func(*testing.T) string {
	return func(*testing.T) string {
		var out table
		head := []string{"permission", "may"}
		for _, role := range roles.At(site) {
			head = append(head, string(role))
		}
		out.head(head...)
		for _, grant := range roles.Policy() {
			if !roles.Can(site, roles.Owner, grant.Permission) {
				continue
			}
			row := []string{"`" + string(grant.Permission) + "`", grant.Means}
			for _, role := range roles.At(site) {
				row = append(row, map[bool]string{true: "✓"}[roles.Can(site, role, grant.Permission)])
			}
			out.row(row...)
		}
		row := []string{"", "must have a second factor in production"}
		for _, role := range roles.At(site) {
			row = append(row, map[bool]string{true: "✓"}[role.NeedsFactor(site)])
		}
		out.row(row...)
		return out.String()
	}
}
