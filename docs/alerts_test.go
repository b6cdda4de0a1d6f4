package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/makola/makola/internal/app"
)

// An alert is a line of the table of alerts, and a rule of deploy/alerts.yml.
type alert struct {
	name string
	page bool // somebody is called at any hour; else it waits for the morning
	expr string
	hold string // how long it must be so; empty: at once
	when string // the same in words
	why  string
	see  string // a link of docs/operations.md
	// fires and quiet are series by which it fires, and does not, in promtool's notation with a step of a minute.
	fires, quiet []string
}

// series writes one that stays at a value.
func series(name string, value int) string { return fmt.Sprintf("%s=%d+0x400", name, value) }

// growing writes one that grows by so much a minute.
func growing(name string, by int) string { return fmt.Sprintf("%s=0+%dx400", name, by) }

// above is an alert on a gauge that is above a bound.
func above(name, metric string, bound int) alert {
	expr := "max by (queue, book, mode, provider, work) (" + metric + ")"
	return alert{name: name, page: true, expr: fmt.Sprintf("%s > %d", expr, bound), fires: []string{series(metric, bound+1)}, quiet: []string{series(metric, bound)}}
}

// grows is an alert on a counter that grows.
func grows(name, metric string) alert {
	return alert{name: name, page: true, expr: "sum without (instance, job) (increase(" + metric + "[15m])) > 0", fires: []string{growing(metric, 1)}, quiet: []string{series(metric, 7)}}
}

func (a alert) says(when, why, see string) alert { a.when, a.why, a.see = when, why, see; return a }
func (a alert) lasting(hold string) alert        { a.hold = hold; return a }
func (a alert) ticket() alert                    { a.page = false; return a }

