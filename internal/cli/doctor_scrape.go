package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// mostMetrics is the maximum number of bytes that are read of a server's metrics.
const mostMetrics = 8 << 20

// A reading is one value of a metric.
type reading struct {
	labels map[string]string
	value  float64
}

// readings are a server's gauges and counters by name.
type readings map[string][]reading

// named returns the values of a metric. It returns none if the server lacks the metric.
func (s readings) named(name string) []reading { return s[name] }

// sum adds the values of a metric whose label has a value. Without a label it adds all values.
func (s readings) sum(name, label, value string) (sum float64) {
	for _, one := range s[name] {
		if label == "" || one.labels[label] == value {
			sum += one.value
		}
	}
	return sum
}

// scrape reads the metrics of the server that runs on this machine.
func (d *doctor) scrape(ctx context.Context) (readings, error) {
	host, port, err := net.SplitHostPort(d.MetricsListen)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, d.Within)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	if token := d.MetricsToken.Reveal(); token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{} // the proxy of the environment is not used
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("its answer is %s: set MAKOLA_METRICS_TOKEN to the server's token", answer.Status)
	}
	return readReadings(io.LimitReader(answer.Body, mostMetrics))
}

// readReadings reads the text format of Prometheus.
func readReadings(from io.Reader) (readings, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(from)
	if err != nil {
		return nil, fmt.Errorf("its answer cannot be read: %w", err)
	}
	all := readings{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			one := reading{labels: map[string]string{}}
			for _, l := range m.GetLabel() {
				one.labels[l.GetName()] = l.GetValue()
			}
			switch {
			case m.GetGauge() != nil:
				one.value = m.GetGauge().GetValue()
			case m.GetCounter() != nil:
				one.value = m.GetCounter().GetValue()
			default:
				continue
			}
			all[name] = append(all[name], one)
		}
	}
	if len(all.named("makola_build_info")) == 0 {
		return nil, errors.New("the server at this address is not Makola")
	}
	return all, nil
}

// readiness checks that the server on this machine accepts requests, and reports the kinds of requests that it
// refuses.
func (d *doctor) readiness(ctx context.Context) {
	const check = "readiness"
	ctx, cancel := context.WithTimeout(ctx, d.Within)
	defer cancel()
	ask, err := prober(d.Listen, d.TLSCert, "/readyz")
	if err != nil {
		d.fail(check, err.Error(), "correct MAKOLA_LISTEN")
		return
	}
	status, body, err := ask(ctx)
	switch {
	case err != nil:
		d.warn(check, fmt.Sprintf("no server answers at %s: %v", d.Listen, err), "run makola doctor where the server runs, with its settings")
	case status != http.StatusOK:
		d.fail(check, fmt.Sprintf("the server accepts no requests: %s", cmp.Or(body.Message, fmt.Sprint("/readyz answers ", status))), "check the server's log and the other lines of this report")
	case len(body.Refused) > 0:
		d.fail(check, "the server refuses: "+strings.Join(body.Refused, "; "), "check the lines of the database, the disk and the recovery")
	default:
		d.ok(check, "the server is %s", cmp.Or(body.Message, "ready"))
	}
}

// running makes the checks that need the running server, by its probe and its metrics.
func (d *doctor) running(ctx context.Context) {
	d.readiness(ctx)
	if !d.Metrics() {
		d.warn("server", "metrics are off, so trusted proxies, binds and the last check of the books are unknown", "set MAKOLA_METRICS_LISTEN to an address on loopback")
		return
	}
	all, err := d.scrape(ctx)
	if err != nil {
		d.warn("server", fmt.Sprintf("no server answers at %s, so trusted proxies, binds and the last check of the books are unknown: %v", d.MetricsListen, err),
			"run makola doctor where the server runs, with its settings")
		return
	}
	build := all.named("makola_build_info")
	version := Version()
	if theirs := build[0].labels["version"]; theirs != version {
		d.warn("server", fmt.Sprintf("the running server is %s, this program is %s", theirs, version), "restart the server with this program, or run the server's program")
	} else {
		d.ok("server", "%s runs", version)
	}
	d.proxies(all)
	d.binds(all)
	d.books(all)
}

