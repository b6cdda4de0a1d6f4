package alerts

import "encoding/json"

// Panel is one picture of the dashboard.
type Panel struct {
	Title string
	Unit  string // unit of the values, as Grafana names it
	Exprs []string
}

// Panels returns the pictures of the dashboard, two in a row.
func Panels() []Panel {
	return []Panel{
		{"Accepted and settled payments per second", "ops", []string{`sum by (product, status) (rate(makola_payments_total[5m]))`}},
		{"Time from acceptance to the final status, 99th percentile", "s", []string{`histogram_quantile(0.99, sum by (le, product) (rate(makola_payment_settle_seconds_bucket[5m])))`}},
		{"Settled payments per second, by provider", "ops", []string{`sum by (provider, product, status) (rate(makola_payments_total{status!="pending"}[5m]))`}},
		{"Time to the final status, median and 95th percentile, by provider", "s", []string{
			`histogram_quantile(0.5, sum by (le, provider) (rate(makola_payment_settle_seconds_bucket[5m])))`,
			`histogram_quantile(0.95, sum by (le, provider) (rate(makola_payment_settle_seconds_bucket[5m])))`}},
		{"Requests per second", "reqps", []string{`sum by (code) (rate(makola_http_requests_total[5m]))`}},
		{"Time to answer, 99th percentile", "s", []string{`histogram_quantile(0.99, sum by (le, route) (rate(makola_http_request_seconds_bucket[5m])))`}},
		{"Open payments of unknown outcome", "short", []string{`max by (provider, mode) (makola_unknown_outcome)`}},
		{"Amounts of open payments of unknown outcome, in cedis", "short", []string{`max by (provider, mode) (makola_unknown_outcome_ghs)`}},
		{"Floats at providers by our ledger, in cedis", "short", []string{`max by (provider, account, mode) (makola_provider_float_ghs)`}},
		{"Answers of providers per second", "ops", []string{`sum by (provider, operation, class) (rate(makola_provider_requests_total[5m]))`}},
		{"Providers' time to answer, 99th percentile", "s", []string{`histogram_quantile(0.99, sum by (le, provider, operation) (rate(makola_provider_request_seconds_bucket[5m])))`}},
		{"Jobs that are not finished", "short", []string{`max by (queue) (makola_queue_depth)`}},
		{"Age of the oldest due job", "s", []string{`max by (queue) (makola_queue_oldest_seconds)`}},
		{"Delivery attempts of webhooks per second", "ops", []string{`sum by (result) (rate(makola_webhook_attempts_total[5m]))`}},
		{"Messages submitted to mobile operators per second", "ops", []string{`sum by (network, status) (rate(makola_sms_messages_total[5m]))`}},
		{"Binds", "short", []string{`max by (mode) (makola_sms_connected)`, `max by (mode) (makola_sms_binds_down)`}},
		{"Books: faults and imbalance", "short", []string{`max by (book) (makola_ledger_faults)`, `max by (asset) (makola_ledger_imbalance_pesewas)`}},
		{"Connections to the database: in use, and waits for one", "short", []string{`sum by (instance) (makola_db_pool_in_use)`, `sum by (instance) (rate(makola_db_pool_wait_seconds_total[5m]))`}},
		{"Size of the database", "bytes", []string{`max(makola_db_bytes)`}},
		{"Growth of the database in a day, and at this rate in 30 days", "bytes", []string{`max(delta(makola_db_bytes[1d]))`, `30 * max(delta(makola_db_bytes[1d]))`}},
		{"Change requests awaiting approval", "short", []string{`max(makola_acts_waiting)`}},
		{"Age of the last backup", "s", []string{`time() - max(makola_backup_last_timestamp_seconds)`}},
	}
}

// Dashboard returns the file of Grafana (deploy/dashboard.json).
func Dashboard() string {
	type object = map[string]any
	source := object{"type": "prometheus", "uid": "${source}"}
	var list []object
	for n, p := range Panels() {
		var targets []object
		for i, expr := range p.Exprs {
			targets = append(targets, object{"refId": string(rune('A' + i)), "expr": expr, "datasource": source})
		}
		list = append(list, object{"id": n + 1, "type": "timeseries", "title": p.Title, "datasource": source, "targets": targets,
			"fieldConfig": object{"defaults": object{"unit": p.Unit}, "overrides": []any{}}, "gridPos": object{"h": 8, "w": 12, "x": n % 2 * 12, "y": n / 2 * 8}})
	}
	text, err := json.MarshalIndent(object{"title": "Makola", "uid": "makola", "schemaVersion": 38, "refresh": "30s", "time": object{"from": "now-6h", "to": "now"},
		"templating": object{"list": []object{{"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}}}, "panels": list}, "", "  ")
	if err != nil {
		panic(err)
	}
	return string(text) + "\n"
}
