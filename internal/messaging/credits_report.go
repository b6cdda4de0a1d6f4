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

// Rate is a price in hundredths of a pesewa, because operators bill segments in fractions of one.
type Rate int64

// Prices are the operators' price of a segment and the installation's price of a credit.
type Prices struct {
	Credit   Rate
	Segment  Rate
	Networks map[msisdn.Network]Rate // of a segment to these networks
}

// segment is the price of one segment to a network.
func (p Prices) segment(n msisdn.Network) Rate {
	if r, ok := p.Networks[n]; ok {
		return r
	}
	return p.Segment
}

// times is the price of n units, rounded half up.
func (r Rate) times(n int64) money.Pesewas { return money.Pesewas((int64(r)*n + 50) / 100) }

// UseLine is the use of one network in one encoding. Messages counts recipients. Accepted counts messages that an
// operator accepted. Of these, Delivered, Failed (including expired and rejected) and Unsure (reported as unknown)
// are final; the others wait for a receipt. Undecided counts written messages without an answer.
type UseLine struct {
	Network   string // by the number's range; OTHER for an unknown range
	Encoding  smstext.Encoding
	Messages  int64
	Accepted  int64
	Delivered int64
	Failed    int64
	Unsure    int64
	Refused   int64 // accepted by no operator, and refunded
	Undecided int64
	Credits   int64 // charged and kept
	Segments  int64 // that operators accepted and bill
	Paid      money.Pesewas
	Cost      money.Pesewas
}

// Margin returns the price paid for the credits minus the operators' charges.
func (l UseLine) Margin() money.Pesewas { return l.Paid - l.Cost }

// DeliveryRate is the share of delivered messages among those that are over, in hundredths of a per cent; -1 when
// none is over.
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

// Use reports credits, segments, cost, margin and deliveries of a mode's campaigns accepted in [from, to). An empty
// tenant means all tenants. It reads all their messages.
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