var alerts = []alert{
	{name: "MakolaLedgerContradicts", page: true, expr: `max by (book) (makola_ledger_faults{book!="audit"}) > 0 or max by (asset) (abs(makola_ledger_imbalance_pesewas)) > 0`,
		when: "`makola_ledger_faults` > 0, or `makola_ledger_imbalance_pesewas` not 0", why: "the ledger contradicts itself", see: "[ledger fault](#the-ledger-does-not-add-up)",
		fires: []string{series(`makola_ledger_imbalance_pesewas{asset="GHS"}`, -5)}, quiet: []string{series(`makola_ledger_imbalance_pesewas{asset="GHS"}`, 0), series(`makola_ledger_faults{book="payments"}`, 0)}},
	{name: "MakolaBooksUnchecked", page: true, expr: `time() - max by (book) (makola_ledger_last_check_timestamp_seconds) > 7200`, hold: "15m",
		when: "`makola_ledger_last_check_timestamp_seconds`: of a book, newest of all nodes older than two hours, for 15 minutes",
		why:  "no node checks: a check comes every ten minutes, and not before twenty times as long as it took; it is 0 from a node's start to its first", see: "[stuck queue](#the-queue-is-stuck)",
		fires: []string{series(`makola_ledger_last_check_timestamp_seconds{book="ledger"}`, 0)}, quiet: []string{growing(`makola_ledger_last_check_timestamp_seconds{book="ledger"}`, 60)}},
	above("MakolaAuditLogAltered", `makola_ledger_faults{book="audit"}`, 0).says("`makola_ledger_faults` of the book `audit` > 0", "the audit log is not as it was linked: somebody changed the database", "[audit log](#the-audit-log-was-changed)"),
	above("MakolaAuditUnlinked", "makola_audit_unlinked_seconds", 300).says("`makola_audit_unlinked_seconds` above 300", "entries of the audit log are not linked; the log says why", "[database down](#the-database-is-down)"),
	above("MakolaGlassBroken", "makola_break_glass", 0).says("`makola_break_glass` > 0", "a command was given with `--break-glass`: without a person, at once", "[a broken glass](#a-command-broke-the-glass)"),
	above("MakolaActsWait", "makola_acts_waiting", 0).lasting("4h").ticket().says("`makola_acts_waiting` > 0 for four hours", "an act waits for its checker; after 24 hours it expires", "[people](people.md)"),
	above("MakolaRecovery", "makola_recovery", 0).says("`makola_recovery` above 0", "the database may have gone back in time; 1: customers are kept out and wait for you", "[restore](#restore-from-a-backup)"),
	{name: "MakolaUnknownOutcomes", page: true, expr: `max by (provider, mode) (delta(makola_unknown_outcome[15m])) > 0 or max by (provider, mode) (makola_unknown_outcome_oldest_seconds) > 3600`,
		when: "`makola_unknown_outcome` grows, or `makola_unknown_outcome_oldest_seconds` above an hour", why: "money is held and its outcome is unknown", see: "[unknown outcomes](#unknown-outcomes-grow)",
		fires: []string{growing(`makola_unknown_outcome{provider="mtn",mode="live"}`, 1)}, quiet: []string{series(`makola_unknown_outcome{provider="mtn",mode="live"}`, 4), series(`makola_unknown_outcome_oldest_seconds{provider="mtn",mode="live"}`, 3600)}},
	above("MakolaStatusesUnanswered", "makola_payments_unanswered", 20).lasting("10m").says("`makola_payments_unanswered` above 20 for 10 minutes", "a status interface does not answer: refusals are held, and nothing ends", "[provider outage](#a-provider-is-down)"),
	grows("MakolaContradictions", "makola_payment_contradictions_total").says("`makola_payment_contradictions_total` grows", "a provider took its final word back, or a collection was paid late", "[unknown outcomes](#unknown-outcomes-grow)"),
	above("MakolaBreakersOpen", "makola_provider_breakers_open", 0).lasting("5m").says("`makola_provider_breakers_open` > 0 for 5 minutes", "a provider fails", "[provider outage](#a-provider-is-down)"),
	{name: "MakolaFloatLow", page: true, expr: `sum(max by (provider) (makola_provider_float_ghs{mode="live"})) < sum(increase(makola_payment_amount_ghs_total{product="payout",network!="WALLET"}[1d]))`,
		when: "`makola_provider_float_ghs` of all providers together below a day's payouts", why: "payouts will be refused", see: "[float low](#the-float-is-low)",
		fires: []string{series(`makola_provider_float_ghs{provider="mtn",mode="live"}`, 100), growing(`makola_payment_amount_ghs_total{product="payout"}`, 10)},
		quiet: []string{series(`makola_provider_float_ghs{provider="mtn",mode="live"}`, 9000), growing(`makola_payment_amount_ghs_total{product="payout"}`, 10), growing(`makola_payment_amount_ghs_total{product="payout",network="WALLET"}`, 1000)}},
	above("MakolaDeadLetters", "makola_queue_dead", 0).ticket().says("`makola_queue_dead` > 0", "jobs were given up", "[stuck queue](#the-queue-is-stuck)"),
	above("MakolaPaymentsOverdue", `makola_jobs_overdue_seconds{queue="payment"}`, 60).says("`makola_jobs_overdue_seconds` of `payment` above 60", "open payments are not worked on", "[stuck queue](#the-queue-is-stuck)"),
	above("MakolaWebhooksWait", `makola_queue_oldest_seconds{queue="webhook"}`, 600).ticket().says("`makola_queue_oldest_seconds` of `webhook` above 600", "deliveries wait", "[webhook backlog](#webhooks-pile-up)"),
	{name: "MakolaNodeBeginsNothing", page: true, expr: `makola_job_lease_holds == 0`, hold: "1m", when: "`makola_job_lease_holds` 0 for a minute", why: "this node begins no job: its database is down, full or read-only", see: "[database down](#the-database-is-down)",
		fires: []string{series("makola_job_lease_holds", 0)}, quiet: []string{series("makola_job_lease_holds", 1)}},
	{name: "MakolaKeeperStuck", page: true, expr: `makola_job_keeper_seconds > 60`, when: "`makola_job_keeper_seconds` above 60", why: "no node takes over what a dead node left, or fetches what had no room in memory; the log says so, too", see: "[database down](#the-database-is-down)",
		fires: []string{series("makola_job_keeper_seconds", 61)}, quiet: []string{series("makola_job_keeper_seconds", 60)}},
	above("MakolaPeriodicWorkStuck", "makola_periodic_seconds", 1800).ticket().says("`makola_periodic_seconds` above 1800, greatest of all nodes", "sweeps, checks or prunes do not end", "[stuck queue](#the-queue-is-stuck)"),
	{name: "MakolaMessagesWait", page: true, expr: `max by (queue) (makola_queue_oldest_seconds{queue="sms_small_live"}) > 120 or max by (queue) (makola_queue_oldest_seconds{queue="sms_bulk_live"}) > 3600`,
		when: "`makola_queue_oldest_seconds` of `sms_small_live` above 120, of `sms_bulk_live` above 3600", why: "accepted messages wait: no operator is connected, or no node takes them", see: "[messages wait](#messages-wait)",
		fires: []string{series(`makola_queue_oldest_seconds{queue="sms_bulk_live"}`, 3601)}, quiet: []string{series(`makola_queue_oldest_seconds{queue="sms_small_live"}`, 120), series(`makola_queue_oldest_seconds{queue="sms_bulk_live"}`, 3600)}},
	{name: "MakolaNoBind", page: true, expr: `max by (mode) (makola_sms_connected) == 0`, hold: "2m", when: "`makola_sms_connected` 0 on all nodes for 2 minutes", why: "no bind: nothing is sent, and receipts do not come", see: "[messages wait](#messages-wait)",
		fires: []string{series(`makola_sms_connected{mode="live",instance="a"}`, 0), series(`makola_sms_connected{mode="live",instance="b"}`, 0)}, quiet: []string{series(`makola_sms_connected{mode="live",instance="a"}`, 0), series(`makola_sms_connected{mode="live",instance="b"}`, 1)}},
	above("MakolaBindDown", "makola_sms_binds_down", 0).lasting("2m").says("`makola_sms_binds_down` > 0 for 2 minutes", "a bind is dead: its operator is sent nothing, or its receipts do not come", "[messages wait](#messages-wait)"),
	above("MakolaReceiptsUnmatched", "makola_sms_receipts_unmatched", 100).lasting("10m").ticket().says("`makola_sms_receipts_unmatched` above 100 for 10 minutes", "receipts keep matching no message: what was delivered reads submitted", "[receipts match nothing](#receipts-match-nothing)"),
	above("MakolaRangeClosed", "makola_otp_taps_closed", 0).ticket().says("`makola_otp_taps_closed` > 0", "one-time passwords of a customer to a range of numbers are refused: too few of them were verified", "[closed range](#a-range-of-numbers-is-closed)"),
	{name: "MakolaBackupOld", page: true, expr: `time() - max(makola_backup_last_timestamp_seconds) > 26 * 3600`, when: "`makola_backup_last_timestamp_seconds` older than 26 hours", why: "the last backup is old, or there is none (0): what was committed since would be forgotten", see: "[backups](#backups)",
		fires: []string{series("makola_backup_last_timestamp_seconds", -26*3600)}, quiet: []string{growing("makola_backup_last_timestamp_seconds", 60)}},
	above("MakolaDiskNearlyFull", "makola_disk_short", 0).says("`makola_disk_short` > 0", "the disk is nearly full: contacts, campaigns and sender IDs are refused, money goes on", "[database down](#the-database-is-down)"),
	grows("MakolaLeasesLost", "makola_job_leases_lost_total").ticket().says("`makola_job_leases_lost_total` grows", "a node was silent for too long", "[database down](#the-database-is-down)"),
	{name: "MakolaServerErrors", page: true, expr: `sum by (code) (rate(makola_http_requests_total{code=~"5.."}[5m])) > 0`, hold: "2m", when: "`makola_http_requests_total` with a code of 500 and above, for 2 minutes",
		why: "our fault, or the database's; without a line in the log a provider is paused or fails", see: "the log, by request id; [provider outage](#a-provider-is-down)",
		fires: []string{growing(`makola_http_requests_total{code="503"}`, 1)}, quiet: []string{growing(`makola_http_requests_total{code="422"}`, 9), series(`makola_http_requests_total{code="503"}`, 3)}},
}

