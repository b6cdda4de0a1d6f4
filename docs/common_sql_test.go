package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The common set is the SQL that our statements and migrations may use, in addition to the keywords of internal/db/engine/words.go.
// Another keyword needs a decision, because an engine that spreads one database over several machines may lack it.
const (
	commonWords = `ADD ALL ALTER AND AS BETWEEN BIGINT BY CASE CAST CHECK COALESCE COLUMN CONFLICT CONSTRAINT CREATE CROSS DEFAULT DELETE DESC DISTINCT DO DROP ELSE END
ESCAPE EXCEPT EXISTS FOR FOREIGN FROM GROUP HAVING IN INDEX INSERT INT INTEGER INTO IS JOIN KEY LEFT LIKE LIMIT MATERIALIZED MAX NOT NOTHING NULL OF
OFFSET ON OR ORDER PRIMARY RECURSIVE REFERENCES RENAME RETURNING SELECT SET STRICT TABLE TEXT THEN TO UNION UNIQUE UPDATE VALUES WHEN WHERE WITH WITHOUT ROWID BLOB`
	commonFunctions = `coalesce count greatest length lower max min replace substr sum`
	// dialectWords are functions of internal/db/engine/words.go.
	dialectWords = `ints now_micros rows texts unindexed`
)

// ofOneEngine lists the files with SQL for one engine, about the engine itself or through its own tools. All other
// SQL is common.
var ofOneEngine = []string{
	"internal/db/migrate.go", "internal/db/place.go", "internal/db/postgres/client.go", "internal/db/postgres/dialect.go", "internal/db/postgres/pooler.go",
	"internal/db/postgres/postgres.go", "internal/db/room.go", "internal/db/snapshot.go", "internal/db/sqlite/clean.go", "internal/db/sqlite/dialect.go",
	"internal/db/sqlite/sqlite.go", "internal/db/sqlite/writer.go", "internal/backup/restore.go", "internal/relocation/carry.go",
}

var (
	// aStatement matches the beginning of one of our statements, or of a part of one.
	aStatement = regexp.MustCompile(`^[\s(]*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|DROP|FROM|WHERE|ORDER BY|AND|ON CONFLICT|RETURNING|CROSS|LEFT|JOIN|VALUES|SET|GROUP|LIMIT|UNION|HAVING|LOCK|TRUNCATE|LISTEN|NOTIFY|SAVEPOINT|BEGIN|DECLARE|COPY|MERGE)\s`)
	aText      = regexp.MustCompile(`'[^']*'`)
	aComment   = regexp.MustCompile(`(?m)--.*$`)
	aWord      = regexp.MustCompile(`\b[A-Z]{2,}\b`)
	aFunction  = regexp.MustCompile(`\b([a-z_]+) ?\(`)
	aNewTable  = regexp.MustCompile(`CREATE TABLE (?:IF NOT EXISTS )?(\w+)`)
	aColumns   = regexp.MustCompile(`(?:INTO|TABLE|KEY|UNIQUE|AS|WITH|REFERENCES|INDEX \w+ ON|RECURSIVE) +\w* *\(`)
)

// statements returns the SQL texts of the program by file.
func statements(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		switch {
		case entry.IsDir() && (strings.HasSuffix(name, "test") || name == "internal/sim" || name == "internal/guides" || name == "internal/console"):
			return fs.SkipDir // the simulator has no database, and pages have no SQL
		case strings.HasSuffix(name, ".sql"):
			found[name] = append(found[name], aComment.ReplaceAllString(read(t, name), ""))
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !slices.Contains(ofOneEngine, name):
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
					if text, err := strconv.Unquote(literal.Value); err == nil && aStatement.MatchString(text) {
						found[name] = append(found[name], text)
					}
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Statements use only the common set of SQL.
func TestSQL_usesCommonSet(t *testing.T) {
	all := statements(t)
	known := map[string]bool{}
	for _, word := range strings.Fields(commonWords + " " + commonFunctions + " " + dialectWords) {
		known[word] = false
	}
	tables := map[string]bool{}
	for _, texts := range all {
		for _, text := range texts {
			for _, m := range aNewTable.FindAllStringSubmatch(text, -1) {
				tables[m[1]] = true
			}
		}
	}
	n := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, text := range all[name] {
			n++
			text = aText.ReplaceAllString(text, "''")
			used := aWord.FindAllString(text, -1)
			for _, m := range aFunction.FindAllStringSubmatch(aColumns.ReplaceAllString(text, ""), -1) {
				if !tables[m[1]] {
					used = append(used, m[1])
				}
			}
			for _, word := range used {
				if _, is := known[word]; !is {
					t.Errorf("%s: %s is outside the common set of SQL (docs/decisions.md, Engines that spread one database): %.120q", name, word, text)
				}
				known[word] = true
			}
		}
	}
	if n < 300 {
		t.Errorf("only %d statements were found", n)
	}
	for word, used := range known {
		if !used {
			t.Errorf("nothing uses %s any more: take it out of the common set", word)
		}
	}
}

// printCommonSQL returns the common set as a table.
func printCommonSQL(*testing.T) string {
	sorted := func(list string) string {
		words := strings.Fields(list)
		slices.Sort(words)
		return strings.Join(words, " ")
	}
	return fmt.Sprintf("Words: %s.\n\nFunctions: %s.\n", sorted(commonWords), sorted(commonFunctions))
}
