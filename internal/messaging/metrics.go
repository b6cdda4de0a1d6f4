package messaging

import (
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/smstext"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics count the messages and codes of this node. The labels are few and fixed: never a tenant, never a number.
type metrics struct {
	messages *prometheus.CounterVec
	segments *prometheus.CounterVec
	receipts *prometheus.CounterVec
	reports  *prometheus.CounterVec
	sent     *prometheus.CounterVec
	verified *prometheus.CounterVec

	tapsClosed *prometheus.CounterVec
}

func newMetrics() metrics {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return metrics{
		messages: vec("makola_sms_messages_total", "Messages handed to operators, by what became of the submit.", "network", "status"),
		segments: vec("makola_sms_segments_total", "Segments that operators took.", "network", "encoding"),
		receipts: vec("makola_sms_receipts_total", "Receipts by what they said.", "network", "state"),
		reports:  vec("makola_sms_receipt_matches_total", "Receipts by whether their message was known: matched, repeated, early.", "result"),
		sent:     vec("makola_otp_sent_total", "One-time passwords accepted, by number range. Ranges that are rarely confirmed are pumped.", "prefix"),
		verified: vec("makola_otp_verifications_total", "Codes told, by number range: right, wrong, closed (expired, used, void, unknown or out of tries).", "prefix", "result"),

		tapsClosed: vec("makola_otp_taps_closed_total", "Times that this node closed a customer's range of numbers, because too few one-time passwords to it are verified.", "prefix"),
	}
}

// The results of a verification.
const (
	otpRight  = "right"
	otpWrong  = "wrong"
	otpClosed = "closed"
)

// receiptMatch is the result of matching a receipt.
type receiptMatch string

const (
	matchedPart   receiptMatch = "matched"
	matchedRepeat receiptMatch = "repeated"
	matchedNone   receiptMatch = "early"
)

// network is the label of a number, by the number's range.
func network(n msisdn.MSISDN) string {
	if likely, ok := n.LikelyNetwork(); ok {
		return string(likely)
	}
	return "OTHER"
}

func (m metrics) submitted(results []result, encoding smstext.Encoding) {
	for _, r := range results {
		n := network(msisdn.MSISDN(r.message.Recipient))
		m.messages.WithLabelValues(n, string(r.message.Status)).Inc()
		if r.message.Accepted > 0 {
			m.segments.WithLabelValues(n, string(encoding)).Add(float64(r.message.Accepted))
		}
	}
}

func (m metrics) received(r provider.Receipt, t receiptMatch) {
	m.reports.WithLabelValues(string(t)).Inc()
	if t != matchedRepeat {
		m.receipts.WithLabelValues(network(r.To), partStates[r.State]).Inc()
	}
}

// prefixLength is the length of a number range in a metric: the country's code and the network's.
const prefixLength = 5

func prefix(n msisdn.MSISDN) string { return string(n[:min(len(n), prefixLength)]) }

func (m metrics) otpSent(to msisdn.MSISDN) { m.sent.WithLabelValues(prefix(to)).Inc() }

func (m metrics) otpVerified(by msisdn.MSISDN, result string) {
	m.verified.WithLabelValues(prefix(by), result).Inc()
}
