package delivery

import (
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/smstext"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics count the messages of this node. The labels are few and fixed: never a tenant, never a number.
type metrics struct {
	messages *prometheus.CounterVec
	segments *prometheus.CounterVec
	receipts *prometheus.CounterVec
	reports  *prometheus.CounterVec
}

func newMetrics() metrics {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return metrics{
		messages: vec("makola_sms_messages_total", "Messages submitted to operators, by the outcome of the submit.", "network", "status"),
		segments: vec("makola_sms_segments_total", "Segments that operators accepted.", "network", "encoding"),
		receipts: vec("makola_sms_receipts_total", "Receipts by reported state.", "network", "state"),
		reports:  vec("makola_sms_receipt_matches_total", "Receipts by whether their message was known: matched, repeated, early.", "result"),
	}
}

// receiptMatch is the result of matching a receipt.
type receiptMatch string

const (
	matchedPart   receiptMatch = "matched"
	matchedRepeat receiptMatch = "repeated"
	matchedNone   receiptMatch = "early"
)

func (m metrics) submitted(results []result, encoding smstext.Encoding) {
	for _, r := range results {
		n := msisdn.MSISDN(r.message.Recipient).NetworkLabel()
		m.messages.WithLabelValues(n, string(r.message.Status)).Inc()
		if r.message.Accepted > 0 {
			m.segments.WithLabelValues(n, string(encoding)).Add(float64(r.message.Accepted))
		}
	}
}

func (m metrics) received(r provider.Receipt, t receiptMatch) {
	m.reports.WithLabelValues(string(t)).Inc()
	if t != matchedRepeat {
		m.receipts.WithLabelValues(r.To.NetworkLabel(), partStates[r.State]).Inc()
	}
}
