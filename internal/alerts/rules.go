package alerts

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// label finds the labels of an alert in its summary.
var label = regexp.MustCompile(`\{\{ \$labels\.([a-z]+) \}\}`)

// Text returns the summary with the names of labels in place of their values, as Markdown.
func (a Alert) Text() string { return label.ReplaceAllString(a.Summary, "`$1`") }

// home is where the repository's files are read, for links in alerts.
const home = "https://github.com/makola/makola/blob/main/"

// Page returns the path of the runbook in the repository.
func (a Alert) Page() string { return "docs/runbooks/" + a.Runbook + ".md" }

// quoted returns a text as YAML, which accepts JSON.
func quoted(text string) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err) // a string has a form in JSON
	}
	return strings.TrimSpace(out.String())
}

// Rules returns deploy/alerts.yml.
func Rules() string {
	var out strings.Builder
	out.WriteString("# Rules for Prometheus. Printed from the table of alerts (internal/alerts): go test ./docs -update\ngroups:\n  - name: makola\n    rules:\n")
	for _, a := range All() {
		fmt.Fprintf(&out, "      - alert: %s\n        expr: %s\n", a.Name, quoted(a.Expr))
		if a.For != "" {
			fmt.Fprintf(&out, "        for: %s\n", a.For)
		}
		fmt.Fprintf(&out, "        labels:\n          severity: %s\n        annotations:\n          summary: %s\n          runbook: %s\n          runbook_url: %s\n",
			a.Severity, quoted(a.Summary), quoted(a.Page()), quoted(home+a.Page()))
	}
	return out.String()
}
