package book

import "github.com/prometheus/client_golang/prometheus"

// counts are metrics of the payments on this node. Labels are few and fixed: never a tenant, never a reference.
type counts struct {
	payments *prometheus.CounterVec
	cedis    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	account  func(Payment) string
}

func newCounts(account func(Payment) string) counts {
	labels := []string{"product", "network", "provider"}
	return counts{
		account: account,
		payments: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_payments_total",
			Help: "Payments by each status that they reached, with pending for acceptance. provider is the provider at that time."}, append(labels, "status")),
		cedis: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_payment_amount_ghs_total",
			Help: "Amounts of the payments that succeeded, in cedis."}, append(labels, "account", "mode")),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "makola_payment_settle_seconds",
			Help: "From acceptance to the final status.", Buckets: []float64{.1, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86400}}, labels),
	}
}

// committed counts the payments of a committed transaction.
func (c counts) committed(inserts []*Payment, moves []move) {
	for _, pay := range inserts {
		if pay.Received() {
			continue // the sender's payment counts the transfer
		}
		c.payments.WithLabelValues(string(pay.Kind), pay.Channel, pay.Rail, string(pay.Status)).Inc()
		c.succeeded(*pay) // a transfer between wallets is final when it is accepted
	}
	for _, moved := range moves {
		pay := moved.row
		c.payments.WithLabelValues(string(pay.Kind), pay.Channel, pay.Rail, string(pay.Status)).Inc()
		c.succeeded(pay)
		if moved.was.Open() && !pay.Status.Open() {
			c.seconds.WithLabelValues(string(pay.Kind), pay.Channel, pay.Rail).Observe(pay.SettledAt.Sub(pay.CreatedAt).Seconds())
		}
	}
}

// succeeded adds the amount of a successful payment.
func (c counts) succeeded(pay Payment) {
	if pay.Status == StatusSuccess {
		account := ""
		if pay.Rail != "" {
			account = c.account(pay)
		}
		c.cedis.WithLabelValues(string(pay.Kind), pay.Channel, pay.Rail, account, pay.Mode).Add(pay.Amount.Float())
	}
}
