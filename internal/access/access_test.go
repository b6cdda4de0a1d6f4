package access

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/dbtest"
)

var start = time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC)

// write runs fn in one transaction and fails the test if it does.
func write(t *testing.T, d *db.DB, fn func(tx *db.Tx) error) {
	t.Helper()
	if err := d.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func secretOf(t *testing.T, b byte) config.Secret {
	t.Helper()
	s, err := config.NewSecret(bytes.Repeat([]byte{b}, config.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheDatabaseKnowsItsMasterKey(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := New(d, clock.NewManual(start))
		if err := a.CheckSecret(t.Context(), secretOf(t, 2)); err != nil {
			t.Fatalf("a command before the first start: %v", err)
		}
		if err := a.CheckInstallation(t.Context(), secretOf(t, 1)); err != nil {
			t.Fatalf("the first start: %v", err)
		}
		if err := a.CheckInstallation(t.Context(), secretOf(t, 1)); err != nil {
			t.Fatalf("the same key again: %v", err)
		}
		if err := New(d, clock.Real()).CheckInstallation(t.Context(), secretOf(t, 2)); !errors.Is(err, ErrWrongSecret) {
			t.Fatalf("another key: %v", err)
		}
		if err := a.CheckSecret(t.Context(), secretOf(t, 1)); err != nil {
			t.Fatalf("a command with the same key: %v", err)
		}
		if err := a.CheckSecret(t.Context(), secretOf(t, 2)); !errors.Is(err, ErrWrongSecret) {
			t.Fatalf("a command with another key: %v", err)
		}
	})
}

func TestOfTwoFirstStartsOneKeyWins(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const starts = 8
		var wg sync.WaitGroup
		var won, refused atomic.Int64
		for i := range starts {
			wg.Go(func() {
				switch err := New(d, clock.Real()).CheckInstallation(t.Context(), secretOf(t, byte(i+1))); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, ErrWrongSecret):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || refused.Load() != starts-1 {
			t.Fatalf("%d keys won and %d were refused", won.Load(), refused.Load())
		}
	})
}

func TestInstallationWhenTheAnswerIsLost(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		a := New(d, clock.NewManual(start))
		f.At(db.BoundaryCommit, 1, db.FaultAfter)
		if err := a.CheckInstallation(t.Context(), secretOf(t, 1)); err != nil {
			t.Fatalf("a claim whose answer was lost: %v", err)
		}
		if err := a.CheckInstallation(t.Context(), secretOf(t, 2)); !errors.Is(err, ErrWrongSecret) {
			t.Fatalf("another key: %v", err)
		}
	})
}

func TestAudit(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		a := New(d, c)
		for i, e := range []Entry{
			{Actor: "cli:ama", Action: "tenant.set", Tenant: "t1", Subject: "t1", Reason: "asked", Details: map[string]int{"x": 1}},
			{Actor: "cli:kofi", Action: "key.revoke", Tenant: "t1", Subject: "k"},
			{Actor: "cli:ama", Action: "provider.pause", Subject: "mtn"},
		} {
			c.Advance(time.Duration(i) * time.Second)
			write(t, d, func(tx *db.Tx) error { return a.Audit(tx, e) })
		}
		all, err := a.AuditLog(t.Context(), AuditFilter{})
		if err != nil || len(all) != 3 || all[0].Subject != "mtn" || all[2].Subject != "t1" {
			t.Fatalf("%+v, %v", all, err)
		}
		first := all[2]
		if !first.At.Equal(start) || first.Reason != "asked" || string(first.Details.(json.RawMessage)) != `{"x":1}` {
			t.Fatalf("%+v", first)
		}
		for _, c := range []struct {
			filter AuditFilter
			want   int
		}{
			{AuditFilter{Tenant: "t1"}, 2}, {AuditFilter{Actor: "cli:ama"}, 2}, {AuditFilter{Action: "key.revoke"}, 1},
			{AuditFilter{Tenant: "t1", Actor: "cli:ama"}, 1}, {AuditFilter{Limit: 1}, 1},
			{AuditFilter{Before: all[0].ID}, 2}, {AuditFilter{Before: all[2].ID}, 0}, {AuditFilter{Tenant: "t2"}, 0},
		} {
			if got, err := a.AuditLog(t.Context(), c.filter); err != nil || len(got) != c.want {
				t.Errorf("%+v gave %d entries (%v), want %d", c.filter, len(got), err, c.want)
			}
		}
	})
}

func TestAuditGoesWithItsAct(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := New(d, clock.NewManual(start))
		failed := errors.New("the act failed")
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			return errors.Join(a.Audit(tx, Entry{Actor: "x", Action: "y"}), failed)
		})
		if !errors.Is(err, failed) {
			t.Fatal(err)
		}
		if all, err := a.AuditLog(t.Context(), AuditFilter{}); err != nil || len(all) != 0 {
			t.Fatalf("an act that failed is in the log: %v, %v", all, err)
		}
		for _, e := range []Entry{{Action: "y"}, {Actor: "x"}} {
			if err := d.Write(t.Context(), func(tx *db.Tx) error { return a.Audit(tx, e) }); err == nil {
				t.Errorf("%+v was taken", e)
			}
		}
	})
}

// other is a second node on the same database, with a clock of its own.
func other(d *db.DB, at time.Time) (*Access, *clock.Clock) {
	c := clock.NewManual(at)
	return New(d, c), c
}

// allowed asks n times and counts.
func allowed(t *testing.T, a *Access, tenant string, l Limit, n int) (yes int) {
	t.Helper()
	for range n {
		d, err := a.Take(context.Background(), tenant, l)
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			yes++
		}
	}
	return yes
}
