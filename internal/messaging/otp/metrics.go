package otp

import (
	"github.com/makola/makola/internal/msisdn"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics count the codes of this node. The labels are few and fixed: never a tenant, never a number.
type metrics struct {
	sent       *prometheus.CounterVec
	verified   *prometheus.CounterVec
	tapsClosed *prometheus.CounterVec
}

func newMetrics() metrics {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return metrics{
		sent:       vec("makola_otp_sent_total", "One-time passwords accepted, by number range. A range whose passwords are rarely verified may be used for SMS pumping.", "prefix"),
		verified:   vec("makola_otp_verifications_total", "Codes that were checked, by number range and result: right, wrong, closed (expired, used, void, unknown or no tries left).", "prefix", "result"),
		tapsClosed: vec("makola_otp_taps_closed_total", "Times that this node closed a customer's range of numbers, because too few one-time passwords to it are verified.", "prefix"),
	}
}

// The results of a verification.
const (
	resultRight  = "right"
	resultWrong  = "wrong"
	resultClosed = "closed"
)

// networkLength is the length of the prefix in a metric's label: the digits of the country and the network.
const networkLength = 5

func networkOf(n msisdn.MSISDN) string { return string(n[:min(len(n), networkLength)]) }

func (m metrics) countVerified(by msisdn.MSISDN, result string) {
	m.verified.WithLabelValues(networkOf(by), result).Inc()
}
