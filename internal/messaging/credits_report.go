package messaging

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/smstext"
)

// Rate is a price in hundredths of a pesewa, because mobile operators bill fractions of a pesewa for a segment.
type Rate int64

// Prices are the operators' price of a segment and the installation's price of a credit.
type Prices struct {
	Credit   Rate
	Segment  Rate
	Networks map[msisdn.Network]Rate // price of a segment to these networks
}

// segment returns the price of one segment to a network.
func (p Prices) segment(n msisdn.Network) Rate {
	if r, ok := p.Networks[n]; ok {
		return r
	}
	return p.Segment
}

// times returns the price of n units, rounded half up.
func (r Rate) times(n int64) money.Pesewas { return money.Pesewas((int64(r)*n + 50) / 100) }

// UseLine is the use of one network in one encoding. Messages counts recipients. Accepted counts messages that a
// mobile operator accepted. Delivered, Failed (including expired and rejected) and Unsure (reported as unknown) count
// the accepted messages with a final receipt. The other accepted messages wait for one. Undecided counts messages
// that were written and got no response.
type UseLine struct {
	Network   string // by the number's prefix; OTHER for an unknown prefix
	Encoding  smstext.Encoding
	Messages  int64
	Accepted  int64
	Delivered int64
	Failed    int64
	Unsure    int64
	Refused   int64 // accepted by no mobile operator, and refunded
	Undecided int64
	Credits   int64 // charged and not refunded
	Segments  int64 // accepted and billed by mobile operators
	Paid      money.Pesewas
	Cost      money.Pesewas
}

// Margin returns the price paid for the credits minus the charges of mobile operators.
func (l UseLine) Margin() money.Pesewas { return l.Paid - l.Cost }

// DeliveryRate returns the share of delivered messages among the final ones, in hundredths of a per cent. It returns
// -1 if no message is final.
func (l UseLine) DeliveryRate() int64 {
	over := l.Delivered + l.Failed + l.Unsure
	if over == 0 {
		return -1
	}
	return l.Delivered * 10_000 / over
}

const useOf = `SELECT substr(m.recipient, 1, 5), c.encoding, m.status, m.accepted > 0, count(*), CAST(sum(m.accepted) AS INTEGER), CAST(sum(c.credits) AS INTEGER)
	FROM campaigns c JOIN messages m ON m.tenant = c.tenant AND m.campaign = c.id
	WHERE ($1 = '' OR c.tenant = $1) AND c.mode = $2 AND c.created_at >= $3 AND c.created_at < $4 AND m.no >= 0
	GROUP BY substr(m.recipient, 1, 5), c.encoding, m.status, m.accepted > 0`

// Use returns the credits, segments, cost, margin and deliveries of a mode's campaigns that were accepted in [from,
// to). An empty tenant means all tenants. Use reads all messages of these campaigns.
func (m *Messaging) Use(ctx context.Context, tenant, mode string, from, to time.Time, prices Prices) ([]UseLine, error) {
	var lines map[useKey]*UseLine
	err := m.db.ReadWhole(ctx, func(tx *db.Tx) error {
		lines = map[useKey]*UseLine{}
		return tx.Query(useOf, []any{tenant, mode, from, to}, func(r *db.Row) error {
			var ranged, encoding string
			var status Status
			var taken bool
			var n, segments, credits int64
			if err := r.Scan(&ranged, &encoding, &status, &taken, &n, &segments, &credits); err != nil {
				return err
			}
			k := useKey{msisdn.MSISDN(ranged + "0000000").NetworkLabel(), smstext.Encoding(encoding)}
			if lines[k] == nil {
				lines[k] = &UseLine{Network: k.network, Encoding: k.encoding}
			}
			lines[k].add(status, taken, n, segments, credits)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	all := make([]UseLine, 0, len(lines))
	for _, l := range lines {
		l.Paid, l.Cost = prices.Credit.times(l.Credits), prices.segment(msisdn.Network(l.Network)).times(l.Segments)
		all = append(all, *l)
	}
	slices.SortFunc(all, func(a, b UseLine) int {
		return cmp.Or(cmp.Compare(a.Network, b.Network), cmp.Compare(a.Encoding, b.Encoding))
	})
	return all, nil
}

type useKey struct {
	network  string
	encoding smstext.Encoding
}

func (l *UseLine) add(status Status, taken bool, n, segments, credits int64) {
	l.Messages += n
	l.Segments += segments
	refunded := false
	switch {
	case taken:
		l.Accepted += n
		switch status {
		case StatusDelivered:
			l.Delivered += n
		case delivery.StatusUnknown:
			l.Unsure += n
		case delivery.StatusFailed, delivery.StatusExpired, delivery.StatusRejected:
			l.Failed += n
		}
	case status == delivery.StatusUnknown:
		l.Undecided += n
	case status.Refunded(0):
		l.Refused += n
		refunded = true
	}
	if !refunded {
		l.Credits += credits
	}
}
