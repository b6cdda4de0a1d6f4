// Package alerts holds the alerts of an installation and the panels of its dashboard, from which deploy/alerts.yml,
// deploy/dashboard.json and the table in docs/operations/monitoring.md are printed. The program itself does not import it.
package alerts

import "fmt"

// Severity tells how soon an operator must act on an alert.
type Severity string

// The severities.
const (
	Page   Severity = "page"   // at any hour
	Ticket Severity = "ticket" // an operator may act in the morning
)

// Alert is one rule of Prometheus.
type Alert struct {
	Name     string
	Severity Severity
	Expr     string
	For      string // how long Expr must be true; empty: the alert fires at once
	When     string // Expr and For as a sentence
	Summary  string // what is broken, with the labels of Expr, and the first step
	Runbook  string // a page of docs/runbooks, without .md
	// Fires and Quiet are series with which the alert fires and does not fire, in the notation of promtool with one value a
	// minute for five hours.
	Fires, Quiet []string
}

// series returns a series with a constant value.
func series(name string, value int) string { return fmt.Sprintf("%s=%d+0x400", name, value) }

// growing returns a series that grows by an amount each minute.
func growing(name string, by int) string { return fmt.Sprintf("%s=0+%dx400", name, by) }

// stepping returns a series that changes once, two minutes before the end.
func stepping(name string, before, after int) string {
	return fmt.Sprintf("%s=%d+0x297 %d+0x100", name, before, after)
}

// ending returns a series that has no value in the last half hour.
func ending(name string, value int) string { return fmt.Sprintf("%s=%d+0x270 stale", name, value) }

// above returns an alert on a gauge whose greatest value of all nodes is above a bound, for each value of the labels by.
func above(name, metric, labels, by string, bound int) Alert {
	expr := fmt.Sprintf("max(%s) > %d", metric+selector(labels), bound)
	if by != "" {
		expr = fmt.Sprintf("max by (%s) (%s) > %d", by, metric+selector(labels), bound)
	}
	return Alert{Name: name, Severity: Page, Expr: expr, Fires: []string{series(metric+selector(labels), bound+1)}, Quiet: []string{series(metric+selector(labels), bound)}}
}

func selector(labels string) string {
	if labels == "" {
		return ""
	}
	return "{" + labels + "}"
}
