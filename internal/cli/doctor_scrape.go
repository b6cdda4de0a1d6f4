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
	transport := &http.Transport{} // without the proxy of the environment
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("its answer is %s: is MAKOLA_METRICS_TOKEN the server's?", answer.Status)
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
		return nil, errors.New("what answers there is no Makola")
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
		d.fail(check, fmt.Sprintf("the server takes no requests: %s", cmp.Or(body.Message, fmt.Sprint("/readyz answers ", status))), "look at the server's log and at the other lines here")
	case len(body.Refused) > 0:
		d.fail(check, "the server refuses: "+strings.Join(body.Refused, "; "), "look at the lines of the database, the disk and the recovery")
	default:
		d.ok(check, "the server is %s", cmp.Or(body.Message, "ready"))
	}
}

// running makes the checks that need the running server, by its probe and its metrics.
func (d *doctor) running(ctx context.Context) {
	d.readiness(ctx)
	if !d.Metrics() {
		d.warn("server", "metrics are off, so trusted proxies, binds and the last check of the books are not known", "let MAKOLA_METRICS_LISTEN be an address on loopback")
		return
	}
	all, err := d.scrape(ctx)
	if err != nil {
		d.warn("server", fmt.Sprintf("no server answers at %s, so trusted proxies, binds and the last check of the books are not known: %v", d.MetricsListen, err),
			"run makola doctor where the server runs, with its settings")
		return
	}
	build := all.named("makola_build_info")
	version := Version()
	if theirs := build[0].labels["version"]; theirs != version {
		d.warn("server", fmt.Sprintf("the server that runs is %s, this program is %s", theirs, version), "restart the server with this program, or look with that one")
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
	fix := "name the proxy in MAKOLA_TRUSTED_PROXIES, if it is yours: until then lists of addresses judge the proxy and not the customer"
	switch {
	case ignored > 0 && believed == 0:
		d.fail("trusted proxies", fmt.Sprintf("%.0f requests since the start came with an X-Forwarded-For that was not believed, none with one that was; trusted are %s", ignored, list), fix)
	case ignored > 0:
		d.warn("trusted proxies", fmt.Sprintf("%.0f requests since the start came with an X-Forwarded-For that was not believed, %.0f with one that was; trusted are %s", ignored, believed, list), fix)
	case direct > 0 && believed == 0:
		d.warn("trusted proxies", fmt.Sprintf("%.0f requests of trusted proxies came without X-Forwarded-For, none with it; trusted are %s", direct, list),
			"have the proxy append the client's address to X-Forwarded-For")
	default:
		d.ok("trusted proxies", "%.0f requests since the start came through them; trusted are %s", believed, list)
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
	const fix = "look for the bind in the server's log: a password, an address that the operator does not know, or its outage"
	switch {
	case down > 0:
		d.fail("binds", fmt.Sprintf("%.0f are down", down), fix)
	case all.sum("makola_sms_connected", "", "") == 0:
		d.warn("binds", "this node has none; one node has them at a time", "look at the other nodes; if none has any: "+fix)
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
			d.fail(check, fmt.Sprintf("it found %.0f faults", faults), "makola ledger check, makola audit verify, then docs/runbooks/ledger-fault.md")
			continue
		}
		if s.value == 0 {
			d.warn(check, "this node has made none since it started", "wait ten minutes, or look at the other nodes")
			continue
		}
		age := d.clock.Since(time.Unix(int64(s.value), 0)).Round(time.Second)
		if age > checkFail {
			d.fail(check, fmt.Sprintf("made %s ago", age), "look at makola_periodic_seconds and at the server's log; makola ledger check makes one now")
			continue
		}
		d.ok(check, "made %s ago, without a fault", age)
	}
	for _, s := range all.named("makola_ledger_full_check_timestamp_seconds") {
		check := "last check of every row of " + s.labels["book"]
		age := d.clock.Since(time.Unix(int64(s.value), 0)).Round(time.Second)
		switch {
		case s.value == 0:
			d.warn(check, "this node knows of none since it started", "wait ten minutes, or look at the other nodes")
		case age > fullCheckFail:
			d.fail(check, fmt.Sprintf("ended %s ago", age), "look at makola_periodic_seconds and at the server's log")
		default:
			d.ok(check, "ended %s ago", age)
		}
	}
}
