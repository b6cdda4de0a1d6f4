package delivery

import (
	"context"
	"sync"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
)

const (
	// pollFor is the time after its submission during which a message is polled.
	pollFor = 48 * time.Hour
	// pollAtOnce is the maximum number of messages that one pass polls. The next pass begins after the last of them.
	pollAtOnce = 500
	// pollFirst is the minimum age of a message that is polled.
	pollFirst = 10 * time.Second
)

// The condition about the provider has the same text as in the partial index, so that both engines use the index.
const openAtHubtel = `SELECT m.upstream_id, m.recipient, m.submitted_at FROM messages m JOIN campaigns c ON c.tenant = m.tenant AND c.id = m.campaign
	WHERE m.open > 0 AND substr(m.upstream_id, 1, 10) = 'hubtelsms/' AND c.mode = $1 AND m.submitted_at > $2 AND m.submitted_at < $3
	ORDER BY m.submitted_at, m.upstream_id LIMIT $4`

// polled is a message whose provider sends no reports.
type polled struct {
	id, recipient string
	at            time.Time
}

// poller queries providers for the states of open messages. Each pass begins where the previous pass ended.
type poller struct {
	db       *db.DB
	receipts *receiptBook

	mu   sync.Mutex
	from map[tenant.Mode]time.Time
}

// poll queries the states of the next open messages of a provider. ask queries one message by the provider's own id.
func (p *poller) poll(ctx context.Context, mode tenant.Mode, name string, atOnce int, ask func(context.Context, string) (provider.Receipt, bool)) error {
	now := p.receipts.clock.Now()
	p.mu.Lock()
	from := p.from[mode]
	p.mu.Unlock()
	if oldest := now.Add(-pollFor); from.Before(oldest) {
		from = oldest
	}
	list, err := db.ReadAll(ctx, p.db, openAtHubtel, []any{string(mode), from, now.Add(-pollFirst), pollAtOnce}, func(m *polled, r *db.Row) error {
		return r.Scan(&m.id, &m.recipient, &m.at)
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	if p.from[mode] = (time.Time{}); len(list) == pollAtOnce {
		p.from[mode] = list[len(list)-1].at
	}
	p.mu.Unlock()
	var group sync.WaitGroup
	places := make(chan struct{}, max(atOnce, 1))
	errs := make(chan error, len(list))
	for _, m := range list {
		if ctx.Err() != nil {
			break
		}
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			r, ok := ask(ctx, m.id[len(name)+1:])
			if !ok {
				return
			}
			// The query was about this message, whatever number the response names.
			r.UpstreamID, r.To = m.id, msisdn.MSISDN(m.recipient)
			errs <- p.receipts.receive(ctx, r)()
		})
	}
	group.Wait()
	close(errs)
	for e := range errs {
		if err == nil {
			err = e
		}
	}
	return err
}
