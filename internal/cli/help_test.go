package cli

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

// plain runs a command without a database.
func plain(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if got := Run(args, &out, &errs); got != code {
		t.Fatalf("makola %s: exit %d, want %d\n%s%s", strings.Join(args, " "), got, code, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

func TestVersion_printsTheBuild(t *testing.T) {
	t.Parallel()
	known, err := db.KnownMigrations()
	if err != nil {
		t.Fatal(err)
	}
	var said About
	for _, args := range [][]string{{"version", "-o", "json"}, {"--version", "-o", "json"}} {
		out, _ := plain(t, exitOK, args...)
		if err := json.Unmarshal([]byte(out), &said); err != nil || said.Version == "" || !strings.HasPrefix(said.Go, "go1.") || said.Schema != len(known) {
			t.Errorf("%v says %s, %v", args, out, err)
		}
	}
	if out, _ := plain(t, exitOK, "--version"); !strings.HasPrefix(out, "makola "+said.Version) || !strings.Contains(out, said.Go) {
		t.Errorf("--version says %s", out)
	}
}

// The help of a command names its usage, its argument and its flags, for each way to request it.
func TestHelp_ofACommand(t *testing.T) {
	t.Parallel()
	flag, _ := plain(t, exitOK, "payouts", "find", "--help")
	for _, part := range []string{"Usage: makola payouts find <", "Arguments:", "--data", "--output"} {
		if !strings.Contains(flag, part) {
			t.Errorf("the help of payouts find lacks %q:\n%s", part, flag)
		}
	}
	if command, _ := plain(t, exitOK, "help", "payouts", "find"); command != flag {
		t.Errorf("makola help payouts find prints\n%s", command)
	}
	if all, _ := plain(t, exitOK, "help"); !strings.Contains(all, "Usage: makola <command>") {
		t.Errorf("makola help says\n%s", all)
	}
	plain(t, exitUsage, "help", "nonsense")
}

// A command that got a new name still takes the old one.
func TestHelp_ofAnOldName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ noun, old, name, leaf string }{{"payouts ", "turned", "contradicted", ""}, {"", "tenant", "account", " set"}, {"", "acts", "approvals", " list"}, {"otp ", "taps", "ranges", ""}} {
		want, _ := plain(t, exitOK, strings.Fields(c.noun+c.name+c.leaf+" --help")...)
		if got, _ := plain(t, exitOK, strings.Fields(c.noun+c.old+c.leaf+" --help")...); got != want || !strings.Contains(got, c.name+" ("+c.old+")") {
			t.Errorf("the help of %s%s%s prints\n%s", c.noun, c.old, c.leaf, got)
		}
	}
	for _, args := range [][]string{{"key", "list", "--account", "x"}, {"key", "list", "--tenant", "x"}} {
		plain(t, exitUnavailable, append(args, "--data", t.TempDir())...)
	}
}

// makola --help lists the commands in groups, each with a line.
func TestHelp_groupsOfCommands(t *testing.T) {
	t.Parallel()
	all, _ := plain(t, exitOK, "--help")
	for _, group := range []string{"Server:", "Accounts and people:", "Changes:", "Money:", "Messages:", "This program:"} {
		if !strings.Contains(all, "\n"+group+"\n  ") {
			t.Errorf("it lacks %s\n%s", group, all)
		}
	}
}

// --json is the same as -o json, and excludes other formats.
func TestJSON_isAForm(t *testing.T) {
	t.Parallel()
	if out, _ := plain(t, exitOK, "approvals", "kinds", "--json"); !strings.HasPrefix(out, "[\n") {
		t.Errorf("it prints %.100s", out)
	}
	if _, errs := plain(t, exitUsage, "approvals", "kinds", "--json", "-o", "csv"); !strings.Contains(errs, "exclude each other") {
		t.Errorf("both: %s", errs)
	}
}

func TestComplete_line(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"payouts f":                   {"find"},
		"payouts re":                  {"references", "refund", "resolve"},
		"payouts list x --stat":       {"--status"},
		"payouts list x --status s":   {"success", "submitted"},
		"payouts list x --status ":    {"success", "submitted", "pending", "failed", "invalid", "declined"},
		"payouts stuck --page-size 5": nil,
		"payouts turned --page-s":     {"--page-size"},
		"completion ":                 {"bash", "zsh", "fish"},
		"compl":                       {"completion"}, // without the hidden command
		"nonsense x":                  nil,
	} {
		out, _ := plain(t, exitOK, append([]string{"complete", "--"}, strings.Split(line, " ")...)...)
		got := strings.Fields(out)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q becomes %q, want %q", line, got, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if script, _ := plain(t, exitOK, "completion", shell); !strings.Contains(script, "complete -- ") {
			t.Errorf("the script for %s is\n%s", shell, script)
		}
	}
	plain(t, exitUsage, "completion", "cmd")
}

