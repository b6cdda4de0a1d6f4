package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/makola/makola/internal/alerts"
	"github.com/makola/makola/internal/app"
)

// printAlerts returns the table of alerts.
func printAlerts(*testing.T) string {
	var out table
	out.head("rule", "alert on", "summary", "page")
	for _, a := range alerts.All() {
		name := code(a.Name)
		if a.Severity == alerts.Ticket {
			name += " (ticket)"
		}
		out.row(name, a.When, a.Text(), fmt.Sprintf("[%s](../runbooks/%s.md)", a.Runbook, a.Runbook))
	}
	return out.String()
}

// The files for Prometheus and Grafana match the tables in the code.
func TestAlerts_filesMatchTables(t *testing.T) {
	for name, text := range map[string]string{"deploy/alerts.yml": alerts.Rules(), "deploy/dashboard.json": alerts.Dashboard()} {
		if *update {
			if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if was := read(t, name); was != text {
			t.Errorf("%s is not what its table says; go test ./docs -update writes it. First difference:\n%s", name, difference(was, text))
		}
	}
}

// runbookParts are the headings of a runbook, in their order.
const runbookParts = "What it means\nLook at\nDo\nWhen it is over"

// A runbook has the same four parts on every page. Its third line names the alerts that lead to it, or the symptom.
// docs/operations.md lists both, so that a reader finds the page from an alert and from a symptom.
func TestRunbooks_formAndAlerts(t *testing.T) {
	leading := map[string][]string{}
	for _, a := range alerts.All() {
		leading[a.Page()] = append(leading[a.Page()], fmt.Sprintf("`%s` (%s)", a.Name, a.Severity))
		if !exists(a.Page()) {
			t.Errorf("%s leads to %s, which is not there", a.Name, a.Page())
		}
	}
	index := read(t, "docs/operations.md")
	for _, name := range documents(t) {
		page, is := strings.CutPrefix(name, "docs/runbooks/")
		if !is {
			continue
		}
		text := read(t, name)
		var parts []string
		for _, h := range heading.FindAllStringSubmatch(text, -1)[1:] {
			parts = append(parts, h[1])
		}
		if strings.Join(parts, "\n") != runbookParts {
			t.Errorf("%s has the parts %q, want %q", name, parts, runbookParts)
		}
		opening := strings.Split(text, "\n")[2]
		named := regexp.MustCompile("`Makola[A-Za-z]+` \\([a-z]+\\)").FindAllString(opening, -1)
		slices.Sort(named)
		want := slices.Sorted(slices.Values(leading[name]))
		if !slices.Equal(named, want) || len(want) == 0 && !strings.HasPrefix(opening, "Symptom: ") && !strings.HasPrefix(opening, "Alerts: none") {
			t.Errorf("%s opens with %q; the alerts %q lead to it", name, opening, want)
		}
		row := regexp.MustCompile(`(?m)^\|.*\(runbooks/` + regexp.QuoteMeta(page) + `\) \|(.*)\|$`).FindStringSubmatch(index)
		if row == nil {
			t.Errorf("docs/operations.md does not list %s", name)
			continue
		}
		for _, a := range want {
			if alert, _, _ := strings.Cut(a, " "); !strings.Contains(row[1], alert) {
				t.Errorf("docs/operations.md does not list %s beside %s", alert, name)
			}
		}
	}
}

// metricName finds metrics of ours in an expression.
var metricName = regexp.MustCompile(`makola_[a-z_]+`)

// Alerts and the dashboard name only existing metrics.
func TestAlerts_nameExistingMetrics(t *testing.T) {
	found := measured(t)
	known := func(where, text string) {
		for _, name := range metricName.FindAllString(text, -1) {
			name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			if _, there := found[name]; !there {
				t.Errorf("%s names the metric %s, which there is not", where, name)
			}
		}
	}
	for _, a := range alerts.All() {
		known(a.Name, a.Expr+a.When)
	}
	for _, p := range alerts.Panels() {
		known(p.Title, strings.Join(p.Exprs, " "))
	}
}

// Names of metrics follow the conventions of Prometheus.
func TestMetrics_namedByConvention(t *testing.T) {
	serving(t, func(a *app.App) {
		registry := prometheus.NewRegistry()
		registry.MustRegister(a.Metrics())
		families, err := registry.Gather()
		if err != nil || len(families) < 20 {
			t.Fatalf("%d metrics, %v", len(families), err)
		}
		problems, err := promlint.NewWithMetricFamilies(families).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			if strings.HasPrefix(p.Metric, "makola_") {
				t.Errorf("%s: %s", p.Metric, p.Text)
			}
		}
	})
}
