package rules

import (
	"bytes"
	"go/format"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/a-h/templ/generator"
	"github.com/a-h/templ/parser/v2"
)

// templates returns the sources of the pages by their paths.
func templates(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(tree, "internal", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".templ") {
			return err
		}
		text, err := fs.ReadFile(tree, p)
		found[p] = string(text)
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d templates: %v", len(found), err)
	}
	return found
}

// The committed code of pages is the output of templ for their sources: go generate ./internal/... writes it.
func TestTemplates_generatedCodeIsCurrent(t *testing.T) {
	for name, text := range templates(t) {
		file, err := parser.ParseString(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var made bytes.Buffer
		if _, err = generator.Generate(file, &made, generator.WithVersion("v0.3.977"), generator.WithFileName(filepath.Base(name))); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, err := format.Source(made.Bytes())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		have, err := fs.ReadFile(tree, strings.TrimSuffix(name, ".templ")+"_templ.go")
		if err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not what its code was made of: run go generate ./internal/page ./internal/console/... (%v)", name, err)
		}
	}
}
