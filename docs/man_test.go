package docs_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// roff formats a text for a manual page: hyphens are those of commands, and no line begins with a request of roff.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(strings.Join(strings.Fields(text), " "))
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

// tableRow finds the first two cells of a row of a printed table.
var tableRow = regexp.MustCompile("(?m)^\\| `?([^|`]+)`? \\| ([^|]*) \\|")

// manual is deploy/makola.1.
func manual(t *testing.T) string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	flags := func(n *kong.Node) {
		for _, f := range n.Flags {
			if f.Hidden || f.Name == "help" || slices.Contains(common, f.Name) {
				continue
			}
			name := "--" + f.Name
			if !f.IsBool() {
				name += " " + cmp.Or(f.PlaceHolder, strings.ReplaceAll(strings.TrimSuffix(f.Enum, ","), ",", "|"), strings.ToUpper(f.Name))
			}
			help := f.Help
			if len(f.Envs) > 0 {
				help += " (" + f.Envs[0] + ")"
			}
			if f.Default != "" {
				help += " Default: " + f.Default + "."
			}
			line(".TP\n.B %s\n%s", roff(name), roff(help))
		}
	}
	m := model(t)
	line(`.\" Written from the command line (docs/man_test.go): go test ./docs -update`)
	line(`.TH MAKOLA 1 "" "Makola" "Makola"`)
	line(".SH NAME\nmakola \\- mobile money, bank transfers, airtime and messages behind one interface")
	line(".SH SYNOPSIS\n.B makola\n.I command\n[\\fIflags\\fR]")
	line(".SH DESCRIPTION\n%s", roff("Collect and send mobile money, send bank transfers, sell airtime and data, send SMS: one program, one interface."))
	line("Commands open the database themselves, while the server runs or not. Those that know a database take\n.B \\-\\-data\nor\n.B \\-\\-database\n(MAKOLA_DATA, MAKOLA_DATABASE), and\n.B \\-o json\nfor programs.")
	line(".SH COMMANDS")
	for _, noun := range m.Children {
		if noun.Hidden {
			continue
		}
		for _, leaf := range slices.Concat([]*kong.Node{noun}, noun.Leaves(true)) {
			if leaf == noun && !noun.Leaf() || leaf != noun && noun.Leaf() {
				continue
			}
			if leaf.Help == "" {
				t.Errorf("makola %s has no help", leaf.Path())
			}
			line(".SS makola %s\n%s", roff(usage(leaf)), roff(leaf.Help))
			if leaf.Name != "doctor" { // its flags are those of serve
				flags(leaf)
			}
		}
	}
	line(".SH EXIT STATUS")
	for _, row := range tableRow.FindAllStringSubmatch(printExitCodes(t), -1)[1:] {
		if strings.Trim(row[1], "- ") != "" {
			line(".TP\n.B %s\n%s", roff(row[1]), roff(row[2]))
		}
	}
	line(".SH FILES\n.TP\n.I /etc/makola/makola.env\nSettings of the unit of systemd.\n.TP\n.I /etc/makola/master.key\nThe master key.\n.TP\n.I /var/lib/makola\nData, where there is no PostgreSQL.")
	line(".SH SEE ALSO\nThe guides of a server at /docs, and /usr/share/doc/makola/operations.md.")
	return out.String()
}

// The manual page matches the command line.
func TestManualPage_matchesCommandLine(t *testing.T) {
	const name = "deploy/makola.1"
	text := manual(t)
	if *update {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if was := read(t, name); was != text {
		t.Errorf("%s is not what the command line says; go test ./docs -update writes it. First difference:\n%s", name, difference(was, text))
	}
	for _, says := range []string{".SS makola serve", ".SS makola wallet fund ACCOUNT AMOUNT", "MAKOLA_KEEP_TEXTS", ".SH EXIT STATUS"} {
		if !strings.Contains(text, says) {
			t.Errorf("it lacks %q", says)
		}
	}
}