// printAlerts is the table of alerts.
func printAlerts(*testing.T) string {
	var out table
	out.head("rule", "alert on", "because", "see")
	for _, a := range alerts {
		name := code(a.name)
		if !a.page {
			name += " (ticket)"
		}
		out.row(name, a.when, a.why, a.see)
	}
	return out.String()
}

// quoted writes a text as YAML, of which JSON is a part.
func quoted(text string) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err)
	}
	return strings.TrimSpace(out.String())
}

// anchor is where the runbook of an alert is.
var anchor = regexp.MustCompile(`\]\(([^)]*)\)`)

func (a alert) runbook() string {
	link := anchor.FindStringSubmatch(a.see)[1]
	if strings.HasPrefix(link, "#") {
		return "docs/operations.md" + link
	}
	return "docs/" + link
}

// alertRules is deploy/alerts.yml.
func alertRules() string {
	var out strings.Builder
	out.WriteString("# Rules for Prometheus. Written from the table of alerts (docs/alerts_test.go): go test ./docs -update\ngroups:\n  - name: makola\n    rules:\n")
	for _, a := range alerts {
		severity := "page"
		if !a.page {
			severity = "ticket"
		}
		fmt.Fprintf(&out, "      - alert: %s\n        expr: %s\n", a.name, quoted(a.expr))
		if a.hold != "" {
			fmt.Fprintf(&out, "        for: %s\n", a.hold)
		}
		fmt.Fprintf(&out, "        labels:\n          severity: %s\n        annotations:\n          summary: %s\n          runbook: %s\n", severity, quoted(strings.ReplaceAll(a.why, "`", "")), quoted(a.runbook()))
	}
	return out.String()
}