func TestVariable_unknownProposesTheNearest(t *testing.T) {
	for name, nearest := range map[string]string{"MAKOLA_DATABSE": "MAKOLA_DATABASE", "MAKOLA_MASTERKEY": "MAKOLA_MASTER_KEY", "MAKOLA_HUBTEL_CLIENT_SECERT": "MAKOLA_HUBTEL_CLIENT_SECRET"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "x")
			for _, args := range [][]string{{"tenant", "list", "--data", t.TempDir()}, {"serve", "--data", t.TempDir()}} {
				if _, errs := plain(t, exitUsage, args...); !strings.Contains(errs, name+". Did you mean "+nearest+"?") {
					t.Errorf("%v says %s", args, errs)
				}
			}
			plain(t, exitOK, "version")
			t.Setenv(name, "") // counts as unset
			plain(t, exitUnavailable, "tenant", "list", "--data", t.TempDir())
		})
	}
	// Variables that Kubernetes sets for a service named makola or makola-api are not reported as mistakes.
	for _, name := range []string{"MAKOLA_SERVICE_HOST", "MAKOLA_SERVICE_PORT_HTTP", "MAKOLA_PORT", "MAKOLA_PORT_8080_TCP_ADDR", "MAKOLA_API_PORT_80_TCP", "MAKOLA_LISTEN"} {
		t.Setenv(name, "127.0.0.1:0")
	}
	plain(t, exitUnavailable, "tenant", "list", "--data", t.TempDir())
}

func TestFlag_wrongValueListsTheRightOnes(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--status must be success, submitted, pending, failed, invalid or declined, not lost\n": {"payouts", "list", "x", "--status", "lost"},
		"--for must be customer, house or provider, not me\n":                                   {"payouts", "decide", "x", "--for", "me", "--reason", "x"},
		"<kind> must be network, service or bank, not ship\n":                                   {"catalogue", "set", "ship", "x", "--reason", "x"},
	} {
		if _, errs := plain(t, exitUsage, args...); !strings.Contains(errs, want) {
			t.Errorf("it says %s", errs)
		}
	}
}

func TestMigrateUp_reportsItsWork(t *testing.T) {
	t.Parallel()
	known, err := db.KnownMigrations()
	if err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"--data", t.TempDir()}, {"--database", dbtest.EmptyURL(t)}} {
		w := where{t: t, flags: flags}
		out, errs := w.run(exitOK, "migrate", "up", "-o", "csv")
		if rows := strings.Count(out, "\n") - 1; rows != len(known) || !strings.Contains(errs, "Applied ") {
			t.Errorf("%d rows, %s", rows, errs)
		}
		out, errs = w.run(exitOK, "migrate", "up", "-o", "csv")
		if strings.Count(out, "\n") != 1 || !strings.Contains(errs, "Nothing to apply") {
			t.Errorf("the second time: %s%s", out, errs)
		}
	}
}
