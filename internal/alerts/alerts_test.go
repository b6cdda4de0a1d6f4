package alerts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// promtool checks the rules and plays each alert twice: with series for which it fires, with every label that its summary names,
// and with series for which it does not fire.
func TestAlertRules_fire(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is missing; scripts/tools.sh installs it")
	}
	rules, plays := filepath.Join(t.TempDir(), "alerts.yml"), filepath.Join(t.TempDir(), "plays.yml")
	for name, text := range map[string]string{rules: Rules(), plays: play(rules)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", rules}, {"test", "rules", plays}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args[:2], " "), err, out)
		}
	}
}

// play returns the test file for promtool. It plays every alert twice.
func play(rules string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "rule_files: [%s]\nevaluation_interval: 5m\ntests:\n", quoted(rules))
	for _, a := range All() {
		for _, fires := range []bool{true, false} {
			input, samples := a.Quiet, ""
			if fires {
				input, samples = a.Fires, "{value: 1}"
			}
			fmt.Fprintf(&out, "  - interval: 1m\n    name: %s\n    input_series:\n", quoted(fmt.Sprintf("%s, fires: %t", a.Name, fires)))
			for _, s := range input {
				i := strings.LastIndex(s, "=")
				fmt.Fprintf(&out, "      - series: %s\n        values: %s\n", quoted(s[:i]), quoted(s[i+1:]))
			}
			labels := ""
			for _, found := range label.FindAllStringSubmatch(a.Summary, -1) {
				if fires {
					labels += "," + found[1] + `!=""`
				}
			}
			query := fmt.Sprintf(`count(ALERTS{alertname="%s",alertstate="firing"%s})`, a.Name, labels)
			fmt.Fprintf(&out, "    promql_expr_test:\n      - expr: %s\n        eval_time: 5h\n        exp_samples: [%s]\n", quoted(query), samples)
		}
	}
	return out.String()
}

// kept matches the labels that an expression keeps.
var kept = regexp.MustCompile(`by \(([a-z, ]+)\)`)

// A summary has two parts: what is broken, and the first step. It names each label that the rule keeps.
func TestSummaries_labelsAndFirstStep(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range All() {
		if seen[a.Name] {
			t.Errorf("%s is there twice", a.Name)
		}
		seen[a.Name] = true
		if a.When == "" || a.Runbook == "" || len(a.Fires) == 0 || len(a.Quiet) == 0 {
			t.Errorf("%s is not complete: %+v", a.Name, a)
		}
		if strings.Count(a.Summary, ". ") != 1 || !strings.HasSuffix(a.Summary, ".") {
			t.Errorf("%s: the summary is not what is broken, and the first step: %q", a.Name, a.Summary)
		}
		for _, list := range kept.FindAllStringSubmatch(a.Expr, -1) {
			for name := range strings.SplitSeq(list[1], ", ") {
				if name != "job" && !strings.Contains(a.Summary, "{{ $labels."+name+" }}") {
					t.Errorf("%s: the summary does not name the label %s: %q", a.Name, name, a.Summary)
				}
			}
		}
	}
}
