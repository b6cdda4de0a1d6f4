//go:build mutate

package app

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestMutants breaks each money rule in an overlay of the tree, and requires that the named test then fails. A compile error, a
// hang or a panic does not count as a failure. The test must pass on the unbroken tree first. `make mutate` runs all mutants, and
// `make mutate MUTANT=name` those whose names match.
func TestMutants(t *testing.T) {
	b := bench{dir: t.TempDir(), tests: map[string]string{}, passed: map[judge]bool{}}
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			b.sound(t, m.judge)
			broken := m.broken(t)
			overlay := b.overlay(t, m.file, broken)
			program := filepath.Join(b.dir, "broken.test")
			b.build(t, m.judge.pkg, program, "-overlay", overlay)
			out, code := run(t, m.judge, program)
			switch {
			case code == 0:
				t.Errorf("it survives: %s\nbroken in %s, and %s of %s still passes", m.rule, m.file, m.judge.run, m.judge.pkg)
			case code != 1 || !failed.MatchString(out):
				t.Errorf("no test failed, something else did (exit %d):\n%s", code, tail(out))
			}
		})
	}
}

// failed matches the line of a failed test.
var failed = regexp.MustCompile(`(?m)^--- FAIL: `)

// bench is the folder in which mutants are built.
type bench struct {
	dir    string
	tests  map[string]string // the unbroken test program of each package
	passed map[judge]bool
}

// sound requires that a judge runs at least one test, and passes on the unbroken tree.
func (b *bench) sound(t *testing.T, j judge) {
	t.Helper()
	if b.passed[j] {
		return
	}
	program := b.tests[j.pkg]
	if program == "" {
		program = filepath.Join(b.dir, strings.ReplaceAll(j.pkg, "/", "-")+".test")
		b.build(t, j.pkg, program)
		b.tests[j.pkg] = program
	}
	out, code := run(t, j, program)
	if code != 0 {
		t.Fatalf("%s of %s fails on the unbroken tree:\n%s", j.run, j.pkg, tail(out))
	}
	// Each part of a pattern is one level of subtests, which the output indents by four spaces.
	deepest := `(?m)^ {` + strconv.Itoa(4*strings.Count(j.run, "/")) + `}--- PASS: `
	if !regexp.MustCompile(deepest).MatchString(out) {
		t.Fatalf("%s of %s runs nothing:\n%s", j.run, j.pkg, tail(out))
	}
	b.passed[j] = true
}

// overlay writes a broken file, and the description by which the compiler reads it in place of the real file.
func (b *bench) overlay(t *testing.T, file, broken string) string {
	t.Helper()
	real, err := filepath.Abs(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	instead, description := filepath.Join(b.dir, "broken"+filepath.Ext(file)), filepath.Join(b.dir, "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": {real: instead}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{instead: broken, description: string(text)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return description
}

// build compiles a test program. A mutant that does not compile proves nothing.
func (b *bench) build(t *testing.T, pkg, program string, flags ...string) {
	t.Helper()
	args := append([]string{"test", "-c", "-ldflags=-s -w", "-o", program}, flags...)
	c := exec.Command("go", append(args, "./"+pkg)...)
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("it does not build: %v\n%s", err, tail(string(out)))
	}
}

// run runs a judge in the folder of its package, as go test does.
func run(t *testing.T, j judge, program string) (out string, code int) {
	t.Helper()
	c := exec.Command(program, "-test.v", "-test.timeout=10m", "-test.run="+j.run)
	c.Dir = filepath.Join(root, j.pkg)
	text, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return string(text), c.ProcessState.ExitCode()
}

func tail(text string) string { return text[max(0, len(text)-4000):] }
