package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// mostMetrics is the most that is read of a server's metrics, in bytes.
const mostMetrics = 8 << 20

// A reading is one value of a metric.
type reading struct {
	labels map[string]string
	value  float64
}

// readings are a server's gauges and counters by name.
type readings map[string][]reading

// named are the values of a metric; none where the server has no such metric.
func (s readings) named(name string) []reading { return s[name] }

// sum adds the values of a metric whose label has a value; without a label, all of them.
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