func TestFilesForPrometheusAndGrafanaAreWhatTheTablesSay(t *testing.T) {
	for name, text := range map[string]string{"deploy/alerts.yml": alertRules(), "deploy/dashboard.json": dashboard()} {
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

// metricName finds metrics of ours in an expression.
var metricName = regexp.MustCompile(`makola_[a-z_]+`)

func TestAlertsAndTheDashboardNameMetricsThatThereAre(t *testing.T) {
	found := measured(t)
	known := func(where, text string) {
		for _, name := range metricName.FindAllString(text, -1) {
			name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			if _, there := found[name]; !there {
				t.Errorf("%s names the metric %s, which there is not", where, name)
			}
		}
	}
	for _, a := range alerts {
		known(a.name, a.expr+a.when)
	}
	for _, p := range panels {
		known(p.title, strings.Join(p.exprs, " "))
	}
}

// promtool checks the rules and plays each of them: with a series by which it fires, and with one by which it does not.
func TestAlertRulesFireWhenTheyShouldAndOnlyThen(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is not here; scripts/tools.sh gets it")
	}
	rules, err := filepath.Abs(filepath.Join(root, "deploy/alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var plays strings.Builder
	fmt.Fprintf(&plays, "rule_files: [%s]\nevaluation_interval: 5m\ntests:\n", quoted(rules))
	for _, a := range alerts {
		for _, fires := range []bool{true, false} {
			input := a.quiet
			if fires {
				input = a.fires
			}
			fmt.Fprintf(&plays, "  - interval: 1m\n    name: %s\n    input_series:\n", quoted(fmt.Sprintf("%s, %t", a.name, fires)))
			for _, s := range input {
				i := strings.LastIndex(s, "=")
				fmt.Fprintf(&plays, "      - series: %s\n        values: %s\n", quoted(s[:i]), quoted(s[i+1:]))
			}
			count := 0
			if fires {
				count = 1
			}
			fmt.Fprintf(&plays, "    promql_expr_test:\n      - expr: %s\n        eval_time: 5h\n        exp_samples: [%s]\n", quoted(fmt.Sprintf(`count(ALERTS{alertname="%s",alertstate="firing"})`, a.name)), strings.Repeat("{value: 1}", count))
		}
	}
	file := filepath.Join(t.TempDir(), "plays.yml")
	if err := os.WriteFile(file, []byte(plays.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", rules}, {"test", "rules", file}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args[:2], " "), err, out)
		}
	}
}

// Names follow the conventions of Prometheus.
func TestMetricsAreNamedByTheConventions(t *testing.T) {
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

// A panel is one picture of the dashboard.
type panel struct {
	title, unit string
	exprs       []string
}

var panels = []panel{
	{"Payments accepted and settled, a second", "ops", []string{`sum by (product, status) (rate(makola_payments_total[5m]))`}},
	{"Time from acceptance to the final status, 99th percentile", "s", []string{`histogram_quantile(0.99, sum by (le, product) (rate(makola_payment_settle_seconds_bucket[5m])))`}},
	{"Requests a second", "reqps", []string{`sum by (code) (rate(makola_http_requests_total[5m]))`}},
	{"Time to answer, 99th percentile", "s", []string{`histogram_quantile(0.99, sum by (le, route) (rate(makola_http_request_seconds_bucket[5m])))`}},
	{"Open payments of unknown outcome", "short", []string{`max by (provider, mode) (makola_unknown_outcome)`}},
	{"Their amounts, in cedis", "short", []string{`max by (provider, mode) (makola_unknown_outcome_ghs)`}},
	{"Held at providers, in cedis", "short", []string{`max by (provider, mode) (makola_provider_float_ghs)`}},
	{"Providers' answers a second", "ops", []string{`sum by (provider, operation, class) (rate(makola_provider_requests_total[5m]))`}},
	{"Providers' time to answer, 99th percentile", "s", []string{`histogram_quantile(0.99, sum by (le, provider, operation) (rate(makola_provider_request_seconds_bucket[5m])))`}},
	{"Jobs that are not finished", "short", []string{`max by (queue) (makola_queue_depth)`}},
	{"Longest due", "s", []string{`max by (queue) (makola_queue_oldest_seconds)`}},
	{"Attempts to deliver webhooks, a second", "ops", []string{`sum by (result) (rate(makola_webhook_attempts_total[5m]))`}},
	{"Messages handed to operators, a second", "ops", []string{`sum by (network, status) (rate(makola_sms_messages_total[5m]))`}},
	{"Binds", "short", []string{`max by (mode) (makola_sms_connected)`, `max by (mode) (makola_sms_binds_down)`}},
	{"Books: faults and imbalance", "short", []string{`max by (book) (makola_ledger_faults)`, `max by (asset) (makola_ledger_imbalance_pesewas)`}},
	{"Connections to the database in use, and waited for", "short", []string{`sum by (instance) (makola_db_pool_in_use)`, `sum by (instance) (rate(makola_db_pool_wait_seconds_total[5m]))`}},
	{"Acts that wait", "short", []string{`max(makola_acts_waiting)`}},
	{"Age of the last backup", "s", []string{`time() - max(makola_backup_last_timestamp_seconds)`}},
}

// dashboard is deploy/dashboard.json, two panels in a row.
func dashboard() string {
	type object = map[string]any
	source := object{"type": "prometheus", "uid": "${source}"}
	var list []object
	for n, p := range panels {
		var targets []object
		for i, expr := range p.exprs {
			targets = append(targets, object{"refId": string(rune('A' + i)), "expr": expr, "datasource": source})
		}
		list = append(list, object{"id": n + 1, "type": "timeseries", "title": p.title, "datasource": source, "targets": targets,
			"fieldConfig": object{"defaults": object{"unit": p.unit}, "overrides": []any{}}, "gridPos": object{"h": 8, "w": 12, "x": n % 2 * 12, "y": n / 2 * 8}})
	}
	text, err := json.MarshalIndent(object{"title": "Makola", "uid": "makola", "schemaVersion": 38, "refresh": "30s", "time": object{"from": "now-6h", "to": "now"},
		"templating": object{"list": []object{{"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}}}, "panels": list}, "", "  ")
	if err != nil {
		panic(err)
	}
	return string(text) + "\n"
}