// proxies compares --trusted-proxy with the requests of the server. If an address sends X-Forwarded-For and is not
// trusted, the setting probably lacks this proxy. Allow-lists then check the proxy's address instead of the
// customer's.
func (d *doctor) proxies(all readings) {
	ignored, believed := all.sum("makola_http_forwarded_total", "peer", "unknown"), all.sum("makola_http_forwarded_total", "peer", "trusted")
	direct := all.sum("makola_http_forwarded_total", "peer", "silent")
	names := make([]string, len(d.TrustedProxies))
	for i, p := range d.TrustedProxies {
		names[i] = p.String()
	}
	list := cmp.Or(strings.Join(names, ", "), "none")
	fix := "if the proxy is yours, add it to MAKOLA_TRUSTED_PROXIES: until then allow-lists check the proxy's address instead of the customer's"
	switch {
	case ignored > 0 && believed == 0:
		d.fail("trusted proxies", fmt.Sprintf("%.0f requests since the start had an X-Forwarded-For of an untrusted proxy, none of a trusted one; trusted are %s", ignored, list), fix)
	case ignored > 0:
		d.warn("trusted proxies", fmt.Sprintf("%.0f requests since the start had an X-Forwarded-For of an untrusted proxy, %.0f of a trusted one; trusted are %s", ignored, believed, list), fix)
	case direct > 0 && believed == 0:
		d.warn("trusted proxies", fmt.Sprintf("None of the %.0f requests of trusted proxies had an X-Forwarded-For; trusted are %s", direct, list),
			"configure the proxy to append the client's address to X-Forwarded-For")
	default:
		d.ok("trusted proxies", "%.0f requests since the start came through trusted proxies; trusted are %s", believed, list)
	}
}

// binds checks the connections with message centres.
func (d *doctor) binds(all readings) {
	connected := all.named("makola_sms_connected")
	if len(connected) == 0 {
		d.ok("binds", "no message centre is configured")
		return
	}
	down := all.sum("makola_sms_binds_down", "", "")
	const fix = "search the server's log for the bind: usual causes are the password, an address that the operator does not allow, or an outage"
	switch {
	case down > 0:
		d.fail("binds", fmt.Sprintf("%.0f are down", down), fix)
	case all.sum("makola_sms_connected", "", "") == 0:
		d.warn("binds", "this node has no binds; only one node has them at a time", "check the other nodes; if no node has binds: "+fix)
	default:
		d.ok("binds", "all are up")
	}
}

// books checks the last check of each of the books.
func (d *doctor) books(all readings) {
	for _, s := range all.named("makola_ledger_last_check_timestamp_seconds") {
		book := s.labels["book"]
		check := "last check of " + book
		if faults := all.sum("makola_ledger_faults", "book", book); faults > 0 {
			d.fail(check, fmt.Sprintf("it found %.0f faults", faults), "run makola ledger check and makola audit verify, then follow docs/runbooks/ledger-fault.md")
			continue
		}
		if s.value == 0 {
			d.warn(check, "this node has made no check since it started", "wait ten minutes, or check the other nodes")
			continue
		}
		age := d.clock.Since(time.Unix(int64(s.value), 0)).Round(time.Second)
		if age > checkFail {
			d.fail(check, fmt.Sprintf("made %s ago", age), "check makola_periodic_seconds and the server's log; makola ledger check makes a check now")
			continue
		}
		d.ok(check, "made %s ago, without a fault", age)
	}
	for _, s := range all.named("makola_ledger_full_check_timestamp_seconds") {
		check := "last check of every row of " + s.labels["book"]
		age := d.clock.Since(time.Unix(int64(s.value), 0)).Round(time.Second)
		switch {
		case s.value == 0:
			d.warn(check, "this node has seen no full check since it started", "wait ten minutes, or check the other nodes")
		case age > fullCheckFail:
			d.fail(check, fmt.Sprintf("ended %s ago", age), "check makola_periodic_seconds and the server's log")
		default:
			d.ok(check, "ended %s ago", age)
		}
	}
}
