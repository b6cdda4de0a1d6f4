package requestlog

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

// rig is a log with its clock. Time passes only when the test advances the clock.
type rig struct {
	*Log
	t *testing.T
	c *clock.Clock
}

func each(t *testing.T, test func(r rig)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC))
		l := New(d, c, slog.New(slog.DiscardHandler))
		l.Start()
		t.Cleanup(func() {
			if err := l.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
		test(rig{l, t, c})
	})
}

// refused records a request as the interface would.
func (r rig) refused(tenant, requestID string, change ...func(*Request)) {
	req := Request{RequestID: requestID, Tenant: tenant, At: r.c.Now(), Took: time.Millisecond, Method: "POST", Endpoint: "payment-api/momopay", Status: 422, Code: "invalid",
		Message: "The amount is wrong", Fields: map[string][]string{"amount": {"must be at least 0.50"}}, Key: "key-1", Origin: "203.0.113.7"}
	for _, c := range change {
		c(&req)
	}
	r.Record(req)
}

func (r rig) list(f Filter) Found {
	r.t.Helper()
	if err := r.Flush(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	found, err := r.List(r.t.Context(), f)
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// droppedFor reads a counter.
func droppedFor(t *testing.T, l *Log, reason string) (n float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(l.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if m.GetLabel()[0].GetValue() == reason {
				n = m.GetCounter().GetValue()
			}
		}
	}
	return n
}

func TestFind_ownTenantOnly(t *testing.T) {
	each(t, func(r rig) {
		r.refused("ama", "req_one")
		r.refused("kofi", "req_one")
		r.refused("ama", "req_two", func(q *Request) { q.Status, q.Endpoint = 503, "payment-api/send/bank" })
		all := r.list(Filter{})
		if len(all.Requests) != 3 || all.More != "" || all.Requests[0].RequestID != "req_two" {
			r.t.Fatalf("the list is %+v", all)
		}
		for tenant, want := range map[string]int{"ama": 1, "kofi": 1, "esi": 0, "": 2} {
			list, err := r.ByRequestID(r.t.Context(), tenant, "req_one")
			if err != nil || len(list) != want {
				r.t.Errorf("%q finds %d: %v", tenant, len(list), err)
			}
		}
		own := r.list(Filter{Tenant: "ama", Status: 422})
		if len(own.Requests) != 1 {
			r.t.Fatalf("ama's refused: %+v", own)
		}
		got, err := r.Get(r.t.Context(), "ama", own.Requests[0].ID)
		if err != nil || got.Fields["amount"][0] != "must be at least 0.50" || got.Took != time.Millisecond || !got.At.Equal(r.c.Now()) || got.Key != "key-1" || got.Origin != "203.0.113.7" {
			r.t.Errorf("it is %+v: %v", got, err)
		}
		if _, err := r.Get(r.t.Context(), "kofi", got.ID); !problem.Is(err, problem.NotFound) {
			r.t.Errorf("another tenant reads it: %v", err)
		}
		if of := r.list(Filter{Endpoint: "payment-api/send/bank"}); len(of.Requests) != 1 || of.Requests[0].Status != 503 {
			r.t.Errorf("by endpoint: %+v", of)
		}
	})
}

func TestList_pagesHaveNoGap(t *testing.T) {
	each(t, func(r rig) {
		for n := range 25 {
			r.refused("ama", fmt.Sprintf("req_%04d", n))
		}
		seen, f := 0, Filter{Tenant: "ama", Limit: 10}
		for {
			found := r.list(f)
			for _, q := range found.Requests {
				if want := fmt.Sprintf("req_%04d", 24-seen); q.RequestID != want {
					r.t.Fatalf("%s stands where %s belongs", q.RequestID, want)
				}
				seen++
			}
			if f.Before = found.More; f.Before == "" {
				break
			}
		}
		if seen != 25 {
			r.t.Errorf("%d were listed", seen)
		}
	})
}

func TestRecord_masksAndBounds(t *testing.T) {
	each(t, func(r rig) {
		r.refused("ama", "req_masked", func(q *Request) {
			q.Message = "233241234567 and 0011223344556\x00\xff"
			q.Fields = map[string][]string{"account_number 0249123456": {strings.Repeat("x", 100_000)}, "b": {"0249123456"}, "phone_number": {msisdn.ErrNumber.Error()}}
		})
		q := r.list(Filter{}).Requests[0]
		text := strings.ReplaceAll(fmt.Sprintf("%+v", q), msisdn.Example, "")
		if strings.Contains(text, "123456") || strings.Contains(text, "22334") || len(text) > 5000 {
			r.t.Errorf("it is kept as %.3000s", text)
		}
		if !strings.HasPrefix(q.Message, "•••••••••567 and") {
			r.t.Errorf("the message is %q", q.Message)
		}
		if got := q.Fields["phone_number"]; len(got) != 1 || got[0] != msisdn.ErrNumber.Error() {
			r.t.Errorf("the example of a message is kept as %v", got)
		}
	})
}

// Many bad requests of one tenant use up only that tenant's share, and requests without a key use a separate share. The requests of
// other tenants are stored.
func TestRecord_floodTakesItsShare(t *testing.T) {
	each(t, func(r rig) {
		const flood = 100_000
		for range flood {
			r.refused("rubbish", "req_rubbish")
			r.refused("", "req_nobody")
		}
		r.refused("ama", "req_ama")
		for tenant, want := range map[string]int{"rubbish": aMinute, "ama": 1} {
			if got := len(r.list(Filter{Tenant: tenant, Limit: 200}).Requests); got != want {
				r.t.Errorf("%s has %d rows, not %d", tenant, got, want)
			}
		}
		if all := len(r.list(Filter{Limit: 200}).Requests); all != aMinute+aMinuteNoKey+1 {
			r.t.Errorf("%d rows", all)
		}
		for reason, want := range map[string]float64{"tenant": flood - aMinute, "no_key": flood - aMinuteNoKey, "queue": 0, "database": 0} {
			if got := droppedFor(r.t, r.Log, reason); got != want {
				r.t.Errorf("dropped for %s: %v, not %v", reason, got, want)
			}
		}
		r.c.Advance(time.Minute)
		r.refused("rubbish", "req_later")
		if list, err := r.ByRequestID(r.t.Context(), "rubbish", "req_later"); err != nil || len(list) != 0 {
			r.t.Fatalf("written before it was asked to be: %v %v", list, err)
		}
		if got := len(r.list(Filter{Tenant: "rubbish", Limit: 200}).Requests); got != aMinute+1 {
			r.t.Errorf("a minute later it has %d rows", got)
		}
	})
}

// Without a writer the queue fills up. Record then neither waits nor stores more.
func TestRecord_neverBlocks(t *testing.T) {
	l := New(nil, clock.NewManual(time.Unix(1e9, 0)), slog.New(slog.DiscardHandler))
	const tenants = 2 * maxShares
	for n := range tenants {
		l.Record(Request{Tenant: fmt.Sprint(n), Status: 400})
	}
	if len(l.queue) != queued || len(l.shares) > maxShares {
		t.Errorf("%d wait, %d shares", len(l.queue), len(l.shares))
	}
	dropped := droppedFor(t, l, "queue") + droppedFor(t, l, "tenant")
	if dropped != tenants-queued {
		t.Errorf("%v of %d were dropped", dropped, tenants)
	}
}

func TestRecord_onlyRefusals(t *testing.T) {
	each(t, func(r rig) {
		for _, status := range []int{0, 200, 303, 399, 600} {
			r.refused("ama", "req_other", func(q *Request) { q.Status = status })
		}
		if found := r.list(Filter{}); len(found.Requests) != 0 {
			r.t.Errorf("kept: %+v", found)
		}
	})
}

func TestPrune_afterThirtyDays(t *testing.T) {
	each(t, func(r rig) {
		r.refused("ama", "req_old")
		r.c.Advance(KeepFor)
		r.refused("ama", "req_new")
		r.list(Filter{})
		for range 2 {
			if err := r.Prune(r.t.Context(), 0); err != nil {
				r.t.Fatal(err)
			}
			r.c.Advance(time.Second)
		}
		if found := r.list(Filter{}); len(found.Requests) != 1 || found.Requests[0].RequestID != "req_new" {
			r.t.Errorf("left: %+v", found)
		}
	})
}

func TestPrune_keepsNewestTenThousand(t *testing.T) {
	each(t, func(r rig) {
		r.refused("kofi", "req_kofi")
		for n := range KeepOfTenant + 1500 {
			if n%aMinute == 0 {
				r.c.Advance(time.Minute)
			}
			r.refused("ama", fmt.Sprintf("req_%05d", n))
			if n%1000 == 999 {
				r.list(Filter{Limit: 1})
			}
		}
		r.list(Filter{Limit: 1})
		if err := r.Prune(r.t.Context(), 0); err != nil {
			r.t.Fatal(err)
		}
		var rows int
		var oldest string
		_, err := r.db.ReadOne(r.t.Context(), `SELECT count(*), min(request_id) FROM refused_requests WHERE tenant = 'ama'`, nil, &rows, &oldest)
		if err != nil || rows != KeepOfTenant || oldest != "req_01500" {
			r.t.Errorf("%d rows are left, the oldest %s: %v", rows, oldest, err)
		}
		if found := r.list(Filter{Tenant: "kofi"}); len(found.Requests) != 1 {
			r.t.Errorf("another tenant's: %+v", found)
		}
	})
}

// Rows that the database refuses are counted, and later rows are written.
func TestRecord_unavailableDatabase(t *testing.T) {
	each(t, func(r rig) {
		if err := r.db.Close(); err != nil {
			r.t.Fatal(err)
		}
		r.refused("ama", "req_lost")
		if err := r.Flush(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
		if got := droppedFor(r.t, r.Log, "database"); got != 1 {
			r.t.Errorf("%v were counted", got)
		}
	})
}
