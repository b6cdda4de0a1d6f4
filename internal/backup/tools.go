package backup

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/makola/makola/internal/problem"
)

// tools are PostgreSQL's own programs of one version.
type tools struct {
	dump, restore, psql string // paths of the programs
	major               int
}

// toolFolders returns the folders that may have PostgreSQL's programs: those in PATH, and the folders of each version
// on Debian and other systems.
func toolFolders() []string {
	var folders []string
	if path, err := exec.LookPath("pg_dump"); err == nil {
		folders = append(folders, filepath.Dir(path))
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin"} {
		found, _ := filepath.Glob(pattern) // the patterns are valid
		folders = append(folders, found...)
	}
	return folders
}

// findTools returns the programs of the oldest suitable version. The folder must have all three. The version must not
// be older than least, because an older program can read neither the server nor the dump.
func findTools(ctx context.Context, folders []string, least int) (tools, error) {
	var best tools
	for _, folder := range folders {
		t := tools{dump: filepath.Join(folder, "pg_dump"), restore: filepath.Join(folder, "pg_restore"), psql: filepath.Join(folder, "psql")}
		if slices.ContainsFunc([]string{t.dump, t.restore, t.psql}, func(path string) bool { _, err := exec.LookPath(path); return err != nil }) {
			continue
		}
		said, err := exec.CommandContext(ctx, t.dump, "--version").Output()
		if err != nil {
			continue
		}
		if t.major = majorOf(string(said)); t.major >= least && (best.major == 0 || t.major < best.major) {
			best = t
		}
	}
	if best.major == 0 {
		return best, problem.New(problem.Unavailable, "tools_missing", fmt.Sprintf("PostgreSQL's programs pg_dump, pg_restore and psql of version %d or later"+
			" are needed here, and were found neither in PATH nor in /usr/lib/postgresql. On Debian or Ubuntu: apt-get install postgresql-client-%d (or postgresql-client)", least, least))
	}
	return best, nil
}

var majorVersion = regexp.MustCompile(`\d+`)

// majorOf returns the first number of a version as a server or a program prints it.
func majorOf(version string) int {
	n, _ := strconv.Atoi(majorVersion.FindString(version)) // 0 if there is no number, so that any version is suitable
	return n
}

// quoted returns a name as a pattern for pg_dump that matches only this name.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// complaints stores the end of a program's standard error.
type complaints struct{ text []byte }

const complaintsKept = 4 << 10

func (c *complaints) Write(p []byte) (int, error) {
	c.text = append(c.text, p...)
	c.text = c.text[max(0, len(c.text)-complaintsKept):]
	return len(p), nil
}

// failed returns the error of a program, with the text that it printed.
func (c *complaints) failed(run *exec.Cmd, err error) error {
	name := filepath.Base(run.Path)
	return problem.Wrap(fmt.Errorf("%w: %s", err, strings.TrimSpace(string(c.text))), problem.Unavailable, "tool_failed", name+" failed")
}

// piped runs a program and passes its standard output to the function read.
func piped(run *exec.Cmd, read func(io.Reader) error) error {
	var said complaints
	run.Stderr = &said
	out, err := run.StdoutPipe()
	if err != nil {
		return err
	}
	if err := run.Start(); err != nil {
		return said.failed(run, err)
	}
	readErr := read(out)
	if readErr != nil {
		_ = run.Process.Kill() // its output is no longer read
	}
	if err := run.Wait(); err != nil && readErr == nil {
		return said.failed(run, err)
	}
	return readErr
}
