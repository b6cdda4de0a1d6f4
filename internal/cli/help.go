package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
)

// helpCommand prints the help of a command, as the command with --help does.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"Words of the command. Default: all commands."`
}

// Run prints it.
func (c *helpCommand) Run(e *frame.Env) error {
	if code := run(append(slices.Clone(c.Command), "--help"), e); code != frame.ExitOK {
		return frame.Usage("Unknown command. makola help lists all")
	}
	return nil
}

// About describes the build of the program.
type About struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	Schema  int    `json:"schema"` // number of the program's newest migration
}

// about reads the build information.
func about() (About, error) {
	a := About{Version: cmp.Or(version, nextVersion), Commit: commit(), Go: runtime.Version()}
	all, err := db.KnownMigrations()
	if len(all) > 0 {
		a.Schema = all[len(all)-1].Number
	}
	return a, err
}

// versionCommand prints the version.
type versionCommand struct {
	Output string `name:"output" short:"o" enum:"table,json" default:"table" help:"Format of the output: table or json."`
}

// Run prints it.
func (c *versionCommand) Run(e *frame.Env) error {
	a, err := about()
	if err != nil {
		return err
	}
	if c.Output == "json" {
		text, err := json.Marshal(a)
		if err != nil {
			return err
		}
		return frame.Indented(e.Stdout, text)
	}
	_, err = fmt.Fprintf(e.Stdout, "makola %s, commit %s, %s, schema %d\n", a.Version, cmp.Or(a.Commit, "unknown"), a.Go, a.Schema)
	return err
}

// completionCommand prints a script for a shell.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// The scripts call the program, so they need no change when the commands change.
const (
	bashCompletion = `_makola() {
  local IFS=$'\n'
  COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _makola makola
`
	fishCompletion = `complete -c makola -a '(makola complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`
)

// Run prints it.
func (c *completionCommand) Run(e *frame.Env) error {
	script := bashCompletion
	switch c.Shell {
	case "zsh":
		script = "autoload -U +X bashcompinit && bashcompinit\n" + script
	case "fish":
		script = fishCompletion
	}
	_, err := fmt.Fprint(e.Stdout, script)
	return err
}

// completeCommand completes a line for the scripts.
type completeCommand struct {
	Words []string `arg:"" optional:"" help:"Words of the line after makola. The last word is completed."`
}

// Run prints the completions of the last word, one a line.
func (c *completeCommand) Run(e *frame.Env) error {
	model, err := Model()
	if err != nil {
		return err
	}
	for _, word := range completions(model.Node, c.Words) {
		fmt.Fprintln(e.Stdout, word)
	}
	return nil
}

// completions returns the commands, flags and values that complete the last word.
func completions(node *kong.Node, words []string) (found []string) {
	last := ""
	if len(words) > 0 {
		last, words = words[len(words)-1], words[:len(words)-1]
	}
	var value *kong.Flag // the flag's value is the next word
	for _, word := range words {
		value = nil
		for _, f := range node.Flags {
			if word == "--"+f.Name && !f.IsBool() {
				value = f
			}
		}
		for _, child := range node.Children {
			if child.Name == word || slices.Contains(child.Aliases, word) {
				node = child
				break
			}
		}
	}
	switch {
	case value != nil:
		found = strings.Split(value.Enum, ",")
	case strings.HasPrefix(last, "-"):
		for _, f := range node.Flags {
			if !f.Hidden {
				found = append(found, "--"+f.Name)
			}
		}
	default:
		for _, child := range node.Children {
			if !child.Hidden {
				found = append(found, child.Name)
			}
		}
		if len(node.Positional) > 0 {
			found = append(found, strings.Split(node.Positional[0].Enum, ",")...)
		}
	}
	return slices.DeleteFunc(found, func(word string) bool { return word == "" || !strings.HasPrefix(word, last) })
}

// notOurs matches variables with our prefix that are not settings: variables of tests, and variables that
// Kubernetes sets for a service named makola.
var notOurs = regexp.MustCompile(`^MAKOLA_TEST_|_SERVICE_(HOST|PORT)(_.*)?$|_PORT(_\d+_(TCP|UDP).*)?$`)

// talks reports whether a command runs even with wrong settings. Such a command prints information about the
// program, or reports wrong settings itself.
func talks(c *kong.Context) bool {
	first, _, _ := strings.Cut(c.Command(), " ")
	return slices.Contains([]string{"version", "help", "completion", "complete", "doctor"}, first)
}

// checkVariables refuses an environment variable with our prefix that no flag reads, because it is probably misspelt.
func checkVariables(model *kong.Application, environment []string) error {
	known := map[string]bool{config.EnvMasterKey: true, config.EnvMasterKeyFile: true, config.EnvReferenceKey: true, config.EnvReferenceKeyFile: true, config.EnvToken: true}
	err := kong.Visit(model, func(node kong.Visitable, next kong.Next) error {
		if flag, is := node.(*kong.Flag); is {
			for _, name := range flag.Tag.Envs {
				known[name] = true
			}
		}
		return next(nil)
	})
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(known))
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "MAKOLA_") || notOurs.MatchString(name) || value == "" || known[name] {
			continue
		}
		nearest := slices.MinFunc(names, func(a, b string) int { return cmp.Compare(frame.Distance(name, a), frame.Distance(name, b)) })
		return frame.Usage(fmt.Sprintf("Unknown environment variable %s. Did you mean %s? Unset it, or correct its name", name, nearest))
	}
	return nil
}

// oneOf matches kong's error for a value that is not in a list: "--for must be one of "customer","house" but got
// "me"".
var oneOf = regexp.MustCompile(`^(.*) must be one of ((?:"[^"]*",?)+) but got (".*")$`)

// words rewrites the parser's error about a value that is not in a list in plain English.
func words(message string) string {
	parts := oneOf.FindStringSubmatch(message)
	if parts == nil {
		return message
	}
	list := slices.DeleteFunc(strings.Split(parts[2], ","), func(word string) bool { return word == `""` })
	for i, word := range list {
		list[i] = strings.Trim(word, `"`)
	}
	last := len(list) - 1
	text := list[last]
	if last > 0 {
		text = strings.Join(list[:last], ", ") + " or " + text
	}
	return fmt.Sprintf("%s must be %s, not %s", parts[1], text, strings.Trim(parts[3], `"`))
}
