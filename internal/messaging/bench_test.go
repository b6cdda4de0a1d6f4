package messaging

import (
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"

	"context"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/smstest"
)

// instant is a rail that accepts every segment at once. If receipts is set, it also reports delivery.
type instant struct {
	mu   sync.Mutex
	n    int
	told func(id string, s provider.Segment)
}

func (i *instant) Whole(string, msisdn.MSISDN) bool { return false }

func (i *instant) Ready(msisdn.Network) error { return nil }

func (i *instant) Submit(_ context.Context, s provider.Segment, done func(provider.Outcome)) {
	i.mu.Lock()
	i.n++
	id := strconv.Itoa(i.n)
	i.mu.Unlock()
	done(provider.Outcome{Class: provider.Accepted, UpstreamID: id})
	if i.told != nil {
		i.told(id, s)
	}
}

// BenchmarkSend measures a message from Send until its outcome is stored, with durable commits: charge, claim,
// submission and record. One operation is one message.
func BenchmarkSend(b *testing.B) {
	for _, engine := range dbtest.Engines() {
		for _, size := range []int{1, 100} {
			for _, reported := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/recipients=%d/receipts=%v", engine, size, reported), func(b *testing.B) { benchSend(b, engine, size, reported) })
			}
		}
	}
}

func benchSend(b *testing.B, engine db.Engine, size int, reported bool) {
	ctx := context.Background()
	o := dbtest.Options(b, engine)
	o.MaxConns = 16
	d := dbtest.OpenWith(b, o)
	c := clock.Real()
	log := slog.New(slog.DiscardHandler)
	l := ledger.New(d, c, "one")
	secret, err := config.NewSecret(make([]byte, config.SecretBytes))
	if err != nil {
		b.Fatal(err)
	}
	q := jobs.New(d, c, log, jobs.Options{Node: "one"})
	rail := &instant{}
	tenants, answers := tenant.New(d, l, c), idempotency.NewAnswers(d, c)
	m := New(Deps{DB: d, Ledger: l, Tenants: tenants, Jobs: q, Answers: answers, Senders: senderid.New(d, tenants, answers, c, config.Quotas{}),
		Contacts: contacts.New(d, tenants, answers, c, config.Quotas{}), Clock: c,
		Log: log, Secret: secret, SMS: map[tenant.Mode]provider.SMSSender{tenant.Live: rail}})
	var reports sync.WaitGroup
	if reported {
		rail.told = func(id string, s provider.Segment) {
			reports.Add(1)
			go func() {
				defer reports.Done()
				if err := m.Receive(ctx, provider.Receipt{UpstreamID: id, State: provider.Delivered, At: c.Now(), To: s.To})(); err != nil {
					b.Error(err)
				}
			}()
		}
	}
	if err := q.Start(ctx); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = q.Stop(ctx)
		m.Close()
	})
	var sender senderid.Sender
	err = d.Write(ctx, func(tx *db.Tx) error {
		_, err := m.tenants.Create(tx, tenant.Tenant{ID: "shop", Name: "shop", Mode: tenant.Live})
		return err
	})
	if err == nil {
		sender, _, err = m.senders.Request(ctx, idempotency.Caller{Tenant: "shop"}, "Kejetia", "bench")
	}
	if err == nil {
		err = d.Write(ctx, func(tx *db.Tx) error {
			if _, err := m.SellCredits(tx, "shop", "sale", MaxSale); err != nil {
				return err
			}
			_, err := m.senders.Review(tx, "shop", sender.ID, senderid.Approved, "", "bench")
			return err
		})
	}
	if err != nil {
		b.Fatal(err)
	}
	to := smstest.Numbers(size)
	b.ResetTimer()
	work := make(chan struct{}, 128)
	var wait sync.WaitGroup
	for range 128 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for range work {
				if _, _, err := m.Send(ctx, idempotency.Caller{Tenant: "shop", Key: "k"}, Send{SenderID: sender.ID, Message: "Your order is ready", Recipients: to}); err != nil {
					b.Error(err)
				}
			}
		}()
	}
	for range (b.N + size - 1) / size {
		work <- struct{}{}
	}
	close(work)
	wait.Wait()
	if err := q.Quiet(ctx); err != nil {
		b.Fatal(err)
	}
	reports.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
	var left int64
	if _, err := d.ReadOne(ctx, "SELECT count(*) FROM messages WHERE status NOT IN ('submitted', 'delivered')", nil, &left); err != nil || left != 0 {
		b.Errorf("%d messages are not over: %v", left, err)
	}
}
